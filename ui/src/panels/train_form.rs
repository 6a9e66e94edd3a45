//! The settings of a training run: what a person chooses, and the configuration that follows from it.

mod kept;

use bit_diffusion::{
    bits::Encoding,
    checkpoint::Header,
    data::shapes,
    engine::{TrainData, TrainRequest},
    experiment::Preset,
    model::{Output, UNetConfig},
    objective::{Loss, Prediction},
    sampler::Settings,
    train::{Plan, TrainConfig},
};
use egui::{DragValue, Slider, Ui};

use crate::{controls, files::Brought};

/// How many samples a sheet has, and how many steps it takes.
const SHEET_SIZE: usize = 16;
const SHEET_STEPS: usize = 20;

/// A checkpoint every so many steps, for the engine to go back to when a device fails.
const SAVE_EVERY: usize = 500;

/// What is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    Shapes,
    Files,
}

impl Data {
    const ALL: [Self; 2] = [Self::Shapes, Self::Files];

    fn label(self) -> &'static str {
        match self {
            Self::Shapes => "shapes, made as needed",
            Self::Files => "pictures of your own",
        }
    }
}

/// How large the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkSize {
    Tiny,
    Small,
    Medium,
}

impl NetworkSize {
    const ALL: [Self; 3] = [Self::Tiny, Self::Small, Self::Medium];

    fn label(self) -> &'static str {
        match self {
            Self::Tiny => "tiny: learns colours",
            Self::Small => "small: learns shapes",
            Self::Medium => "medium: wants patience",
        }
    }

    /// The network of the shapes presets, or a narrower or a wider one.
    fn resize(self, network: UNetConfig) -> UNetConfig {
        match self {
            Self::Tiny => UNetConfig { width: 16, n_blocks: 1, head_dim: 16, ..network },
            Self::Small => network,
            Self::Medium => UNetConfig { width: 64, head_dim: 64, ..network },
        }
    }
}

/// A checkpoint that a run can go on from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin {
    pub file: Brought,
    pub header: Header,
}

/// What a person chooses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainForm {
    data: Data,
    files: Vec<Brought>,
    /// The size that picture files are brought to.
    size: usize,
    encoding: Encoding,
    prediction: Prediction,
    loss: Loss,
    network: NetworkSize,
    self_cond_share: f64,
    learning_rate: f64,
    batch_size: usize,
    n_steps: usize,
    sheet_every: usize,
    seed: u64,
    /// The run goes on from this.
    pub origin: Option<Origin>,
}

impl Default for TrainForm {
    fn default() -> Self {
        let preset = Preset::ShapesUint8.config();
        Self {
            data: Data::Shapes,
            files: Vec::new(),
            size: shapes::SIZE,
            encoding: preset.network.encoding,
            prediction: preset.network.prediction,
            loss: preset.network.loss,
            network: NetworkSize::Small,
            self_cond_share: preset.self_cond_share,
            learning_rate: preset.learning_rate,
            batch_size: 16,
            n_steps: 1000,
            sheet_every: 50,
            seed: 0,
            origin: None,
        }
    }
}

impl TrainForm {
    /// Adds pictures to learn, and chooses them.
    pub fn add_pictures(&mut self, pictures: Vec<Brought>) {
        if !pictures.is_empty() {
            self.files.extend(pictures);
            self.data = Data::Files;
        }
    }

    /// The configuration that follows: the shapes preset's, but for what was chosen. Going on from a checkpoint, that of the checkpoint.
    pub fn config(&self) -> TrainConfig {
        if let Some(origin) = &self.origin {
            return origin.header.config.clone();
        }
        let preset = Preset::ShapesUint8.config();
        let (size, multipliers) = match self.data {
            Data::Shapes => (shapes::SIZE, preset.network.multipliers.clone()),
            // One more stage for every doubling, so that the smallest stage has 8 × 8 pixels.
            Data::Files => (self.size, (0..=(self.size / 8).ilog2()).map(|stage| 1 << stage.min(1)).collect()),
        };
        let (encoding, prediction, loss) = (self.encoding, self.prediction, self.loss);
        // The paper's tweak for shuffled bits, where it can be had.
        let is_factorised = encoding == Encoding::Uint8Rand && loss == Loss::L2 && prediction == Prediction::X0;
        let output = if is_factorised { Output::SoftmaxFactorised } else { Output::Linear };
        let network = UNetConfig { size, multipliers, encoding, prediction, loss, output, ..preset.network };
        TrainConfig {
            network: self.network.resize(network),
            learning_rate: self.learning_rate,
            n_warmup_steps: (self.n_steps / 10).clamp(1, preset.n_warmup_steps),
            batch_size: self.batch_size,
            micro_batch_size: self.batch_size,
            self_cond_share: self.self_cond_share,
            seed: self.seed,
            ..preset
        }
    }

    /// Why the run cannot start, in words that help.
    pub fn problem(&self) -> Option<String> {
        if self.data == Data::Files && self.files.is_empty() {
            return Some(
                "Open a few PNG or JPEG files with Open… or drop them on the window: there are none yet".to_owned(),
            );
        }
        self.config().validate().err().map(|error| error.to_string())
    }

    /// The run as a request.
    pub fn request(&self) -> TrainRequest {
        let config = self.config();
        let n_before = self.origin.as_ref().map_or(0, |origin| origin.header.n_steps);
        let data = match self.data {
            Data::Shapes => TrainData::Shapes,
            Data::Files => {
                let files = self.files.iter().map(|file| (file.name.clone(), file.bytes.clone()));
                TrainData::Files(files.collect())
            }
        };
        let plan = Plan {
            n_steps: n_before + self.n_steps,
            save_every: SAVE_EVERY,
            sheet_every: self.sheet_every,
            sheet_size: SHEET_SIZE,
            sheet: Settings { n_steps: SHEET_STEPS, schedule: config.schedule, ..Settings::default() },
        };
        let from = self.origin.as_ref().map(|origin| origin.file.bytes.clone());
        TrainRequest { config, plan, data, from }
    }

    pub fn ui(&mut self, ui: &mut Ui) {
        let explanation = "What the network learns to make: scenes of a few flat shapes, of which there is no end, or picture files of yours.";
        controls::choice(ui, "data", explanation, &mut self.data, &Data::ALL, |data| data.label());
        if self.data == Data::Files {
            self.files_ui(ui);
        }
        match &self.origin {
            Some(origin) => {
                let (name, n_steps) = (&origin.file.name, origin.header.n_steps);
                ui.label(format!("Goes on from {name}, after {n_steps} steps, with the settings of that run"));
                if ui.button("Start afresh instead").clicked() {
                    self.origin = None;
                }
            }
            None => self.network_ui(ui),
        }
        ui.add_space(6.0);
        let text = if self.origin.is_some() { "more steps" } else { "steps" };
        ui.add(Slider::new(&mut self.n_steps, 10..=20_000).logarithmic(true).text(text))
            .on_hover_text("How many batches it learns from. Shapes are recognisable after some hundred, and good after some thousand.");
        ui.add(Slider::new(&mut self.sheet_every, 5..=1000).logarithmic(true).text("steps between samples"))
            .on_hover_text("How often the averaged network draws a sheet of samples, always from the same noise.");
    }

    fn files_ui(&mut self, ui: &mut Ui) {
        ui.horizontal(|ui| {
            let plural = if self.files.len() == 1 { "" } else { "s" };
            ui.label(format!("{} picture{plural}", self.files.len()));
            if !self.files.is_empty() && ui.small_button("Remove them").clicked() {
                self.files.clear();
            }
        });
        controls::choice(
            ui,
            "size of the pictures",
            "The largest square is cut from the middle of each and brought to this size.",
            &mut self.size,
            &[16, 32, 64],
            |size| match size {
                16 => "16 × 16 pixels",
                32 => "32 × 32 pixels",
                _ => "64 × 64 pixels",
            },
        );
    }

    fn network_ui(&mut self, ui: &mut Ui) {
        controls::choice(
            ui,
            "encoding",
            "How a colour value from 0 to 255 is written: in base 2, in a code where neighbours differ in one bit, in base 2 after a random \
             shuffle, as one of 256, or not as bits at all.",
            &mut self.encoding,
            &Encoding::ALL,
            |encoding| encoding.label(),
        );
        controls::choice(
            ui,
            "predicts",
            "What the network's output stands for: the clean bits, which the paper prefers, or the noise that was added.",
            &mut self.prediction,
            &Prediction::ALL,
            |prediction| prediction.label(),
        );
        controls::choice(
            ui,
            "loss",
            "How the output is compared with the truth: the squared difference, each bit as a question of yes or no, or each value as a \
             choice of one in 256.\n\nℓ₂: (x₀ − f)²    sigmoid: −log σ(x₀·f)    softmax: −x₀·log softmax(f)",
            &mut self.loss,
            &Loss::ALL,
            |loss| loss.label(),
        );
        controls::choice(
            ui,
            "network",
            "A larger network learns more, and takes longer for every step.",
            &mut self.network,
            &NetworkSize::ALL,
            |network| network.label(),
        );
        let n_parameters = self.config().network.n_parameters();
        ui.weak(format!("{} thousand weights", n_parameters / 1000));
        ui.add(Slider::new(&mut self.self_cond_share, 0.0..=1.0).step_by(0.05).text("self-conditioning share")).on_hover_text(
            "The share of examples that are first estimated without help and then learned with that estimate beside them; the paper takes \
             half. At 0 the network never learns to use its own estimate.",
        );
        ui.add(Slider::new(&mut self.learning_rate, 1e-5..=1e-2).logarithmic(true).text("learning rate"))
            .on_hover_text("How far each step goes, after a rise from 0 over the first tenth of the run.");
        ui.add(Slider::new(&mut self.batch_size, 1..=64).logarithmic(true).text("pictures a step"));
        ui.horizontal(|ui| {
            let number = ui.add(DragValue::new(&mut self.seed).speed(0.1));
            let label = ui.label("seed");
            number.labelled_by(label.id);
            label.on_hover_text("What the first weights, the examples and their noise descend from.");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_network_and_picture_can_be_trained() {
        for network in NetworkSize::ALL {
            for (data, size) in [(Data::Shapes, 16), (Data::Files, 16), (Data::Files, 32), (Data::Files, 64)] {
                let form = TrainForm { data, size, network, ..TrainForm::default() };
                form.config().validate().unwrap_or_else(|error| panic!("{network:?} {data:?} {size}: {error}"));
            }
        }
    }

    #[test]
    fn what_does_not_fit_together_is_said() {
        let form = TrainForm { loss: Loss::SoftmaxCrossEntropy, ..TrainForm::default() };
        let problem = form.problem().expect("softmax needs one-hot");
        assert!(problem.contains("one-hot"), "{problem}");
        let form = TrainForm { data: Data::Files, ..TrainForm::default() };
        assert!(form.problem().is_some_and(|problem| problem.contains("Open…")));
        assert_eq!(TrainForm::default().problem(), None);
    }
}
