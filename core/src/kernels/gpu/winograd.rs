//! Convolutions of 3 × 3 taps by Winograd's trick: a quarter of the products, between transformed tiles of 4 × 4 pixels.

use burn_cubecl::tensor::CubeTensor;

use super::{
    conv::Weights,
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

/// Whether a convolution with stride 1 fits, and is worth it.
pub(super) fn fits(weights: &Weights, x: &CubeTensor) -> bool {
    let &Weights { from, to, size, .. } = weights;
    let numbers = NUMBERS * from.max(to).next_multiple_of(4) * Tiles::of(x).n;
    size == 3 && from.min(to) >= FEWEST_CHANNELS && numbers * size_of::<f32>() <= MOST_BYTES
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
    let program = Program { shader: Shader::WinogradIn, constants: Vec::new() };
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
