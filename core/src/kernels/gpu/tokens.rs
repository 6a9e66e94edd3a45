//! What happens to each token, to each number, and to each plane of pixels.

use burn_cubecl::tensor::CubeTensor;

use super::program::{
    Constant::Flag, Program, Shader, Values, dims, empty_beside, empty_like, empty_of, in_order, workgroups_for,
};

/// Tokens of a workgroup of the normalisation, and columns of values of one of the sums.
const EACH: usize = 8;

/// Layer normalisation over the last dimension.
pub(super) fn normalise(x: CubeTensor, weight: CubeTensor, bias: CubeTensor, epsilon: f64) -> CubeTensor {
    let [x, weight, bias] = [x, weight, bias].map(in_order);
    let y = empty_like(&x);
    let (n_tokens, token, info) = norm_info(&x, &weight, epsilon);
    token.program(Shader::TokenNorm).launch([n_tokens.div_ceil(EACH), 1, 1], &[&x, &weight, &bias], &[&y], &info);
    y
}

/// The gradients of input, weight and bias.
pub(super) fn normalise_backward(x: CubeTensor, weight: CubeTensor, epsilon: f64, dy: CubeTensor) -> [CubeTensor; 3] {
    let [x, weight, dy] = [x, weight, dy].map(in_order);
    let [dx, shares] = [(); 2].map(|()| empty_like(&x));
    let (n_tokens, token, info) = norm_info(&x, &weight, epsilon);
    token.program(Shader::TokenNormBackward).launch(
        [n_tokens.div_ceil(EACH), 1, 1],
        &[&x, &weight, &dy],
        &[&dx, &shares],
        &info,
    );
    let [width] = dims(&weight);
    [dx, column_sums(&shares, n_tokens, width), column_sums(&dy, n_tokens, width)]
}

/// The number of tokens, a token, and what the shaders are told of both.
fn norm_info(x: &CubeTensor, weight: &CubeTensor, epsilon: f64) -> (usize, Values, [u32; 3]) {
    let [width] = dims(weight);
    let n_tokens = x.meta.shape().num_elements() / width;
    let token = Values::of(width);
    (n_tokens, token, [n_tokens as u32, token.n as u32, (epsilon as f32).to_bits()])
}

/// The sum of each column of a matrix, row after row.
pub(super) fn column_sums(x: &CubeTensor, rows: usize, columns: usize) -> CubeTensor {
    let sums = empty_beside(x, [columns]);
    let row = Values::of(columns);
    let info = [rows, row.n].map(|n| n as u32);
    row.program(Shader::ColumnSums).launch([row.n.div_ceil(EACH), 1, 1], &[x], &[&sums], &info);
    sums
}

/// GELU.
pub(super) fn gelu(x: CubeTensor) -> CubeTensor {
    let x = in_order(x);
    launch_gelu(&x, None)
}

/// Its gradient.
pub(super) fn gelu_backward(x: CubeTensor, dy: CubeTensor) -> CubeTensor {
    let [x, dy] = [x, dy].map(in_order);
    launch_gelu(&x, Some(&dy))
}

fn launch_gelu(x: &CubeTensor, dy: Option<&CubeTensor>) -> CubeTensor {
    let values = Values::of(x.meta.shape().num_elements());
    let result = empty_like(x);
    let constants = vec![values.constant(), ("GRADIENT", Flag(dy.is_some()))];
    let program = Program { shader: Shader::Gelu, constants };
    program.launch([workgroups_for(values.n), 1, 1], &[x, dy.unwrap_or(x)], &[&result], &[values.n as u32]);
    result
}

/// The channels of both, `[b, c + d, …]`.
pub(super) fn join(first: CubeTensor, second: CubeTensor) -> CubeTensor {
    let [first, second] = [first, second].map(in_order);
    let mut shape = first.meta.shape().clone();
    let batch = shape[0];
    shape[1] = second.meta.shape()[1];
    assert_eq!(&shape, second.meta.shape(), "only the numbers of channels may differ");
    shape[1] += first.meta.shape()[1];
    let joined = empty_of(&first, shape);
    let lengths = [&first, &second].map(|tensor| tensor.meta.shape().num_elements() / batch);
    // In fours if both come so.
    let values = Values::of(lengths[0] | lengths[1]);
    let [a, b] = lengths.map(|length| values.count(length));
    let n = batch * (a + b);
    let info = [n, a, b].map(|n| n as u32);
    values.program(Shader::Join).launch([workgroups_for(n), 1, 1], &[&first, &second], &[&joined], &info);
    joined
}

/// Twice the width and height, each pixel four times.
pub(super) fn double(x: CubeTensor) -> CubeTensor {
    let x = in_order(x);
    let [batch, channels, height, width] = dims(&x);
    let y = empty_beside(&x, [batch, channels, 2 * height, 2 * width]);
    launch_double(&x, &y, [batch, channels, height, width], false);
    y
}

/// Its gradient, `[b, c, h, w]`.
pub(super) fn double_backward(shape: [usize; 4], dy: CubeTensor) -> CubeTensor {
    let dy = in_order(dy);
    let dx = empty_beside(&dy, shape);
    launch_double(&dy, &dx, shape, true);
    dx
}

fn launch_double(given: &CubeTensor, result: &CubeTensor, small: [usize; 4], is_gradient: bool) {
    let length: usize = small.iter().product();
    let program = Program { shader: Shader::Double, constants: vec![("GRADIENT", Flag(is_gradient))] };
    program.launch([workgroups_for(length), 1, 1], &[given], &[result], &[length, small[3]].map(|n| n as u32));
}
