//! Convolutions and their gradients.

use burn_cubecl::tensor::CubeTensor;

use super::program::{
    Constant::{Count, Flag},
    Program, Shader, dims, empty_beside, in_order,
};

/// Width and height of a workgroup.
const SIDE: usize = 8;

/// Pixels and channels of one invocation.
const TILE: usize = 8;

/// Workgroups that keep a large card busy.
const ENOUGH_WORKGROUPS: usize = 64;

/// The fewest pixels that are worth a part of their own: 16 steps of the shader.
const PART_PIXELS: usize = 256;

/// `x ∗ weight + bias`.
pub(super) fn forward(x: CubeTensor, weight: CubeTensor, bias: CubeTensor, stride: usize) -> CubeTensor {
    let [x, weight, bias] = [x, weight, bias].map(in_order);
    let [batch, from, height, width] = dims(&x);
    let [to, weight_from, size, _] = dims(&weight);
    assert_eq!(from, weight_from, "the weights are for {weight_from} channels, the pictures have {from}");
    let taps = size * size;
    let y = empty_beside(&x, [batch, to, height.div_ceil(stride), width.div_ceil(stride)]);
    launch(size, stride, false, [&x, &weight, &bias], &y, [from * taps, taps]);
    y
}

/// The gradient of the input, which has the sizes `x`.
pub(super) fn x_backward(x: [usize; 4], weight: CubeTensor, dy: CubeTensor, stride: usize) -> CubeTensor {
    let [weight, dy] = [weight, dy].map(in_order);
    let [_, from, size, _] = dims(&weight);
    let taps = size * size;
    let dx = empty_beside(&dy, x);
    // A gradient has no bias; the shader does not read it.
    launch(size, stride, true, [&dy, &weight, &weight], &dx, [taps, from * taps]);
    dx
}

/// `weight_steps`: how far apart neighbouring output channels lie in the weights, and neighbouring input channels.
fn launch(
    size: usize,
    stride: usize,
    is_backward: bool,
    inputs: [&CubeTensor; 3],
    y: &CubeTensor,
    weight_steps: [usize; 2],
) {
    let [batch, from, height, width] = dims(inputs[0]);
    let [_, to, out_height, out_width] = dims(y);
    let n_pixels = batch * out_height * out_width;
    let program = Program {
        shader: Shader::Conv,
        constants: vec![
            ("SIZE", Count(size as u32)),
            ("STRIDE", Count(stride as u32)),
            ("BACKWARD", Flag(is_backward)),
            ("PIXELS", Count(TILE as u32)),
            ("CHANNELS", Count(TILE as u32)),
        ],
    };
    let [weight_to, weight_from] = weight_steps;
    let info = [from, to, height, width, out_height, out_width, weight_to, weight_from, n_pixels].map(|n| n as u32);
    let count = [n_pixels.div_ceil(SIDE * TILE), to.div_ceil(SIDE * TILE), 1];
    program.launch(count, &inputs, &[y], &info);
}

/// The gradient of the weights, `[to, from, size, size]`.
pub(super) fn w_backward(x: CubeTensor, weight: [usize; 4], dy: CubeTensor, stride: usize) -> CubeTensor {
    let [x, dy] = [x, dy].map(in_order);
    let [batch, from, height, width] = dims(&x);
    let [_, to, out_height, out_width] = dims(&dy);
    let size = weight[2];
    let taps = size * size;
    let n_pixels = batch * out_height * out_width;
    let tiles = [to.div_ceil(SIDE * TILE), from.div_ceil(SIDE * TILE)];
    let wanted_parts = ENOUGH_WORKGROUPS.div_ceil(tiles[0] * tiles[1] * taps);
    let pixels_per_part = n_pixels.div_ceil(wanted_parts).next_multiple_of(PART_PIXELS);
    let n_parts = n_pixels.div_ceil(pixels_per_part);
    let length = to * from * taps;
    let parts = empty_beside(&x, [n_parts, to, from, size, size]);
    let constants = vec![("SIZE", Count(size as u32)), ("STRIDE", Count(stride as u32))];
    let info = [from, to, height, width, out_height, out_width, n_pixels, pixels_per_part].map(|n| n as u32);
    let count = [tiles[0], tiles[1], taps * n_parts];
    Program { shader: Shader::ConvWeights, constants }.launch(count, &[&x, &dy], &[&parts], &info);

    let dw = empty_beside(&x, weight);
    let sum = Program { shader: Shader::Parts, constants: Vec::new() };
    sum.launch([length.div_ceil(SIDE * SIDE), 1, 1], &[&parts], &[&dw], &[n_parts, length].map(|n| n as u32));
    dw
}

/// The gradient of the bias.
pub(super) fn bias_backward(dy: CubeTensor) -> CubeTensor {
    let dy = in_order(dy);
    let [batch, channels, height, width] = dims(&dy);
    let sums = empty_beside(&dy, [channels]);
    let program = Program { shader: Shader::ChannelSums, constants: Vec::new() };
    program.launch([channels, 1, 1], &[&dy], &[&sums], &[batch, channels, height * width].map(|n| n as u32));
    sums
}
