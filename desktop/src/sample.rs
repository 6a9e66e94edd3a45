//! `bit-diffusion sample`: pictures from a trained network, and what their chain looked like.

use std::{fmt::Write as _, ops::ControlFlow, time::Instant};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    bits::Codec,
    checkpoint,
    data::shapes::{self, ShapesScore},
    device,
    model::{Condition, UNet},
    picture_file::Film,
    rng::Rng,
    sampler::{Chain, Settings, State, Step},
};
use bit_diffusion_ui::batch_size;
use burn::tensor::{Device, Tensor};
use serde::Serialize;

use crate::{
    cli::SampleArguments,
    files::{self, MODEL},
    histogram::Histograms,
    output::print,
    progress::Reporter,
    save::write_atomically,
    sheet::{self, Pictures},
};

/// The most pictures and the most frames of a GIF.
const GIF_PICTURES: usize = 16;
const GIF_FRAMES: usize = 100;

/// How long a GIF plays.
const GIF_SECONDS: f64 = 8.0;

/// What to make.
pub(crate) struct Request {
    /// How noise becomes a picture.
    pub settings: Settings,
    /// How many pictures.
    pub n: usize,
    /// What all randomness descends from.
    pub seed: u64,
    /// The class of all pictures; each another one if left out.
    pub class: Option<usize>,
}

/// What was made.
pub(crate) struct Samples {
    /// The pictures.
    pub pictures: Pictures,
    /// The class asked for, of each picture; empty if the network has no classes.
    pub classes: Vec<usize>,
    /// How many times the network was run for each picture.
    pub n_evaluations: usize,
}

/// Makes pictures, a batch at a time; `None` if the observer, who sees the batch's number and each step, broke off.
///
/// The first pictures do not depend on how many are made after them.
pub(crate) fn draw(
    network: &UNet,
    device: &Device,
    request: &Request,
    mut observer: impl FnMut(usize, &Step<4>) -> ControlFlow<()>,
) -> Result<Option<Samples>> {
    let config = network.config();
    let codec = config.codec()?;
    let per_batch = batch_size(config.size);
    let class_of = |i: usize| request.class.unwrap_or(i % config.n_classes.max(1));
    let mut pictures = no_pictures(network);
    let mut n_evaluations = 0;
    for (batch, first) in (0..request.n).step_by(per_batch).enumerate() {
        let count = per_batch.min(request.n - first);
        let condition = if config.n_classes > 0 || request.class.is_some() {
            Condition::Classes((first..first + count).map(|i| Some(class_of(i))).collect())
        } else {
            Condition::None
        };
        // The first batch has the seed itself: the same chain as anywhere else with that seed.
        let seed = if batch == 0 { request.seed } else { Rng::new(request.seed).fork(batch as u64).next_u64() };
        let start = State::from_seed(network.state_shape(count), seed, device);
        let mut chain = Chain::new(request.settings, condition, start)?;
        let mut is_stopped = false;
        let bits = chain.run(network, |step| {
            let flow = observer(batch, step);
            is_stopped = flow.is_break();
            flow
        })?;
        if is_stopped {
            return Ok(None);
        }
        n_evaluations = chain.state().memory.n_evaluations;
        pictures.values.extend(decode(&codec, bits)?);
    }
    let classes = if config.n_classes > 0 { (0..request.n).map(class_of).collect() } else { Vec::new() };
    Ok(Some(Samples { pictures, classes, n_evaluations }))
}

/// Refuses guidance of a model that knows no classes: it would change nothing.
pub(crate) fn check_guidance(n_classes: usize, guidance: f64) -> Result<()> {
    #[expect(clippy::float_cmp, reason = "exactly 1 is how a person says: no guidance")]
    if n_classes == 0 && guidance != 1.0 {
        bail!("this model has no classes to guide towards; leave --guidance out");
    }
    Ok(())
}

fn no_pictures(network: &UNet) -> Pictures {
    let config = network.config();
    Pictures { channels: config.channels, size: config.size, alphabet: config.alphabet, values: Vec::new() }
}

/// The colour values nearest to analog bits.
fn decode(codec: &Codec, bits: Tensor<4>) -> Result<Vec<u32>> {
    Ok(codec.decode_tensor(bits)?.into_data().iter::<u32>().collect())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    model: String,
    device: &'a str,
    model_steps: usize,
    settings: Settings,
    n: usize,
    seed: u64,
    classes: &'a [usize],
    /// Runs of the network for each picture.
    evaluations: usize,
    seconds: f64,
    /// For pictures like the shapes: how exact they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    shapes: Option<ShapesScore>,
}

/// Samples as the flags say.
pub(crate) fn run(arguments: &SampleArguments) -> Result<()> {
    let bytes = files::read_model(&arguments.model, MODEL)?;
    let header = checkpoint::inspect(&bytes).with_context(|| files::in_file(&arguments.model))?;
    let settings = Settings {
        n_steps: arguments.steps,
        td: arguments.td,
        sampler: arguments.sampler,
        self_cond: arguments.self_cond,
        guidance: arguments.guidance,
        schedule: header.config.schedule,
    };
    settings.validate()?;
    if arguments.n == 0 {
        bail!("--n is 0, but must be at least 1");
    }
    for path in [Some(&arguments.out), arguments.chain.as_ref(), arguments.histogram.as_ref()].into_iter().flatten() {
        files::check_out(path)?;
    }
    let n_classes = header.config.network.n_classes;
    check_guidance(n_classes, arguments.guidance)?;
    let request = Request { settings, n: arguments.n, seed: arguments.seed, class: arguments.class };

    let opened = pollster::block_on(device::open(&arguments.device))?;
    eprintln!("device: {}", opened.description);
    let network = checkpoint::load_network(&bytes, &opened.device).with_context(|| files::in_file(&arguments.model))?;
    drop(bytes);

    let started = Instant::now();
    let mut film = arguments.chain.as_ref().map(|_| ChainFilm::new(&network, arguments.steps)).transpose()?;
    let mut histograms = arguments.histogram.as_ref().map(|_| Histograms::new(header.config.network.scale));
    let n_batches = arguments.n.div_ceil(batch_size(header.config.network.size));
    let mut reporter = Reporter::new(n_batches * arguments.steps, 0);
    let mut watched = Ok(());
    let drawn = draw(&network, &opened.device, &request, |batch, step| {
        reporter.step(batch * arguments.steps + step.step + 1, "sampling");
        if batch == 0 {
            if let Some(histograms) = &mut histograms {
                histograms.add(&step.x_t, &step.x_pred);
            }
            watched = film.as_mut().map_or(Ok(()), |film| film.add(step));
        }
        if watched.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    reporter.finish();
    watched?;
    let samples = drawn?.context("sampling was broken off")?;
    let seconds = started.elapsed().as_secs_f64();

    write_atomically(&arguments.out, &samples.pictures.png()?)?;
    if let (Some(path), Some(film)) = (&arguments.chain, film) {
        write_atomically(path, &film.film.finish())?;
    }
    if let (Some(path), Some(histograms)) = (&arguments.histogram, histograms) {
        write_atomically(path, &sheet::plot_png(&histograms.draw()?)?)?;
    }
    let report = Report {
        model: arguments.model.display().to_string(),
        device: &opened.description,
        model_steps: header.n_steps,
        settings,
        n: arguments.n,
        seed: arguments.seed,
        classes: &samples.classes,
        evaluations: samples.n_evaluations,
        seconds,
        shapes: shapes_score(&header.config.data, &samples.pictures),
    };
    if arguments.json {
        return print(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    let mut out = format!("{} ({} pictures in {seconds:.1} s)\n", arguments.out.display(), arguments.n);
    if let Some(ShapesScore { off_palette, scenes }) = report.shapes {
        let (off, whole) = (100.0 * off_palette, 100.0 * scenes);
        writeln!(out, "pixels of a wrong colour: {off:.2} %; flawless scenes: {whole:.1} %")?;
    }
    print(&out)
}

/// The exact score, if the pictures are those of a model that was trained on shapes.
pub(crate) fn shapes_score(data: &str, pictures: &Pictures) -> Option<ShapesScore> {
    let are_scenes = shapes::are_scenes(data, pictures.channels, pictures.size, pictures.alphabet);
    are_scenes.then(|| ShapesScore::of(&pictures.values))
}

/// A GIF on its way: on the left what the state shows, read by threshold, on the right what the estimate does.
struct ChainFilm {
    empty: Pictures,
    codec: Codec,
    /// One page for so many steps, and one for the last.
    every: usize,
    n_steps: usize,
    film: Film,
}

impl ChainFilm {
    fn new(network: &UNet, n_steps: usize) -> Result<Self> {
        let every = n_steps.div_ceil(GIF_FRAMES).max(1);
        let n_pages = (0..n_steps).filter(|&step| is_shown(step, every, n_steps)).count();
        let film = Film::new(n_pages, GIF_SECONDS)?;
        Ok(Self { empty: no_pictures(network), codec: network.config().codec()?, every, n_steps, film })
    }

    fn add(&mut self, step: &Step<4>) -> Result<()> {
        if !is_shown(step.step, self.every, self.n_steps) {
            return Ok(());
        }
        let side = |bits: &Tensor<4>| {
            let values = decode(&self.codec, bits.clone())?;
            Ok::<_, anyhow::Error>(Pictures { values, ..self.empty.clone() }.first(GIF_PICTURES).sheet())
        };
        Ok(self.film.add(&vec![vec![side(&step.x_t)?, side(&step.x_pred)?]])?)
    }
}

fn is_shown(step: usize, every: usize, n_steps: usize) -> bool {
    step.is_multiple_of(every) || step + 1 == n_steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_scored_exactly() {
        let scene = shapes::Scene::random(&mut Rng::new(1)).render();
        let mut broken = scene.clone();
        broken[0] ^= 1;
        let values = [scene, broken].concat();
        let pictures = Pictures { channels: 3, size: 16, alphabet: 256, values };
        let score = shapes_score("shapes", &pictures).unwrap();
        assert_eq!(score, ShapesScore { off_palette: 1.0 / 512.0, scenes: 0.5 });
        assert_eq!(shapes_score("", &pictures), Some(score));
        assert_eq!(shapes_score("pictures", &pictures), None);
        assert_eq!(shapes_score("shapes", &Pictures { alphabet: 4, ..pictures }), None);
    }

    #[test]
    fn batches_are_smaller_for_larger_pictures() {
        assert_eq!([16, 32, 64, 1024].map(batch_size), [256, 64, 16, 1]);
    }
}
