//! Convolutions of 3 × 3 taps by Winograd's trick: a quarter of the products, between transformed tiles of 4 × 4 pixels.

use burn_cubecl::tensor::CubeTensor;

use super::{
    conv::Weights,
    product::{Matrices, Product},
    program::{
        Constant::{Count, Flag},
        N_INVOCATIONS, Program, Shader, dims, empty_beside, in_order,
    },
};

/// Numbers of a transformed tile, 6 × 6.
const NUMBERS: usize = 36;

/// Output channels of an invocation of the product.
const CHANNELS: usize = 8;

/// Fewer channels than these are not worth the transforms.
const FEWEST_CHANNELS: usize = 16;

/// The most bytes of a buffer that WebGPU guarantees.
const MOST_BYTES: usize = 1 << 27;

/// How pictures are cut into tiles.
#[derive(Clone, Copy)]
struct Tiles {
    height: usize,
    width: usize,
    /// Tiles in a row.
    row: usize,
    of_picture: usize,
    n: usize,
}

impl Tiles {
    fn of(x: &CubeTensor) -> Self {
        let [batch, _, height, width] = dims(x);
        let row = width.div_ceil(4);
        let of_picture = row * height.div_ceil(4);
        Self { height, width, row, of_picture, n: batch * of_picture }
    }

    fn info(&self, channels: usize) -> [u32; 6] {
        [channels, self.height, self.width, self.row, self.of_picture, self.n].map(|n| n as u32)
    }
}

/// Whether a convolution of `x`, from and to so many channels, fits, and is worth it.
pub(super) fn fits(x: &CubeTensor, [from, to]: [usize; 2], size: usize, stride: usize) -> bool {
    let numbers = NUMBERS * from.max(to).next_multiple_of(4) * Tiles::of(x).n;
    size == 3 && stride == 1 && from.min(to) >= FEWEST_CHANNELS && numbers * size_of::<f32>() <= MOST_BYTES
}

/// `x ∗ weight + bias`, of the size of `x`.
pub(super) fn convolve(weights: &Weights, weight: CubeTensor, x: CubeTensor, bias: Option<&CubeTensor>) -> CubeTensor {
    let x = in_order(x);
    let &Weights { from, to, .. } = weights;
    let tiles = Tiles::of(&x);
    let [batch, ..]: [usize; 4] = dims(&x);
    let from_vectors = from.div_ceil(4);

    let given = empty_beside(&x, [NUMBERS, from_vectors, tiles.n, 4]);
    let per_tile = |channels: usize| [tiles.n.div_ceil(N_INVOCATIONS), channels, 1];
    let program = Program { shader: Shader::WinogradIn, constants: vec![("FOURS", Flag(true))] };
    program.launch(per_tile(4 * from_vectors), &[&x], &[&given], &tiles.info(from));

    let weight = transformed(weights, weight);
    let made = empty_beside(&x, [NUMBERS, to, tiles.n]);
    // Along tiles and channels, and tiles of an invocation: the more, the less is loaded.
    let (across, down, each) = if tiles.n < 64 { (8, 8, 2) } else { (16, 4, 4) };
    let constants = vec![
        ("ACROSS", Count(across as u32)),
        ("DOWN", Count(down as u32)),
        ("TILES", Count(each as u32)),
        ("CHANNELS", Count(CHANNELS as u32)),
    ];
    let count = [tiles.n.div_ceil(across * each), to.div_ceil(down * CHANNELS), NUMBERS];
    let info = [from_vectors, to, tiles.n, to.next_multiple_of(CHANNELS)].map(|n| n as u32);
    Program { shader: Shader::WinogradProduct, constants }.launch(count, &[&given, &weight], &[&made], &info);

    let y = empty_beside(&x, [batch, to, tiles.height, tiles.width]);
    let program = Program { shader: Shader::WinogradOut, constants: vec![("BIASED", Flag(bias.is_some()))] };
    // A shader without a bias does not read it.
    program.launch(per_tile(to), &[&made, bias.unwrap_or(&made)], &[&y], &tiles.info(to));
    y
}

/// `[36, from/4, to, 4]`, where the channels that go out are filled up.
fn transformed(weights: &Weights, weight: CubeTensor) -> CubeTensor {
    let weight = in_order(weight);
    let from_vectors = weights.from.div_ceil(4);
    let width = weights.to.next_multiple_of(CHANNELS);
    let result = empty_beside(&weight, [NUMBERS, from_vectors, width, 4]);
    let constants = vec![("MIRRORED", Flag(weights.is_mirrored))];
    let info = [weights.from, weights.to, weights.to_step, weights.from_step, width].map(|n| n as u32);
    let count = [width.div_ceil(N_INVOCATIONS), 4 * from_vectors, 1];
    Program { shader: Shader::WinogradWeights, constants }.launch(count, &[&weight], &[&result], &info);
    result
}

/// The gradient of the weights, `[to, from, 3, 3]`.
pub(super) fn w_backward(x: CubeTensor, [to, from, ..]: [usize; 4], dy: CubeTensor) -> CubeTensor {
    let [x, dy] = [x, dy].map(in_order);
    let tiles = Tiles::of(&x);
    let count = |channels: usize| [tiles.n.div_ceil(N_INVOCATIONS), channels, 1];
    let given = empty_beside(&x, [NUMBERS, from, tiles.n]);
    let program = Program { shader: Shader::WinogradIn, constants: vec![("FOURS", Flag(false))] };
    program.launch(count(from), &[&x], &[&given], &tiles.info(from));
    let slopes = empty_beside(&x, [NUMBERS, to, tiles.n]);
    let program = Program { shader: Shader::WinogradGradient, constants: Vec::new() };
    program.launch(count(to), &[&dy], &[&slopes], &tiles.info(to));

    let made = empty_beside(&x, [NUMBERS, from, to]);
    let matrices = |tensor: &CubeTensor, rows: usize, columns: usize| Matrices {
        tensor: tensor.clone(),
        first: 0,
        row: columns,
        column: 1,
        head: 0,
        example: rows * columns,
    };
    let product = Product { examples: NUMBERS, heads: 1, rows: from, inner: tiles.n, columns: to, factor: 1.0 };
    let (left, right) = (matrices(&given, from, tiles.n), matrices(&slopes, to, tiles.n).transposed());
    product.launch(&left, &right, None, &matrices(&made, from, to));

    let dw = empty_beside(&x, [to, from, 3, 3]);
    let program = Program { shader: Shader::WinogradTaps, constants: Vec::new() };
    program.launch([to.div_ceil(N_INVOCATIONS), from, 1], &[&made], &[&dw], &[from, to].map(|n| n as u32));
    dw
}
