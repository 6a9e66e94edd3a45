//! Convolutions of 3 × 3 taps by Winograd's trick: a quarter of the products, between transformed tiles of 4 × 4 pixels.

use burn_cubecl::tensor::CubeTensor;

use super::{
    conv::Weights,
    kept::made_once,
    product::{Finish, Fours, Onto, Product},
    program::{Constant::Flag, N_INVOCATIONS, Program, Shader, dims, empty_beside, in_order},
};

/// Numbers of a transformed tile, 6 × 6.
const NUMBERS: usize = 36;

/// Fewer channels than these are not worth the transforms.
const FEWEST_CHANNELS: usize = 16;

/// The most bytes of a buffer that WebGPU guarantees.
const MOST_BYTES: usize = 1 << 27;

/// How pictures are cut into tiles.
#[derive(Clone, Copy)]
struct Tiles {
    height: usize,
    /// Tiles in a row.
    row: usize,
    of_picture: usize,
    n: usize,
}

impl Tiles {
    fn of(x: &CubeTensor) -> Self {
        let [batch, _, height, width] = dims(x);
        let row = width / 4;
        let of_picture = row * height.div_ceil(4);
        Self { height, row, of_picture, n: batch * of_picture }
    }

    /// Transforms pictures, four channels at a time, to `[36, c/4, n, 4]`.
    fn transformed(&self, x: &CubeTensor, shader: Shader) -> CubeTensor {
        let [_, channels, ..]: [usize; 4] = dims(x);
        let result = empty_beside(x, [NUMBERS, channels.div_ceil(4), self.n, 4]);
        Program { shader, constants: Vec::new() }.launch(self.count(channels), &[x], &[&result], &self.info(channels));
        result
    }

    fn count(&self, channels: usize) -> [usize; 3] {
        [self.n.div_ceil(N_INVOCATIONS), channels.div_ceil(4), 1]
    }

    fn info(&self, channels: usize) -> [u32; 5] {
        [channels, self.height, self.row, self.of_picture, self.n].map(|n| n as u32)
    }

    /// Transformed pictures as matrices, a row for each channel and a column for each tile.
    fn channels(tensor: &CubeTensor) -> Fours<'_> {
        let [_, vectors, n, _]: [usize; 4] = dims(tensor);
        Fours { tensor, first: 0, row: n, column: 1, head: 0, example: vectors * n, is_turned: true }
    }
}

/// Whether a convolution of `x`, from and to so many channels, fits, and is worth it.
pub(super) fn fits(x: &CubeTensor, [from, to]: [usize; 2], size: usize, stride: usize) -> bool {
    let [_, _, _, width]: [usize; 4] = dims(x);
    let numbers = NUMBERS * from.max(to).next_multiple_of(4) * Tiles::of(x).n;
    size == 3
        && stride == 1
        && width.is_multiple_of(4)
        && from.min(to) >= FEWEST_CHANNELS
        && numbers * size_of::<f32>() <= MOST_BYTES
}

/// `x ∗ weight + bias`, added to what is given, of the size of `x`.
pub(super) fn convolve(
    weights: &Weights,
    weight: CubeTensor,
    x: CubeTensor,
    bias: Option<&CubeTensor>,
    onto: Option<Onto<'_>>,
) -> CubeTensor {
    let x = in_order(x);
    let &Weights { from, to, .. } = weights;
    let tiles = Tiles::of(&x);
    let [batch, _, height, width] = dims(&x);
    let [from, to_filled] = [from, to].map(|channels| channels.next_multiple_of(4));

    let given = tiles.transformed(&x, Shader::WinogradIn);
    let weight = transformed(weights, weight);
    let made = empty_beside(&x, [NUMBERS, to_filled / 4, tiles.n, 4]);
    let of_weights = Fours {
        tensor: &weight,
        first: 0,
        row: 1,
        column: to_filled / 4,
        head: 0,
        example: from * to_filled / 4,
        is_turned: true,
    };
    let product = Product { examples: NUMBERS, heads: 1, rows: to_filled, inner: from, columns: tiles.n, factor: 1.0 };
    product.launch_fours([of_weights, Tiles::channels(&given), Tiles::channels(&made)], Finish::NONE);

    let y = empty_beside(&x, [batch, to, height, width]);
    let constants = vec![("BIASED", Flag(bias.is_some())), ("ONTO", Flag(onto.is_some()))];
    // A shader that adds nothing does not read what could be added.
    let inputs = [&made, bias.unwrap_or(&made), onto.map_or(&made, |onto| onto.tensor)];
    let scale = onto.map_or(1.0, |onto| onto.scale).to_bits();
    let info = [&tiles.info(to)[..], &[scale]].concat();
    Program { shader: Shader::WinogradOut, constants }.launch(tiles.count(to), &inputs, &[&y], &info);
    y
}

/// `[36, from, to/4, 4]`, where channels are filled up to whole vectors.
fn transformed(weights: &Weights, weight: CubeTensor) -> CubeTensor {
    let [height, width] = [weights.from.next_multiple_of(4), weights.to.div_ceil(4)];
    let program = Program { shader: Shader::WinogradWeights, constants: vec![("MIRRORED", Flag(weights.is_mirrored))] };
    let info = [weights.from, weights.to, weights.to_step, weights.from_step, width, height].map(|n| n as u32);
    let count = [(height * width).div_ceil(N_INVOCATIONS), 1, 1];
    made_once(program, count, weight, &info, [NUMBERS, height, width, 4])
}

/// The gradient of the weights, `[to, from, 3, 3]`.
pub(super) fn w_backward(x: CubeTensor, [to, from, ..]: [usize; 4], dy: CubeTensor) -> CubeTensor {
    let [x, dy] = [x, dy].map(in_order);
    let tiles = Tiles::of(&x);
    let given = tiles.transformed(&x, Shader::WinogradIn);
    let slopes = tiles.transformed(&dy, Shader::WinogradGradient);

    let [from_filled, to_filled] = [from, to].map(|channels| channels.next_multiple_of(4));
    let made = empty_beside(&x, [NUMBERS, from_filled, to_filled]);
    let result = Fours {
        tensor: &made,
        first: 0,
        row: to_filled / 4,
        column: 1,
        head: 0,
        example: from_filled * to_filled / 4,
        is_turned: false,
    };
    let slopes = Tiles::channels(&slopes);
    let slopes = Fours { row: slopes.column, column: slopes.row, is_turned: false, ..slopes };
    let product =
        Product { examples: NUMBERS, heads: 1, rows: from_filled, inner: tiles.n, columns: to_filled, factor: 1.0 };
    product.launch_fours([Tiles::channels(&given), slopes, result], Finish::NONE);

    let dw = empty_beside(&x, [to, from, 3, 3]);
    let program = Program { shader: Shader::WinogradTaps, constants: Vec::new() };
    let count = [(from * to_filled / 4).div_ceil(N_INVOCATIONS), 1, 1];
    let info = [from, to, from_filled * to_filled / 4].map(|n| n as u32);
    program.launch(count, &[&made], &[&dw], &info);
    dw
}
