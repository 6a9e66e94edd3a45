//! Pictures in Winograd's form.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]
#![expect(clippy::needless_range_loop, reason = "rows and columns of small squares are clearer by their numbers")]

use std::ops::Range;

use pulp::{NullaryFnOnce, Simd};

use super::{Grid, INPUTS, SIDE, room_for, row, turned};
use crate::kernels::conv::{Run, Shape};

/// Tiles of pictures in Winograd's form, Bᵀ·d·B: one vector of channels.
pub(super) struct Inputs<'a> {
    pub shape: Shape,
    /// How many channels the pictures have.
    pub channels: usize,
    pub x: &'a [f32],
    /// Which rows of tiles.
    pub rows: Range<usize>,
    /// The first channel.
    pub first: usize,
    /// `[36, room for tiles, lanes]`
    pub out: &'a mut [f32],
}

impl<S: Simd> NullaryFnOnce for Run<Inputs<'_>, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(Inputs { shape, channels, x, rows, first, out }, simd) = self;
        let Shape { height, width, .. } = shape;
        let grid = Grid::of(shape);
        let lanes = S::F32_LANES;
        let step = room_for(rows.len() * grid.across);
        let (out, _) = S::as_mut_simd_f32s(out);
        // Lines with a border of zeros, channels side by side.
        let length = grid.across * SIDE + 2;
        let mut lines = vec![0.0; INPUTS * length * lanes];
        for (at, tile_row) in rows.enumerate() {
            let (picture, line) = grid.line(tile_row);
            for (r, to) in lines.chunks_exact_mut(length * lanes).enumerate() {
                // One before the picture, and one behind it.
                let Some(line) = (line + r).checked_sub(1).filter(|&line| line < height) else {
                    to.fill(0.0);
                    continue;
                };
                let from = &x[((picture * channels + first) * height + line) * width..];
                interleave(from, height * width, width, lanes.min(channels - first), &mut to[lanes..], lanes);
            }
            let (lines, _) = S::as_simd_f32s(&lines);
            for i in 0..grid.across {
                let mut columns = [[simd.splat_f32s(0.0); INPUTS]; INPUTS];
                for c in 0..INPUTS {
                    let at = i * SIDE + c;
                    let mut column = [simd.splat_f32s(0.0); INPUTS];
                    for r in 0..INPUTS {
                        column[r] = lines[r * length + at];
                    }
                    columns[c] = given(simd, column);
                }
                let tile = at * grid.across + i;
                for r in 0..INPUTS {
                    let values = given(simd, row(&columns, r));
                    for c in 0..INPUTS {
                        out[(INPUTS * r + c) * step + tile] = values[c];
                    }
                }
            }
        }
    }
}

/// Lines of `length` pixels, of `count` planes, side by side: pixel i of plane k goes to `i·lanes + k`.
#[inline(always)]
pub(super) fn interleave(from: &[f32], plane: usize, length: usize, count: usize, to: &mut [f32], lanes: usize) {
    let mut first = 0;
    while first + 4 <= count {
        let lines: [&[f32]; 4] = std::array::from_fn(|i| &from[(first + i) * plane..][..length]);
        let fours = lines.map(|line| line.as_chunks::<4>().0);
        for i in 0..length / 4 {
            let to = &mut to[4 * i * lanes + first..][..3 * lanes + 4];
            for (pixel, values) in turned([fours[0][i], fours[1][i], fours[2][i], fours[3][i]]).into_iter().enumerate()
            {
                to[pixel * lanes..][..4].copy_from_slice(&values);
            }
        }
        for i in length / 4 * 4..length {
            for (lane, line) in lines.iter().enumerate() {
                to[i * lanes + first + lane] = line[i];
            }
        }
        first += 4;
    }
    for lane in first..count {
        for (i, value) in from[lane * plane..][..length].iter().enumerate() {
            to[i * lanes + lane] = *value;
        }
    }
}

/// Bᵀ times six numbers.
#[inline(always)]
fn given<S: Simd>(simd: S, d: [S::f32s; INPUTS]) -> [S::f32s; INPUTS] {
    let [two, four, five] = [2.0, 4.0, 5.0].map(|number| simd.splat_f32s(number));
    let minus = |x, factor, y| simd.sub_f32s(x, simd.mul_f32s(factor, y));
    let even = minus(d[4], four, d[2]);
    let odd = minus(d[3], four, d[1]);
    let other_even = simd.sub_f32s(d[4], d[2]);
    let other_odd = simd.mul_f32s(two, simd.sub_f32s(d[3], d[1]));
    [
        minus(simd.mul_add_e_f32s(four, d[0], d[4]), five, d[2]),
        simd.add_f32s(even, odd),
        simd.sub_f32s(even, odd),
        simd.add_f32s(other_even, other_odd),
        simd.sub_f32s(other_even, other_odd),
        minus(simd.mul_add_e_f32s(four, d[1], d[5]), five, d[3]),
    ]
}
