//! How good a captioner's captions are: against people's captions, and for shapes whether they are true.

use std::{path::Path, time::Instant};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    device::Opened as OpenedDevice, metrics::captions::caption_scores, model::Method, sampler::Settings,
    train::CaptionData,
};
use burn::tensor::{Device, Tensor, TensorData};

use super::{
    grid,
    scores::Score,
    table::{Row, Table},
};
use crate::{
    caption::{How, Opened, is_true},
    captions,
    cli::{CaptionDataArguments, EvalArguments},
    data::Split,
    progress::Reporter,
};

/// Pictures that are captioned at once.
const BATCH: usize = 64;

/// Pictures to caption, what a captioner sees of them, and what people said of them.
struct Examples {
    pixels: Vec<Vec<u8>>,
    references: Vec<Vec<String>>,
    inputs: Vec<f32>,
}

/// Scores a captioner over a grid of settings, and a baseline if one is given.
pub(super) fn run(arguments: &EvalArguments, opened_device: &OpenedDevice) -> Result<Table> {
    let device = &opened_device.device;
    let of = CaptionDataArguments { tokenizer: arguments.tokenizer.clone(), features: arguments.features.clone() };
    let opened = Opened::open(&arguments.model, &of, device)?;
    let examples = read(&opened, &of, arguments)?;
    let is_diffusion = opened.header.config.network.method == Method::BitDiffusion;
    let grid = if is_diffusion { grid(arguments, opened.header.config.schedule)? } else { vec![Settings::default()] };
    let mut reporter = Reporter::new(grid.len() * arguments.seeds, 0);
    let mut rows = Vec::new();
    for settings in grid {
        rows.push(row(&opened, &examples, Some(settings).filter(|_| is_diffusion), arguments, device)?);
        reporter.step(rows.len() * arguments.seeds, "captioning");
    }
    if let Some(path) = &arguments.baseline {
        rows.push(baseline(path, &of, &examples, arguments, device)?);
    }
    reporter.finish();
    Ok(Table {
        model: arguments.model.display().to_string(),
        model_steps: opened.header.n_steps,
        n: examples.pixels.len(),
        seeds: arguments.seeds,
        rows,
    })
}

fn baseline(
    path: &Path,
    of: &CaptionDataArguments,
    examples: &Examples,
    arguments: &EvalArguments,
    device: &Device,
) -> Result<Row> {
    let opened = Opened::open(path, of, device)?;
    if opened.header.config.network.method != Method::Autoregressive {
        bail!("the baseline has to be an autoregressive captioner: {}", path.display());
    }
    row(&opened, examples, None, arguments, device)
}

/// Reads the held-out pictures.
fn read(opened: &Opened, of: &CaptionDataArguments, arguments: &EvalArguments) -> Result<Examples> {
    let network = &opened.header.config.network;
    let mut data: CaptionData = captions::open(of, arguments.data.as_deref(), Split::Test, network)?;
    let n = arguments.n.min(data.pictures.n_examples());
    let mut examples = Examples { pixels: Vec::new(), references: Vec::new(), inputs: Vec::new() };
    for index in 0..n {
        let (inputs, references) = data.read(network, index)?;
        examples.pixels.push(data.pictures.read(index)?.pixels);
        examples.inputs.extend(inputs);
        examples.references.push(references);
    }
    Ok(examples)
}

/// One line of the table: the scores of every seed. Without settings the captioner is an autoregressive one, to which seeds mean nothing.
fn row(
    opened: &Opened,
    examples: &Examples,
    settings: Option<Settings>,
    arguments: &EvalArguments,
    device: &Device,
) -> Result<Row> {
    let mut by_seed = Vec::new();
    let mut n_evaluations = 0;
    let started = Instant::now();
    let seeds = if settings.is_some() { arguments.seeds } else { 1 };
    for i in 0..seeds {
        let seed = arguments.seed + i as u64;
        let (captions, n) = caption_all(
            opened,
            examples,
            |batch| match settings {
                Some(settings) => How::Bits { settings, seed: seed.wrapping_add((batch as u64) << 32) },
                None => How::Tokens { beam: arguments.beam },
            },
            device,
        )?;
        n_evaluations = n;
        by_seed.push(scores(&captions, examples, &opened.header.config.data)?);
    }
    let seconds = started.elapsed().as_secs_f64() / seeds as f64;
    Ok(Row::new(settings, n_evaluations, seconds, &by_seed))
}

fn caption_all(
    opened: &Opened,
    examples: &Examples,
    how: impl Fn(usize) -> How,
    device: &Device,
) -> Result<(Vec<String>, usize)> {
    let [channels, height, width] = opened.header.config.network.eye.input_shape();
    let one = channels * height * width;
    let (mut captions, mut n_evaluations) = (Vec::new(), 0);
    for (batch, inputs) in examples.inputs.chunks(BATCH * one).enumerate() {
        let shape = [inputs.len() / one, channels, height, width];
        let pictures = Tensor::<4>::from_data(TensorData::new(inputs.to_vec(), shape), device);
        let made = opened.write(&opened.captioner.look(pictures)?, how(batch))?;
        captions.extend(made.captions);
        n_evaluations = n_evaluations.max(made.n_evaluations);
    }
    Ok((captions, n_evaluations))
}

/// All scores that apply to captions of these data.
fn scores(captions: &[String], examples: &Examples, data: &str) -> Result<Vec<(Score, f64)>> {
    let mut scores = Vec::new();
    if data == bit_diffusion::data::shapes::NAME {
        let share = |is_it: &dyn Fn(usize) -> bool| {
            100.0 * (0..captions.len()).filter(|i| is_it(*i)).count() as f64 / captions.len() as f64
        };
        scores.push((Score::True, share(&|i| is_true(&captions[i], &examples.pixels[i]) == Some(true))));
        scores.push((Score::Exact, share(&|i| examples.references[i].contains(&captions[i]))));
    }
    let found = caption_scores(captions, &examples.references).context("the captions cannot be scored")?;
    scores.push((Score::Bleu4, 100.0 * found.bleu[3]));
    scores.push((Score::Cider, found.cider));
    scores.push((Score::RougeL, found.rouge));
    Ok(scores)
}
