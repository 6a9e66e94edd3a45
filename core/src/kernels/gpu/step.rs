//! The end of a sampler's step.

use burn_cubecl::tensor::CubeTensor;

use super::program::{Constant::Count, Program, Shader, Values, empty_like, in_order, workgroups_for};
use crate::kernels::step::StepNumbers;

/// The clipped estimate and the next state.
pub(super) fn finish(
    estimate: CubeTensor,
    x_t: CubeTensor,
    others: [CubeTensor; 2],
    numbers: StepNumbers,
) -> [CubeTensor; 2] {
    let [estimate, x_t] = [estimate, x_t].map(in_order);
    let [first, second] = others.map(in_order);
    let made = [(); 2].map(|()| empty_like(&x_t));
    let values = Values::of(x_t.meta.shape().num_elements());
    let StepNumbers { limit, x_t: a, x_pred: b, others: [c_1, c_2], n_others } = numbers;
    let [limit, a, b, c_1, c_2] = [limit, a, b, c_1, c_2].map(f32::to_bits);
    let constants = vec![values.constant(), ("OTHERS", Count(n_others as u32))];
    let program = Program { shader: Shader::Step, constants };
    let count = [workgroups_for(values.n), 1, 1];
    let inputs = [&estimate, &x_t, &first, &second];
    program.launch(count, &inputs, &made.each_ref(), &[values.n as u32, limit, a, b, c_1, c_2]);
    made
}
