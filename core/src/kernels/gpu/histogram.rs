//! Counts of numbers.

use burn_cubecl::tensor::CubeTensor;

use super::program::{Constant::Count, N_INVOCATIONS, Program, Shader, empty_beside, in_order, sum_of_parts};

/// The most workgroups: each has counts of its own, which are added up.
const MOST_PARTS: usize = 64;

/// Numbers that an invocation counts before there is another workgroup.
const EACH: usize = 16;

/// How many numbers fall into each of `n_bins` between ±`limit`, and last, how many into none.
pub(super) fn histogram(x: CubeTensor, n_bins: usize, limit: f32) -> CubeTensor {
    let x = in_order(x);
    let length = x.meta.shape().num_elements();
    let n_parts = length.div_ceil(N_INVOCATIONS * EACH).min(MOST_PARTS);
    let parts = empty_beside(&x, [n_parts, n_bins + 1]);
    let program = Program { shader: Shader::Histogram, constants: vec![("N_BINS", Count(n_bins as u32))] };
    program.launch([n_parts, 1, 1], &[&x], &[&parts], &[length as u32, limit.to_bits()]);
    sum_of_parts(&parts, n_parts, [n_bins + 1])
}
