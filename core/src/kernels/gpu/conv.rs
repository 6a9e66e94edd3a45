//! Convolutions and their gradients.
//!
//! Those of 3 × 3 taps and stride 1 are for `winograd`, if they have enough channels, and those of one pixel for `pointwise`. For the others, pictures and weights are laid out for the work
//! first, which takes little time: a border of zeros, four channels in a vector.

use burn_cubecl::tensor::CubeTensor;

use super::{
    kept::made_once,
    pointwise,
    product::Onto,
    program::{
        Constant::{Count, Flag},
        N_INVOCATIONS, Program, Shader, Values, dims, empty_beside, folded, in_order, sum_of_parts, workgroups_for,
    },
    update::mix,
    winograd,
};

/// A workgroup of the convolution: invocations along the pixels, and along the channels.
const WORKGROUP: [usize; 2] = [16, 4];

/// Pixels and channels of one invocation: the larger, the less is loaded, and the fewer invocations there are.
fn tile(n_pixels: usize, channels: usize) -> usize {
    if n_pixels * channels < 1 << 15 { 4 } else { 8 }
}

/// Invocations that keep a large card busy.
const ENOUGH_INVOCATIONS: usize = 4096;

/// `x ∗ weight + bias`.
pub(super) fn forward(x: CubeTensor, weight: CubeTensor, bias: CubeTensor, stride: usize) -> CubeTensor {
    forward_onto(x, weight, bias, stride, None)
}

/// `(x ∗ weight + bias + onto)·scale`.
pub(super) fn forward_onto(
    x: CubeTensor,
    weight: CubeTensor,
    bias: CubeTensor,
    stride: usize,
    onto: Option<Onto<'_>>,
) -> CubeTensor {
    let [batch, from, height, width] = dims(&x);
    let [to, weight_from, size, _] = dims(&weight);
    assert_eq!(from, weight_from, "the weights are for {weight_from} channels, the pictures have {from}");
    let y = [batch, to, height.div_ceil(stride), width.div_ceil(stride)];
    if let Some(onto) = onto {
        // Shaders do not check where they read.
        assert_eq!(dims(onto.tensor), y, "a sum is of two tensors of the same sizes");
    }
    let taps = size * size;
    let weights = Weights { from, to, size, to_step: from * taps, from_step: taps, is_mirrored: false };
    if winograd::fits(&x, [from, to], size, stride) {
        return winograd::convolve(&weights, weight, x, Some(&in_order(bias)), onto);
    }
    if size == 1
        && stride == 1
        && let Some(y) = pointwise::forward(&x, &weight, &bias, onto)
    {
        return y;
    }
    let y = weights.convolve(weight, &Packed::new(x, size / 2, 1), Some(&in_order(bias)), stride, y);
    match onto {
        None => y,
        Some(Onto { tensor, scale }) => mix(y, tensor.clone(), scale, scale),
    }
}

/// The gradient of the input, which has the sizes `x`.
pub(super) fn x_backward(x: [usize; 4], weight: CubeTensor, dy: CubeTensor, stride: usize) -> CubeTensor {
    let [to, from, size, _] = dims(&weight);
    let taps = size * size;
    // The gradient goes the other way.
    let weights = Weights { from: to, to: from, size, to_step: taps, from_step: from * taps, is_mirrored: true };
    if winograd::fits(&dy, [to, from], size, stride) {
        return winograd::convolve(&weights, weight, dy, None, None);
    }
    if size == 1
        && stride == 1
        && let Some(dx) = pointwise::x_backward(&weight, &dy)
    {
        return dx;
    }
    let mut dy = Packed::new(dy, size / 2, stride);
    dy.grow(x[2] + 2 * (size / 2), x[3] + 2 * (size / 2));
    weights.convolve(weight, &dy, None, 1, x)
}

/// The gradient of the weights, `[to, from, size, size]`.
pub(super) fn w_backward(x: CubeTensor, weight: [usize; 4], dy: CubeTensor, stride: usize) -> CubeTensor {
    let [to, from, size, _] = weight;
    if winograd::fits(&x, [from, to], size, stride) {
        return winograd::w_backward(x, weight, dy);
    }
    if size == 1
        && stride == 1
        && let Some(dw) = pointwise::w_backward(&x, &dy)
    {
        return dw;
    }
    let [batch, _, height, width] = dims(&dy);
    let x = Packed::new(x, size / 2, 1);
    let dy = Packed::new(dy, 0, 1).launch();
    let from_channels = if size == 3 { 4 } else { 8 };
    let tiles = [from.div_ceil(from_channels) * size, to.div_ceil(8)];
    let n_lines = batch * height;
    let lines_per_part = n_lines.div_ceil(ENOUGH_INVOCATIONS.div_ceil(tiles[0] * tiles[1]));
    let n_parts = n_lines.div_ceil(lines_per_part);
    let parts = empty_beside(&dy, [n_parts, to, from, size, size]);
    let n_values = if size == 3 { 3 } else { 2 };
    let constants = vec![("SIZE", Count(size as u32)), ("STRIDE", Count(stride as u32)), ("N_VALUES", Count(n_values))];
    let info = [from, to, height, width, x.columns, x.rows * x.columns, n_lines, lines_per_part].map(|n| n as u32);
    let count = [tiles[0].div_ceil(N_INVOCATIONS), tiles[1], n_parts];
    Program { shader: Shader::ConvWeights, constants }.launch(count, &[&x.launch(), &dy], &[&parts], &info);
    sum_of_parts(&parts, n_parts, weight)
}

/// The gradient of the bias.
pub(super) fn bias_backward(dy: CubeTensor) -> CubeTensor {
    let dy = in_order(dy);
    let [batch, channels, height, width] = dims(&dy);
    let sums = empty_beside(&dy, [channels]);
    let plane = Values::of(height * width);
    let info = [batch, channels, plane.n].map(|n| n as u32);
    plane.program(Shader::ChannelSums).launch([channels, 1, 1], &[&dy], &[&sums], &info);
    sums
}

/// Pictures, and how they are to be laid out.
struct Packed {
    x: CubeTensor,
    border: usize,
    /// Zeros are put between pixels, so that they lie this far apart.
    spread: usize,
    rows: usize,
    columns: usize,
}

impl Packed {
    fn new(x: CubeTensor, border: usize, spread: usize) -> Self {
        let [_, _, height, width] = dims(&x);
        let [rows, columns] = [height, width].map(|size| size * spread + 2 * border);
        Self { x: in_order(x), border, spread, rows, columns }
    }

    /// Sets the size: of a picture with a stride it does not follow from that of its result.
    fn grow(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
    }

    fn vectors(&self) -> usize {
        let [_, channels, ..]: [usize; 4] = dims(&self.x);
        channels.div_ceil(4)
    }

    /// `[b, c/4, rows, columns, 4]`
    fn launch(&self) -> CubeTensor {
        let [batch, channels, height, width] = dims(&self.x);
        let packed = empty_beside(&self.x, [batch, self.vectors(), self.rows, self.columns, 4]);
        let constants = vec![("BORDER", Count(self.border as u32)), ("SPREAD", Count(self.spread as u32))];
        let count = [workgroups_for(self.rows * self.columns), self.vectors(), batch];
        let info = [channels, height, width, self.rows, self.columns].map(|n| n as u32);
        Program { shader: Shader::Pack, constants }.launch(count, &[&self.x], &[&packed], &info);
        packed
    }
}

/// How weights are to be read.
pub(super) struct Weights {
    /// Channels that come in.
    pub from: usize,
    /// Channels that go out.
    pub to: usize,
    pub size: usize,
    /// From one channel that goes out to the next.
    pub to_step: usize,
    /// From one channel that comes in to the next.
    pub from_step: usize,
    /// Whether the taps come in the opposite order.
    pub is_mirrored: bool,
}

impl Weights {
    /// `[from/4, taps, width, 4]`, where `width` are the channels that go out, filled up.
    fn pack(&self, weight: CubeTensor, width: usize) -> CubeTensor {
        let taps = self.size * self.size;
        let constants = vec![("TAPS", Count(taps as u32)), ("MIRRORED", Flag(self.is_mirrored))];
        let count = [width.div_ceil(N_INVOCATIONS), self.from.div_ceil(4) * taps, 1];
        let info = [self.from, self.to, self.to_step, self.from_step, width].map(|n| n as u32);
        let program = Program { shader: Shader::PackWeights, constants };
        made_once(program, count, weight, &info, [self.from.div_ceil(4), taps, width, 4])
    }

    fn convolve(
        &self,
        weight: CubeTensor,
        x: &Packed,
        bias: Option<&CubeTensor>,
        stride: usize,
        y: [usize; 4],
    ) -> CubeTensor {
        let [batch, to, height, width] = y;
        let n_pixels = batch * height * width;
        let tile = tile(n_pixels, to);
        let weight_channels = to.next_multiple_of(tile);
        let weight = self.pack(weight, weight_channels);
        let y = empty_beside(&weight, y);
        let constants = vec![
            ("SIZE", Count(self.size as u32)),
            ("STRIDE", Count(stride as u32)),
            ("BIASED", Flag(bias.is_some())),
            ("PIXELS", Count(tile as u32)),
            ("CHANNELS", Count(tile as u32)),
        ];
        let [across, behind] = folded(n_pixels.div_ceil(WORKGROUP[0] * tile));
        let count = [across, to.div_ceil(WORKGROUP[1] * tile), behind];
        let info = [x.vectors(), to, height, width, x.columns, x.rows * x.columns, weight_channels, n_pixels];
        // A shader without a bias does not read it.
        let inputs = [&x.launch(), &weight, bias.unwrap_or(&weight)];
        Program { shader: Shader::Conv, constants }.launch(count, &inputs, &[&y], &info.map(|n| n as u32));
        y
    }
}
