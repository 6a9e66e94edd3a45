//! The end of a sampler's step: clipping, and a sum of what the step has seen, in one pass.

use burn::{
    backend::{Backend, Dispatch, Flex, TensorMetadata as _, backend_extension, flex::FlexTensor, tensor::FloatTensor},
    tensor::Tensor,
};
use rayon::prelude::*;

use super::{
    extension::{tensor, values},
    gpu::{self, GpuWithoutGradients as _},
    is_on_cpu,
    vectors::in_vectors,
};

/// Numbers in one task.
const VALUES: usize = 1 << 12;

/// The most tensors that a step adds to its state and its estimate.
pub const MOST_OTHERS: usize = 2;

/// The coefficients of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepNumbers {
    /// The estimate is clipped to ±this.
    pub limit: f32,
    /// Of the state.
    pub x_t: f32,
    /// Of the clipped estimate.
    pub x_pred: f32,
    /// Of the others.
    pub others: [f32; MOST_OTHERS],
    /// How many others there are.
    pub n_others: usize,
}

/// The clipped estimate and the next state, `x_t·a + clip(estimate)·b + Σ othersᵢ·cᵢ`.
///
/// # Shapes
/// - all: `[b, c, …]`
#[must_use]
pub fn finish_step<const D: usize>(
    estimate: Tensor<D>,
    limit: f64,
    b: f64,
    (a, x_t): (f64, Tensor<D>),
    others: Vec<(f64, Tensor<D>)>,
) -> [Tensor<D>; 2] {
    assert!(others.len() <= MOST_OTHERS, "a step has at most {MOST_OTHERS} earlier estimates or noise");
    let is_on_card = gpu::has(&estimate);
    if estimate.is_autodiff() || !(is_on_card || is_on_cpu(&estimate)) {
        let x_pred = estimate.clamp(-limit, limit);
        let sum = x_t.mul_scalar(a) + x_pred.clone().mul_scalar(b);
        return [x_pred, others.into_iter().fold(sum, |sum, (c, other)| sum + other.mul_scalar(c))];
    }
    let coefficient = |i: usize| others.get(i).map_or(0.0, |(c, _)| *c as f32);
    let numbers = StepNumbers {
        limit: limit as f32,
        x_t: a as f32,
        x_pred: b as f32,
        others: std::array::from_fn(coefficient),
        n_others: others.len(),
    };
    // Where there is no other, any tensor will do: it is not read.
    let other = |i: usize| others.get(i).map_or(&x_t, |(_, other)| other).clone().into_dispatch();
    let [first, second] = [other(0), other(1)];
    let [estimate, x_t] = [estimate, x_t.clone()].map(Tensor::into_dispatch);
    let (x_pred, next) = if is_on_card {
        Dispatch::gpu_finish_step(estimate, x_t, first, second, numbers)
    } else {
        Dispatch::finish_step(estimate, x_t, first, second, numbers)
    };
    [x_pred, next].map(Tensor::from_dispatch)
}

/// `a·x + b·y`, in one pass on a graphics card.
pub(crate) fn mix<const D: usize>((a, x): (f64, Tensor<D>), (b, y): (f64, Tensor<D>)) -> Tensor<D> {
    if gpu::has(&x) && !x.is_autodiff() {
        let [x, y] = [x, y].map(Tensor::into_dispatch);
        return Tensor::from_dispatch(Dispatch::gpu_mix(x, y, a as f32, b as f32));
    }
    x.mul_scalar(a) + y.mul_scalar(b)
}

/// What the processor does at the end of a step.
#[backend_extension(Flex)]
trait StepOps: Backend {
    /// The clipped estimate and the next state.
    fn finish_step(
        estimate: FloatTensor<Self>,
        x_t: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        numbers: StepNumbers,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

impl StepOps for Flex {
    fn finish_step(
        estimate: FlexTensor,
        x_t: FlexTensor,
        first: FlexTensor,
        second: FlexTensor,
        numbers: StepNumbers,
    ) -> (FlexTensor, FlexTensor) {
        let shape = estimate.shape().to_vec();
        let mut x_pred = values(&estimate).into_owned();
        let mut next = values(&x_t).into_owned();
        let (first, second) = (values(&first), values(&second));
        let others = [&*first, &*second];
        let tasks = x_pred.par_chunks_mut(VALUES).zip(next.par_chunks_mut(VALUES)).enumerate();
        tasks.for_each(|(i, (x_pred, next))| {
            finish_values(numbers, x_pred, next);
            for (&c, other) in numbers.others[..numbers.n_others].iter().zip(others) {
                add_values(c, &other[i * VALUES..][..next.len()], next);
            }
        });
        (tensor(x_pred, shape.clone()), tensor(next, shape))
    }
}

in_vectors! {
    fn finish_values<'a>(numbers: StepNumbers, x_pred: &'a mut [f32], next: &'a mut [f32]) {
        for (x_pred, next) in x_pred.iter_mut().zip(next) {
            *x_pred = x_pred.clamp(-numbers.limit, numbers.limit);
            *next = *next * numbers.x_t + *x_pred * numbers.x_pred;
        }
    }
}

in_vectors! {
    fn add_values<'a>(c: f32, other: &'a [f32], next: &'a mut [f32]) {
        next.iter_mut().zip(other).for_each(|(next, other)| *next += other * c);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::with_twins, *};
    use crate::rng::Rng;
    use burn::tensor::Device;

    #[test]
    fn a_step_is_that_of_its_twin_to_the_bit() {
        for n_others in 0..=MOST_OTHERS {
            // More than one task, and the last one not full.
            let draw = |seed| Rng::new(seed).normal_tensor([3, 5, 700], &Device::flex());
            let others = || (0..n_others).map(|i| (0.3 + i as f64, draw(3 + i as u64))).collect();
            let run = || finish_step(draw(1), 0.9, -0.7, (1.2, draw(2)), others());
            let (ours, twin) = (run(), with_twins(run));
            for (ours, twin) in ours.into_iter().zip(twin) {
                assert_eq!(ours.into_data(), twin.into_data(), "{n_others} others");
            }
        }
    }
}
