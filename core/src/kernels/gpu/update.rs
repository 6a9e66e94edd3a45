//! What a training step does to each parameter, and its gradient.

use burn_cubecl::tensor::CubeTensor;

use super::program::{Shader, Values, dims, empty_beside, empty_like, in_order, workgroups_for};

/// The numbers of one step of Adam, in the order of the shader.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) struct AdamNumbers {
    pub shorten: f32,
    pub beta_1: f32,
    pub beta_2: f32,
    pub rate: f32,
    pub epsilon: f32,
    pub decay: f32,
    pub rest: f32,
}

/// The next weight, moments and average; all tensors are flat.
pub(super) fn adam(
    weight: CubeTensor,
    gradient: CubeTensor,
    kept: [CubeTensor; 3],
    numbers: AdamNumbers,
) -> [CubeTensor; 4] {
    let [length] = dims(&weight);
    let [weight, gradient] = [weight, gradient].map(in_order);
    // Moments and average are changed where they lie, if nobody else looks at them.
    let [first, second, average] = kept.map(in_order).map(|kept| if kept.can_mut() { kept } else { kept.copy() });
    let next = empty_beside(&weight, [length]);
    let AdamNumbers { shorten, beta_1, beta_2, rate, epsilon, decay, rest } = numbers;
    let numbers = [shorten, beta_1, beta_2, rate, epsilon, decay, rest].map(f32::to_bits);
    let values = Values::of(length);
    let info = [&[values.n as u32], &numbers[..]].concat();
    let outputs = [&next, &first, &second, &average];
    values.program(Shader::Adam).launch([workgroups_for(values.n), 1, 1], &[&weight, &gradient], &outputs, &info);
    [next, first, second, average]
}

/// `a·x + b·y`.
pub(super) fn mix(x: CubeTensor, y: CubeTensor, a: f32, b: f32) -> CubeTensor {
    let values = Values::of(x.meta.shape().num_elements());
    let [x, y] = [x, y].map(in_order);
    let sum = empty_like(&x);
    let info = [values.n as u32, a.to_bits(), b.to_bits()];
    values.program(Shader::Mix).launch([workgroups_for(values.n), 1, 1], &[&x, &y], &[&sum], &info);
    sum
}

/// Adds the squares of all numbers of `x` to `sums`, some to each.
pub(super) fn add_squares(sums: CubeTensor, x: CubeTensor) -> CubeTensor {
    let [sums, x] = [sums, x].map(in_order);
    let [n_sums] = dims(&sums);
    let next = empty_like(&sums);
    let values = Values::of(x.meta.shape().num_elements());
    values.program(Shader::Squares).launch([n_sums, 1, 1], &[&sums, &x], &[&next], &[values.n as u32]);
    next
}
