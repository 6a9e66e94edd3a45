//! Adam and the average of the weights, in one pass over each parameter.

use burn::{
    backend::Dispatch,
    optim::{Adam, AdamConfig, AdamState, AdaptiveMomentumState, Optimizer as _},
    tensor::{Device, Tensor, TensorData},
};
use rayon::prelude::*;

use super::{
    gpu::{self, AdamNumbers, GpuWithoutGradients as _},
    is_on_cpu,
    vectors::in_vectors,
};

/// Numbers in one task.
const VALUES: usize = 1 << 14;

/// What Adam's moments forget, and what keeps it from dividing by nothing.
const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// What one step of learning has for all parameters.
#[derive(Debug, Clone, Copy)]
pub struct Learning {
    /// The learning rate.
    pub rate: f64,
    /// What gradients are multiplied with first.
    pub shorten: f64,
    /// How much of the averaged weights is kept.
    pub decay: f64,
}

/// A parameter, Adam's moments of it, and its average.
pub struct Learner {
    /// The parameter.
    pub value: Tensor<1>,
    /// Adam's moments; `None` before the first step.
    pub moments: Option<AdamState<1>>,
    /// The average.
    pub average: Tensor<1>,
}

impl Learning {
    /// The parameter after a step along its gradient.
    #[must_use]
    pub fn step(self, learner: Learner, gradient: Tensor<1>) -> Learner {
        if is_on_cpu(&gradient) {
            self.step_at_once(learner, gradient)
        } else if gpu::has(&gradient) {
            self.step_on_card(learner, gradient)
        } else {
            self.step_by_step(learner, gradient)
        }
    }

    /// The twin of the others.
    fn step_by_step(self, learner: Learner, gradient: Tensor<1>) -> Learner {
        let Learner { value, moments, average } = learner;
        let adam: Adam = AdamConfig::new().with_beta_1(BETA_1).with_beta_2(BETA_2).with_epsilon(EPSILON).build();
        let (value, moments) = adam.step(self.rate, value, gradient.mul_scalar(self.shorten), moments);
        let average = average.mul_scalar(self.decay) + value.clone().mul_scalar(1.0 - self.decay);
        Learner { value, moments, average }
    }

    /// In one pass: on a graphics card a dozen take longer to start than to run.
    fn step_on_card(self, learner: Learner, gradient: Tensor<1>) -> Learner {
        let Learner { value, moments, average } = learner;
        let (first, second, time) = moments_of(moments, &gradient);
        // Moments start at 0; these make up for it.
        let [missing_1, missing_2] = [BETA_1, BETA_2].map(|beta| 1.0 - beta.powi(time as i32));
        let numbers = AdamNumbers {
            shorten: self.shorten as f32,
            beta_1: BETA_1,
            beta_2: BETA_2,
            rate: self.rate as f32 * missing_2.sqrt() / missing_1,
            epsilon: EPSILON * missing_2.sqrt(),
            decay: self.decay as f32,
            rest: (1.0 - self.decay) as f32,
        };
        let tensors = [value, gradient, first, second, average].map(Tensor::into_dispatch);
        let [value, gradient, first, second, average] = tensors;
        let (value, first, second, average) = Dispatch::gpu_adam(value, gradient, first, second, average, numbers);
        let [value, first, second, average] = [value, first, second, average].map(Tensor::from_dispatch);
        Learner { value, moments: Some(AdamState::new(AdaptiveMomentumState::new(time, first, second))), average }
    }

    fn step_at_once(self, learner: Learner, gradient: Tensor<1>) -> Learner {
        let device = gradient.device();
        let (first, second, time) = moments_of(learner.moments, &gradient);
        let numbers = |tensor: Tensor<1>| -> Vec<f32> { tensor.into_data().try_into_vec().expect("weights are f32") };
        let gradient = numbers(gradient);
        let [mut value, mut first, mut second, mut average] =
            [learner.value, first, second, learner.average].map(numbers);
        let correction = (1.0 - BETA_2.powi(time as i32)).sqrt();
        let factors = Factors {
            shorten: self.shorten as f32,
            rate: self.rate as f32,
            correction: correction / (1.0 - BETA_1.powi(time as i32)),
            epsilon: EPSILON * correction,
            decay: self.decay as f32,
            rest: (1.0 - self.decay) as f32,
        };
        let weights = value.par_chunks_mut(VALUES).zip(average.par_chunks_mut(VALUES));
        let moments = first.par_chunks_mut(VALUES).zip(second.par_chunks_mut(VALUES));
        weights.zip(moments).zip(gradient.par_chunks(VALUES)).for_each(
            |(((value, average), (first, second)), gradient)| {
                learn_values(factors, gradient, value, first, second, average);
            },
        );
        let tensor = |numbers: Vec<f32>| {
            let n = numbers.len();
            Tensor::from_data(TensorData::new(numbers, [n]), &device)
        };
        let moments = AdaptiveMomentumState::new(time, tensor(first), tensor(second));
        Learner { value: tensor(value), moments: Some(AdamState::new(moments)), average: tensor(average) }
    }
}

/// The sum of the squares of all gradients.
#[must_use]
pub fn sum_of_squares(gradients: &[Tensor<1>], device: &Device) -> Tensor<1> {
    /// Enough for a graphics card, and not too many for the small parameters that most are.
    const N_SUMS: usize = 16;
    if gradients.iter().all(gpu::has) {
        // One launch each in place of four.
        let sums = Tensor::<1>::zeros([N_SUMS], device).into_dispatch();
        let add = |sums, gradient: &Tensor<1>| Dispatch::gpu_add_squares(sums, gradient.clone().into_dispatch());
        return Tensor::<1>::from_dispatch(gradients.iter().fold(sums, add)).sum();
    }
    let squares = gradients.iter().map(|gradient| gradient.clone().square().sum());
    squares.fold(Tensor::zeros([1], device), |sum, square| sum + square)
}

/// Adam's moments before a step, and which step it is, from 1 on.
fn moments_of(moments: Option<AdamState<1>>, like: &Tensor<1>) -> (Tensor<1>, Tensor<1>, usize) {
    match moments {
        None => (like.zeros_like(), like.zeros_like(), 1),
        Some(AdamState { momentum }) => (momentum.moment_1, momentum.moment_2, momentum.time + 1),
    }
}

#[derive(Clone, Copy)]
struct Factors {
    shorten: f32,
    rate: f32,
    correction: f32,
    epsilon: f32,
    decay: f32,
    rest: f32,
}

in_vectors! {
    fn learn_values<'a>(
        factors: Factors,
        gradient: &'a [f32],
        value: &'a mut [f32],
        first: &'a mut [f32],
        second: &'a mut [f32],
        average: &'a mut [f32],
    ) {
        let moments = first.iter_mut().zip(second);
        for (((value, average), (first, second)), gradient) in value.iter_mut().zip(average).zip(moments).zip(gradient) {
            // In the order of burn's Adam, so that every number is the same.
            let gradient = gradient * factors.shorten;
            *first = *first * BETA_1 + gradient * (1.0 - BETA_1);
            *second = *second * BETA_2 + gradient * gradient * (1.0 - BETA_2);
            let step = *first * factors.correction / (second.sqrt() + factors.epsilon);
            *value -= step * factors.rate;
            *average = *average * factors.decay + *value * factors.rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use burn::tensor::Device;

    #[test]
    fn all_at_once_is_the_same_as_step_by_step() {
        let draw = |seed| Rng::new(seed).normal_tensor([40_000], &Device::flex());
        let new = || Learner { value: draw(1), moments: None, average: draw(2) };
        let (mut ours, mut twin) = (new(), new());
        for step in 0..4_u32 {
            let learning = Learning { rate: 1e-3 * (1.0 + f64::from(step)), shorten: 0.7, decay: 0.99 };
            let gradient = draw(3 + u64::from(step));
            ours = learning.step_at_once(ours, gradient.clone());
            twin = learning.step_by_step(twin, gradient);
            for (what, ours, twin) in [("value", &ours.value, &twin.value), ("average", &ours.average, &twin.average)] {
                let [ours, twin]: [Vec<f32>; 2] = [ours, twin].map(|tensor| tensor.to_data().try_to_vec().unwrap());
                assert!(ours == twin, "{what} after step {step}");
            }
        }
    }
}
