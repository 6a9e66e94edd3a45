//! `bit-diffusion eval`: how good a model's samples are, over a grid of sampling settings and several seeds.
//!
//! `scores` says what is measured, `table` prints and writes it, `plot` draws it, `denoise` looks at single noise levels of held-out
//! data. Deliberately absent: the numbers' definitions, which are the core's.

mod captions;
mod denoise;
mod plot;
mod scores;
mod table;

use std::{ops::ControlFlow, time::Instant};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    checkpoint, device,
    model::UNet,
    sampler::{Sampler, Settings},
    self_cond::SelfCond,
    train::Kind,
};
use burn::tensor::Device;
use clap::error::ErrorKind;

use self::{
    scores::{Score, Scorer},
    table::{Row, Table},
};
use crate::{
    cli::{EvalArguments, refuse},
    files,
    output::print,
    progress::Reporter,
    sample::{self, Request},
    save::write_atomically,
    sheet,
};

/// Evaluates as the flags say.
pub(crate) fn run(arguments: &EvalArguments) -> Result<()> {
    if arguments.n == 0 || arguments.seeds == 0 {
        refuse(ErrorKind::InvalidValue, "--n and --seeds must be at least 1");
    }
    let bytes = files::read_model(&arguments.model, files::MODEL)?;
    let in_model = || files::in_file(&arguments.model);
    if checkpoint::kind(&bytes).with_context(in_model)? == Kind::Captions {
        let opened = pollster::block_on(device::open(&arguments.device))?;
        eprintln!("device: {}", opened.description);
        return show(&captions::run(arguments, &opened)?, arguments);
    }
    let header = checkpoint::inspect(&bytes).with_context(in_model)?;
    sample::check_guidance(header.config.network.n_classes, arguments.guidance)?;
    let grid = grid(arguments, header.config.schedule)?;
    let opened = pollster::block_on(device::open(&arguments.device))?;
    eprintln!("device: {}", opened.description);
    let network = checkpoint::load_network(&bytes, &opened.device).with_context(in_model)?;
    let name = arguments.model.display().to_string();

    if let Some(times) = &arguments.bit_error {
        let errors = denoise::bit_errors(&network, &opened.device, &header.config.schedule, times, arguments)?;
        print(&denoise::text(&errors))?;
        return write(arguments, "bit-error.csv", denoise::csv(&errors)?.as_bytes());
    }

    let scorer = Scorer::open(arguments, &network, &header.config.data, &opened.device)?;
    let mut rows = Vec::new();
    let mut reporter = Reporter::new(grid.len() * arguments.seeds, 0);
    for settings in grid {
        rows.push(evaluate(settings, &network, &opened.device, &scorer, arguments, &mut reporter, rows.len())?);
    }
    reporter.finish();
    let table = Table { model: name, model_steps: header.n_steps, n: arguments.n, seeds: arguments.seeds, rows };
    show(&table, arguments)
}

/// Prints a table and writes its files.
fn show(table: &Table, arguments: &EvalArguments) -> Result<()> {
    if arguments.json {
        print(&(serde_json::to_string_pretty(table)? + "\n"))?;
    } else {
        print(&table.text())?;
    }
    write(arguments, "eval.csv", table.csv().as_bytes())?;
    write(arguments, "eval.json", serde_json::to_string_pretty(table)?.as_bytes())?;
    match plot::draw(table)? {
        Some(picture) => write(arguments, "eval.png", &sheet::plot_png(&picture)?),
        None => Ok(()),
    }
}

/// Writes a file into the folder `--out`, if there is one.
fn write(arguments: &EvalArguments, name: &str, bytes: &[u8]) -> Result<()> {
    let Some(folder) = &arguments.out else { return Ok(()) };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    write_atomically(&folder.join(name), bytes)
}

/// How often a step of a sampler with a strategy runs the network.
fn evaluations_per_step(sampler: Sampler, self_cond: SelfCond) -> usize {
    let stages = match sampler {
        Sampler::Ddim | Sampler::Ddpm | Sampler::DpmSolver1 | Sampler::DpmSolverMultistep2 => 1,
        Sampler::DpmSolver2 => 2,
        Sampler::DpmSolver3 => 3,
    };
    match self_cond {
        SelfCond::SelfGuidance { .. } => 2 * stages,
        SelfCond::Off | SelfCond::Previous | SelfCond::Momentum { .. } => stages,
    }
}

/// Every combination of the settings asked for.
fn grid(arguments: &EvalArguments, schedule: bit_diffusion::schedule::Schedule) -> Result<Vec<Settings>> {
    let mut grid = Vec::new();
    for &sampler in &arguments.sampler {
        for &self_cond in &arguments.self_cond {
            let per_step = evaluations_per_step(sampler, self_cond);
            let steps: Vec<usize> = match &arguments.evaluations {
                // As many steps as the evaluations pay for.
                Some(evaluations) => evaluations.iter().map(|n| n / per_step).collect(),
                None => arguments.steps.clone(),
            };
            for n_steps in steps {
                for &td in &arguments.td {
                    let settings = Settings { n_steps, td, sampler, self_cond, guidance: arguments.guidance, schedule };
                    settings.validate()?;
                    grid.push(settings);
                }
            }
        }
    }
    if grid.is_empty() {
        bail!("there is nothing to evaluate; give --steps, --td, --sampler and --self-cond at least one value each");
    }
    Ok(grid)
}

/// One line of the table: the scores of every seed.
fn evaluate(
    settings: Settings,
    network: &UNet,
    device: &Device,
    scorer: &Scorer,
    arguments: &EvalArguments,
    reporter: &mut Reporter,
    n_rows: usize,
) -> Result<Row> {
    let mut n_evaluations = 0;
    let mut by_seed: Vec<Vec<(Score, f64)>> = Vec::new();
    let started = Instant::now();
    for i in 0..arguments.seeds {
        let request = Request { settings, n: arguments.n, seed: arguments.seed + i as u64, class: arguments.class };
        let mut last_bits = Vec::new();
        let drawn = sample::draw(network, device, &request, |_, step| {
            if step.step + 1 == settings.n_steps {
                last_bits.extend(step.x_pred.to_data().iter::<f32>());
            }
            ControlFlow::Continue(())
        })?;
        let samples = drawn.context("sampling was broken off")?;
        n_evaluations = samples.n_evaluations;
        by_seed.push(scorer.score(&samples.pictures, &last_bits, device)?);
        reporter.step(n_rows * arguments.seeds + i + 1, "evaluating");
    }
    let seconds = started.elapsed().as_secs_f64() / arguments.seeds as f64;
    Ok(Row::new(Some(settings), n_evaluations, seconds, &by_seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_are_counted_as_the_chain_counts_them() {
        use bit_diffusion::{
            model::Bernoulli,
            model::Condition,
            sampler::{Chain, State},
        };
        let bit = Bernoulli::new(0.5).unwrap();
        for sampler in Sampler::ALL {
            for self_cond in SelfCond::ALL {
                let settings = Settings { n_steps: 6, sampler, self_cond, ..Settings::default() };
                let state = State::from_seed([1, 1], 1, &Device::flex());
                let mut chain = Chain::new(settings, Condition::None, state).unwrap();
                chain.run(&bit, |_| ControlFlow::Continue(())).unwrap();
                let expected = 6 * evaluations_per_step(sampler, self_cond);
                assert_eq!(chain.state().memory.n_evaluations, expected, "{sampler:?} {self_cond:?}");
            }
        }
    }
}
