//! What the engine can be asked: plain requests, never tensors.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{CaptionRequest, PictureSheet};
use crate::{
    Error,
    bits::{Codec, Encoding},
    checkpoint::Precision,
    data::Pictures,
    demo::Demo,
    sampler::{Sampler, Settings},
    self_cond::SelfCond,
    train::{Plan, TrainConfig},
};

/// Where a job lives: each panel has a number of its own, one that compares has several. The newest command of a slot wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Something to do. The answers are [`super::Event`]s.
#[derive(Debug)]
pub enum Command {
    /// Make a chain, or show a kept one again. Drops what was under way in the slot.
    Chain {
        /// Where.
        slot: Slot,
        /// What.
        request: ChainRequest,
    },
    /// Score a grid of steps × time differences. Drops what was under way in the slot.
    Sweep {
        /// Where.
        slot: Slot,
        /// What.
        request: SweepRequest,
    },
    /// The paper's Figure 3: one big step, then denoised with several clocks. Drops what was under way in the slot.
    BigStep {
        /// Where.
        slot: Slot,
        /// What.
        request: BigStepRequest,
    },
    /// Write captions. Drops what was under way in the slot.
    Captions {
        /// Where.
        slot: Slot,
        /// What.
        request: CaptionRequest,
    },
    /// Drop what is under way in the slot. What it has made so far stays kept, and a chain asked for again goes on from there.
    Cancel {
        /// Where.
        slot: Slot,
    },
    /// Open a model or a checkpoint. Drops what was under way in the slot.
    Open {
        /// Where the answer belongs.
        slot: Slot,
        /// What to call it.
        name: String,
        /// The file.
        bytes: Arc<[u8]>,
    },
    /// The file of a demo model that [`super::Event::Wanted`] asked for, or why it cannot be had.
    Bring {
        /// Which.
        demo: Demo,
        /// The file, or the reason in a few words.
        file: Result<Arc<[u8]>, String>,
    },
    /// Forget an opened model; chains that were made with it stay kept.
    Close {
        /// Which.
        model: ModelId,
    },
    /// Decode a picture file (PNG or JPEG), cut the largest square from its middle and bring it to the size of a model's pictures.
    /// Drops what was under way in the slot.
    OpenPicture {
        /// Where the answer belongs.
        slot: Slot,
        /// What to call it.
        name: String,
        /// The file.
        bytes: Arc<[u8]>,
        /// The model whose size and channels it gets.
        model: ModelId,
    },
    /// Start a training run. It takes the place of the one there is: save that first if it is worth it.
    Train {
        /// Where the events of the run belong. A run is no job of its slot: it goes on when the slot gets another command.
        slot: Slot,
        /// What.
        request: Box<TrainRequest>,
    },
    /// Something about the training run there is.
    Training(TrainingCommand),
    /// How much memory kept chains may use, in bytes.
    SetBudget {
        /// The limit.
        bytes: usize,
    },
}

/// What can be done with the training run there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingCommand {
    /// Make no more steps for now.
    Pause,
    /// Go on.
    Resume,
    /// End the run. Its last checkpoint comes as an event, and its network is no longer a model.
    Stop,
    /// Give the run as a file that training can go on from.
    Save,
    /// Give the averaged network as a file for sampling.
    Export(Precision),
}

/// A denoiser that chains can be made with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum ModelId {
    /// A network that comes with the program.
    Demo(Demo),
    /// The perfect denoiser of some scenes.
    Perfect(Perfect),
    /// An opened file, by the number that its [`super::Event::Opened`] gave.
    Opened(u32),
    /// The averaged network of the training run, as it is when a chain starts.
    Training,
}

impl Default for ModelId {
    fn default() -> Self {
        Self::Demo(Demo::default())
    }
}

/// The perfect denoiser of the first scenes of the shapes world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Perfect {
    /// How many scenes it knows, from 1 to [`Self::MAX_SCENES`].
    pub n_scenes: usize,
    /// How colour values are written.
    pub encoding: Encoding,
    /// How far it trusts its earlier estimate; 0 ignores it.
    pub trust: f64,
}

impl Perfect {
    /// The most scenes: their analog bits then take 100 MB.
    pub const MAX_SCENES: usize = 4096;

    /// Checks that there is room for so many scenes; the longer the code of a colour value, the fewer.
    pub fn validate(&self) -> Result<(), Error> {
        let bits = Codec::pixels(self.encoding).bits_per_symbol();
        let most = Self::MAX_SCENES * 8 / bits.max(8);
        if !(1..=most).contains(&self.n_scenes) {
            let allowed = format!("from 1 to {most}, written as {}", self.encoding.label());
            return Err(Error::argument("number of scenes", self.n_scenes, allowed));
        }
        Ok(())
    }
}

impl Default for Perfect {
    fn default() -> Self {
        Self { n_scenes: 64, encoding: Encoding::Uint8, trust: 0.0 }
    }
}

/// Which class the samples of a chain are asked to show. A model without classes takes `Each` and `Any`, which are then the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Classes {
    /// Sample i shows class i, and again from the first after the last.
    #[default]
    Each,
    /// All show this one.
    One(usize),
    /// No class is asked for: the null label.
    Any,
}

/// Everything that decides a chain. Two equal requests give the same pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainRequest {
    /// The denoiser.
    pub model: ModelId,
    /// How noise becomes a sample.
    pub settings: Settings,
    /// How many samples are made at once.
    pub n: usize,
    /// What all noise descends from.
    pub seed: u64,
    /// What the samples are asked to show.
    pub classes: Classes,
    /// The chain that this one continues; `None` starts from noise.
    pub branch: Option<Branch>,
}

impl ChainRequest {
    /// The most samples at once.
    pub const MAX_SAMPLES: usize = 1024;

    /// The same request continued from the start of `step` with other settings.
    #[must_use]
    pub fn branched(&self, step: usize, settings: Settings) -> Self {
        Self { settings, branch: Some(Branch { from: Arc::new(self.clone()), step }), ..self.clone() }
    }
}

impl Default for ChainRequest {
    /// 16 samples of the default demo model.
    fn default() -> Self {
        Self {
            model: ModelId::default(),
            settings: Settings::default(),
            n: 16,
            seed: 0,
            classes: Classes::Each,
            branch: None,
        }
    }
}

/// Where a chain leaves another.
///
/// The state that a branch starts from is kept in half floats: it differs from the original by less than one part in 2000, far below what
/// shows after a threshold. If it is no longer kept, the engine makes the first chain again, up to there.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The chain it continues; it must have the same model size and number of samples.
    pub from: Arc<ChainRequest>,
    /// The first step that is made anew: the steps before it are those of `from`.
    pub step: usize,
}

/// A grid of settings to score, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRequest {
    /// The denoiser.
    pub model: ModelId,
    /// Samples for each seed.
    pub n: usize,
    /// Every cell is the mean over these.
    pub seeds: Vec<u64>,
    /// The rows: numbers of steps.
    pub steps: Vec<usize>,
    /// The columns: time differences, in steps.
    pub td: Vec<f64>,
    /// The rule of one step.
    pub sampler: Sampler,
    /// What the network is told of its earlier estimate.
    pub self_cond: SelfCond,
}

impl SweepRequest {
    /// The most cells.
    pub const MAX_CELLS: usize = 10_000;
}

/// The paper's Figure 3: clean pictures are noised to one time, taken to another in one step, and denoised with several clocks.
#[derive(Debug, Clone, PartialEq)]
pub struct BigStepRequest {
    /// The denoiser.
    pub model: ModelId,
    /// How many scenes; not used where `clean` is given.
    pub n: usize,
    /// What the scenes and the noise descend from.
    pub seed: u64,
    /// The clean pictures, of the size of the model's (see [`Command::OpenPicture`]); scenes of the shapes world if left out, which
    /// only a model of such scenes can take.
    pub clean: Option<PictureSheet>,
    /// The time that the clean pictures are noised to; 0.6 in the paper.
    pub t_from: f64,
    /// The time that the one step goes to; 0.1 in the paper.
    pub t_to: f64,
    /// The clock times t′ that the network is then told; 0.1, 0.3, 0.5 and 0.7 in the paper.
    pub told: Vec<f64>,
    /// The rule, the schedule and the self-conditioning of the steps; its number of steps and `td` are not used.
    pub settings: Settings,
}

impl Default for BigStepRequest {
    fn default() -> Self {
        Self {
            model: ModelId::default(),
            n: 16,
            seed: 0,
            clean: None,
            t_from: 0.6,
            t_to: 0.1,
            told: (1..=7).map(|tenths| f64::from(tenths) / 10.0).collect(),
            settings: Settings::default(),
        }
    }
}

/// A training run.
#[derive(Debug)]
pub struct TrainRequest {
    /// The settings. Going on from a checkpoint, the network, the schedule and the seed have to be those of the checkpoint.
    pub config: TrainConfig,
    /// When it ends, and what it shows on the way.
    pub plan: Plan,
    /// What it learns.
    pub data: TrainData,
    /// The checkpoint to go on from; `None` starts afresh.
    pub from: Option<Arc<[u8]>>,
}

/// What a training run learns.
pub enum TrainData {
    /// The shapes world, those scenes of it that are there to learn from.
    Shapes,
    /// Picture files (PNG or JPEG), each with its name; they have no classes.
    Files(Vec<(String, Arc<[u8]>)>),
    /// Any other data set.
    Set(Box<dyn Pictures + Send>),
}

impl fmt::Debug for TrainData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shapes => write!(f, "Shapes"),
            Self::Files(files) => write!(f, "Files({})", files.len()),
            Self::Set(set) => write!(f, "Set({})", set.n_examples()),
        }
    }
}
