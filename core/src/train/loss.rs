//! The loss of Algorithm 1.

use burn::tensor::Tensor;

use crate::{
    Error,
    error::check_number,
    model::{Condition, Denoiser, Input},
    objective::corrupt,
    rng::Rng,
    schedule::Schedule,
};

/// The share of a batch that trains with an estimate of its own instead of zeros; the rest keep the network able to start.
pub const DEFAULT_SELF_COND_SHARE: f64 = 0.5;

/// The random part of one training example each: noise, noise level, and who sees an estimate.
#[derive(Debug, Clone)]
pub struct Draw<const D: usize> {
    /// Standard normal noise, `[b, c, …]`.
    pub eps: Tensor<D>,
    /// The noise level of each example.
    pub gamma: Vec<f64>,
    /// How many examples, the first ones, are self-conditioned.
    pub n_self_cond: usize,
}

impl<const D: usize> Draw<D> {
    /// Draws t ~ U(0, 1) for each example, noise for data like `x_0`, and how many see an estimate, `share` of them on average.
    pub fn new(x_0: &Tensor<D>, schedule: &Schedule, share: f64, rng: &mut Rng) -> Result<Self, Error> {
        check_number("self-conditioning share", share, |s| (0.0..=1.0).contains(&s), "a number from 0 to 1")?;
        let shape = x_0.dims();
        let gamma = (0..shape[0]).map(|_| schedule.gamma(rng.uniform())).collect();
        // Deviation: where share·b is no whole number, a coin decides on the one more, so that batches of 1 learn both ways.
        let n_self_cond = ((share * shape[0] as f64) + rng.uniform()).floor() as usize;
        Ok(Self { eps: rng.normal_tensor(shape, &x_0.device()), gamma, n_self_cond: n_self_cond.min(shape[0]) })
    }
}

/// The training loss of Algorithm 1, averaged over all elements, or over those of some weight.
///
/// The data are corrupted; for the first `n_self_cond` examples the network makes an estimate, clipped and with no gradient
/// through it, the others get zeros (the authors split the batch so, rather than by a coin for all of it); then the network
/// predicts again, seeing that, and is compared with the target.
///
/// # Shapes
/// - `x_0`: `[b, c, …]`; `weight`: the same, or 1 where it is the same for all; result: `[1]`
pub fn loss<const D: usize>(
    denoiser: &dyn Denoiser<D>,
    x_0: Tensor<D>,
    condition: &Condition,
    draw: &Draw<D>,
    weight: Option<Tensor<D>>,
) -> Result<Tensor<1>, Error> {
    let shape = x_0.dims();
    denoiser.accepts(shape, condition)?;
    condition.validate(shape[0])?;
    if draw.eps.dims() != shape {
        return Err(Error::shape("training noise", &draw.eps.dims(), format!("the shape of the data, {shape:?}")));
    }
    if draw.gamma.len() != shape[0] {
        let expected = format!("one noise level for each of {} examples", shape[0]);
        return Err(Error::shape("noise levels", &[draw.gamma.len()], expected));
    }
    if draw.n_self_cond > shape[0] {
        let allowed = format!("at most the {} examples there are", shape[0]);
        return Err(Error::argument("self-conditioned examples", draw.n_self_cond, allowed));
    }
    let objective = denoiser.objective();
    objective.validate()?;

    // 1. Corrupt the data.
    let gamma = &draw.gamma;
    let x_t = corrupt(x_0.clone(), draw.eps.clone(), gamma);

    // 2. The self-conditioning estimate, without a gradient.
    let mut x_pred = x_t.zeros_like();
    let n = draw.n_self_cond;
    if n > 0 {
        let x_t = x_t.clone().narrow(0, 0, n);
        let first = condition.narrow(0, n);
        let input = Input { x_pred: x_t.zeros_like(), x_t, gamma: &gamma[..n], condition: &first };
        let estimate = denoiser.estimate_detached(input).clamp(-objective.scale, objective.scale);
        x_pred =
            if n == shape[0] { estimate } else { Tensor::cat(vec![estimate, x_pred.narrow(0, n, shape[0] - n)], 0) };
    }

    // 3. Predict, and compare.
    let elements = denoiser.losses(Input { x_t, x_pred, gamma, condition }, x_0, draw.eps.clone());
    Ok(match weight {
        None => elements.mean(),
        Some(weight) => {
            let weight = weight.expand(shape);
            (elements * weight.clone()).sum() / weight.sum()
        }
    })
}
