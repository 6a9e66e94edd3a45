//! How many bits of held-out data a network gets wrong in one look, at given noise levels.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    data::Pictures as _,
    metrics::bits::bit_error_rate,
    model::{Condition, Denoiser as _, Input, UNet},
    objective::corrupt,
    rng::Rng,
    schedule::Schedule,
};
use bit_diffusion_ui::batch_size;
use burn::tensor::{Device, Tensor};

use crate::{
    cli::EvalArguments,
    data::{self, Split},
};

/// The share of wrong bits at one time.
pub(super) struct BitError {
    pub t: f64,
    pub gamma: f64,
    /// Seeing zeros in place of an earlier estimate.
    pub first: f64,
    /// Seeing the network's own first estimate.
    pub self_conditioned: f64,
}

/// Noises held-out pictures to each time and lets the network guess them, first with and then with self-conditioning.
pub(super) fn bit_errors(
    network: &UNet,
    device: &Device,
    schedule: &Schedule,
    times: &[f64],
    arguments: &EvalArguments,
) -> Result<Vec<BitError>> {
    let config = network.config();
    if let Some(t) = times.iter().find(|t| !(0.0..=1.0).contains(*t)) {
        bail!("the time {t} is not from 0 to 1; give --bit-error other times");
    }
    let codec = config.codec()?;
    let mut pictures = data::open(arguments.data.as_deref(), Split::Test, config.size, config.channels)?;
    let n = arguments.n.min(pictures.n_examples());
    let mut rng = Rng::new(arguments.seed);
    let mut totals = vec![[0.0; 2]; times.len()];
    for first in (0..n).step_by(batch_size(config.size)) {
        let count = batch_size(config.size).min(n - first);
        let mut pixels = Vec::new();
        let mut classes = Vec::new();
        for i in first..first + count {
            let picture = pictures.read(i)?;
            pixels.extend(config.symbols_of(&picture));
            classes.push(Some(picture.class));
        }
        let condition = if config.n_classes > 0 { Condition::Classes(classes) } else { Condition::None };
        let x_0 = codec.encode_tensor(&pixels, [count, config.channels, config.size, config.size], device)?;
        network
            .accepts(x_0.dims(), &condition)
            .context("these data do not fit the model; choose others with --data")?;
        let truth: Vec<f32> = x_0.to_data().iter::<f32>().collect();
        let eps = rng.normal_tensor(x_0.dims(), device);
        for (&t, totals) in times.iter().zip(&mut totals) {
            let gamma = vec![schedule.gamma(t); count];
            let x_t = corrupt(x_0.clone(), eps.clone(), &gamma);
            let look = |x_pred: Tensor<4>| {
                let input = Input { x_t: x_t.clone(), x_pred, gamma: &gamma, condition: &condition };
                network.estimate(input).clamp(-config.scale, config.scale)
            };
            let once = look(x_t.zeros_like());
            let twice = look(once.clone());
            for (total, estimate) in totals.iter_mut().zip([once, twice]) {
                let bits: Vec<f32> = estimate.into_data().iter::<f32>().collect();
                *total += bit_error_rate(&bits, &truth)? * count as f64 / n as f64;
            }
        }
    }
    let rows = times.iter().zip(totals).map(|(&t, [first, self_conditioned])| BitError {
        t,
        gamma: schedule.gamma(t),
        first,
        self_conditioned,
    });
    Ok(rows.collect())
}

/// Columns for people.
pub(super) fn text(errors: &[BitError]) -> String {
    let mut out = String::from("t      γ        wrong bits %  with self-conditioning %\n");
    for BitError { t, gamma, first, self_conditioned } in errors {
        let _ = writeln!(out, "{t:<5}  {gamma:<7.5}  {:<12.3}  {:.3}", 100.0 * first, 100.0 * self_conditioned);
    }
    out
}

/// Comma-separated values.
pub(super) fn csv(errors: &[BitError]) -> Result<String> {
    let mut out = String::from("t,gamma,wrong bits,wrong bits self-conditioned\n");
    for BitError { t, gamma, first, self_conditioned } in errors {
        writeln!(out, "{t},{gamma:.8},{first:.6},{self_conditioned:.6}")?;
    }
    Ok(out)
}
