//! Pictures as a screen shows them.

use burn::{backend::Cube, tensor::Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::{
    has,
    program::{Program, Shader, empty_beside, in_order, workgroups_for},
};

/// Between pictures, in pixels.
const GAP: usize = 1;

/// Rows begin at multiples of so many pixels: 256 bytes, as copies into textures want.
const ROW: usize = 64;

/// Pictures in a grid, in a buffer of the card.
pub(crate) struct Pixels {
    /// A byte each of red, green, blue and opacity in the place of every number, row by row.
    pub colours: CubeTensor,
    /// Of the grid.
    pub width: u32,
    /// Of the grid.
    pub height: u32,
    /// From the beginning of a row to that of the next.
    pub bytes_per_row: u32,
}

/// The pictures that analog bits stand for by threshold, about as many in a row as there are rows; `bright` is the brightness of each of the 2ⁿ
/// codes that a colour value may have. `None` where the shader cannot be used.
///
/// # Shapes
/// - `bits`: `[b, c·n, size, size]` of c = 1 or 3 channels
pub(crate) fn pixels(bits: Tensor<4>, bright: &[u8]) -> Option<Pixels> {
    assert!(bright.len().is_power_of_two(), "{} codes are not those of some bits", bright.len());
    let n_bits = bright.len().ilog2() as usize;
    let [n, planes, size, _] = bits.dims();
    if !has(&bits) || (planes != n_bits && planes != 3 * n_bits) {
        return None;
    }
    let bits = in_order(bits.try_into_primitive::<Cube>().ok()?);
    let columns = (n as f64).sqrt().ceil() as usize;
    let [width, height] = [columns, n.div_ceil(columns)].map(|pictures| pictures * (size + GAP) - GAP);
    let pitch = width.next_multiple_of(ROW);
    let colours = empty_beside(&bits, [height, pitch]);
    let info = [n, planes / n_bits, n_bits, size, columns, width, height, pitch].map(|n| n as u32);
    let packed = bright.chunks(4).map(|four| four.iter().rev().fold(0, |packed, &byte| packed << 8 | u32::from(byte)));
    let info: Vec<u32> = info.into_iter().chain(packed).collect();
    let program = Program { shader: Shader::Pixels, constants: Vec::new() };
    program.launch([workgroups_for(height * pitch), 1, 1], &[&bits], &[&colours], &info);
    Some(Pixels { colours, width: width as u32, height: height as u32, bytes_per_row: 4 * pitch as u32 })
}
