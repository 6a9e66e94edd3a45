//! What a training step does to each parameter: one pass on a graphics card, where a dozen take longer to start than to run; elsewhere burn's own
//! operations, the twins.

use burn::{
    backend::Dispatch,
    optim::{Adam, AdamState, AdaptiveMomentumState, Optimizer as _},
    tensor::Tensor,
};

use super::gpu::{self, AdamNumbers, GpuUpdates as _};

/// β₁, β₂ and ε: those of every [`Adam`] here.
pub const BETAS: [f32; 2] = [0.9, 0.999];
/// What keeps Adam from dividing by 0.
pub const EPSILON: f32 = 1e-8;

/// The weight and the moments after one step of Adam; the gradient is multiplied by `shorten` first.
pub fn adam_step(
    adam: &Adam,
    rate: f64,
    weight: Tensor<1>,
    gradient: Tensor<1>,
    shorten: f64,
    state: Option<AdamState<1>>,
) -> (Tensor<1>, Option<AdamState<1>>) {
    if !gpu::has(&weight) {
        return adam.step(rate, weight, gradient.mul_scalar(shorten), state);
    }
    let AdaptiveMomentumState { time, moment_1, moment_2, .. } = state.map_or_else(
        || AdaptiveMomentumState::new(0, weight.zeros_like(), weight.zeros_like()),
        |state| state.momentum,
    );
    let time = time + 1;
    // Moments start at 0; these make up for it.
    let [missing_1, missing_2] = BETAS.map(|beta| 1.0 - beta.powi(time as i32));
    let numbers = AdamNumbers {
        shorten: shorten as f32,
        beta_1: BETAS[0],
        beta_2: BETAS[1],
        rate: rate as f32 * missing_2.sqrt() / missing_1,
        epsilon: EPSILON * missing_2.sqrt(),
    };
    let [weight, gradient, first, second] = [weight, gradient, moment_1, moment_2].map(Tensor::into_dispatch);
    let (weight, first, second) = Dispatch::gpu_adam(weight, gradient, first, second, numbers);
    let [first, second] = [first, second].map(Tensor::from_dispatch);
    (Tensor::from_dispatch(weight), Some(AdamState::new(AdaptiveMomentumState::new(time, first, second))))
}

/// `a·x + b·y`.
#[must_use]
pub fn mix(x: Tensor<1>, a: f64, y: Tensor<1>, b: f64) -> Tensor<1> {
    if gpu::has(&x) {
        return Tensor::from_dispatch(Dispatch::gpu_mix(x.into_dispatch(), y.into_dispatch(), a as f32, b as f32));
    }
    x.mul_scalar(a) + y.mul_scalar(b)
}
