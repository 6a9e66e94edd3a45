//! What a training step does to each parameter, and its gradient.

use burn_cubecl::tensor::CubeTensor;

use super::program::{Program, Shader, dims, empty_beside, empty_like, in_order, workgroups_for};

/// The numbers of one step of Adam, in the order of the shader.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) struct AdamNumbers {
    pub shorten: f32,
    pub beta_1: f32,
    pub beta_2: f32,
    pub rate: f32,
    pub epsilon: f32,
}

/// The next weight and moments; all tensors are flat.
pub(super) fn adam(
    weight: CubeTensor,
    gradient: CubeTensor,
    moments: [CubeTensor; 2],
    numbers: AdamNumbers,
) -> [CubeTensor; 3] {
    let [length] = dims(&weight);
    let [weight, gradient] = [weight, gradient].map(in_order);
    let [first, second] = moments.map(in_order);
    let next = [(); 3].map(|()| empty_beside(&weight, [length]));
    let AdamNumbers { shorten, beta_1, beta_2, rate, epsilon } = numbers;
    let [shorten, beta_1, beta_2, rate, epsilon] = [shorten, beta_1, beta_2, rate, epsilon].map(f32::to_bits);
    let info = [length as u32, shorten, beta_1, beta_2, rate, epsilon];
    let program = Program { shader: Shader::Adam, constants: Vec::new() };
    let count = [workgroups_for(length), 1, 1];
    program.launch(count, &[&weight, &gradient, &first, &second], &next.each_ref(), &info);
    next
}

/// `a·x + b·y`.
pub(super) fn mix(x: CubeTensor, y: CubeTensor, a: f32, b: f32) -> CubeTensor {
    let length = x.meta.shape().num_elements();
    let [x, y] = [x, y].map(in_order);
    let sum = empty_like(&x);
    let program = Program { shader: Shader::Mix, constants: Vec::new() };
    let count = [workgroups_for(length), 1, 1];
    program.launch(count, &[&x, &y], &[&sum], &[length as u32, a.to_bits(), b.to_bits()]);
    sum
}

/// Adds the squares of all numbers of `x` to `sums`, some to each.
pub(super) fn add_squares(sums: CubeTensor, x: CubeTensor) -> CubeTensor {
    let [sums, x] = [sums, x].map(in_order);
    let [n_sums] = dims(&sums);
    let next = empty_like(&sums);
    let program = Program { shader: Shader::Squares, constants: Vec::new() };
    program.launch([n_sums, 1, 1], &[&sums, &x], &[&next], &[x.meta.shape().num_elements() as u32]);
    next
}
