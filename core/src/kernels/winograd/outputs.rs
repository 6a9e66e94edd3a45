//! The products of tiles and weights, and the way back from Winograd's form.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]
#![expect(clippy::needless_range_loop, reason = "rows and columns of small squares are clearer by their numbers")]

use std::ops::Range;

use pulp::{NullaryFnOnce, Simd};

use super::{Grid, INPUTS, MOST_LANES, NUMBERS, PAIR, SIDE, room_for, row, turned};
use crate::kernels::conv::{Run, Shape};

/// So many are multiplied before they go back into pictures.
const AT_ONCE: usize = 16;

/// The products of tiles and weights, back in pictures: a pair of vectors of output channels.
pub(super) struct Outputs<'a> {
    pub shape: Shape,
    pub rows: Range<usize>,
    /// `[block of channels, 36, room for tiles, lanes]`
    pub tiles: &'a [f32],
    /// `[36, from, pair]`
    pub w: &'a [f32],
    pub bias: &'a [f32],
    /// The planes of these channels, of every picture.
    pub planes: Vec<&'a mut [f32]>,
}

impl<S: Simd> NullaryFnOnce for Run<Outputs<'_>, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(Outputs { shape, rows, tiles, w, bias, mut planes }, simd) = self;
        let grid = Grid::of(shape);
        let lanes = S::F32_LANES;
        let n = rows.len() * grid.across;
        let (w, _) = S::as_simd_f32s(w);
        let (bias, _) = S::as_simd_f32s(bias);
        let weights_of_number = w.len() / NUMBERS;
        let most = AT_ONCE.min(n);
        let made_of_number = room_for(most) * PAIR;
        let mut made = vec![simd.splat_f32s(0.0); NUMBERS * made_of_number];
        let area = shape.height * shape.width;
        let mut pixels = [0.0_f32; SIDE * SIDE * MOST_LANES];
        let pixels = &mut pixels[..SIDE * SIDE * lanes];

        for first in (0..n).step_by(most) {
            let count = most.min(n - first);
            for (number, made) in made.chunks_exact_mut(made_of_number).enumerate() {
                let w = &w[number * weights_of_number..][..weights_of_number];
                Products { tiles, w, number, step: room_for(n) }.run(simd, first, count, made);
            }
            for tile in first..first + count {
                let (picture, line) = grid.line(rows.start + tile / grid.across);
                let column = tile % grid.across * SIDE;
                let [n_lines, n_columns] = [SIDE.min(shape.height - line), SIDE.min(shape.width - column)];
                for v in 0..PAIR {
                    let at = (tile - first) * PAIR + v;
                    let mut columns = [[simd.splat_f32s(0.0); SIDE]; INPUTS];
                    for c in 0..INPUTS {
                        let mut column = [simd.splat_f32s(0.0); INPUTS];
                        for r in 0..INPUTS {
                            column[r] = made[(INPUTS * r + c) * made_of_number + at];
                        }
                        columns[c] = taken(simd, column);
                    }
                    let (vectors, _) = S::as_mut_simd_f32s(&mut *pixels);
                    for r in 0..SIDE {
                        let values = taken(simd, row(&columns, r));
                        for c in 0..SIDE {
                            vectors[r * SIDE + c] = simd.add_f32s(values[c], bias[v]);
                        }
                    }
                    let planes = planes[picture].get_mut(v * lanes * area..).unwrap_or_default();
                    let n_planes = lanes.min(planes.len() / area);
                    if n_planes > 0 {
                        for r in 0..n_lines {
                            let to = &mut planes[(line + r) * shape.width + column..];
                            part(&pixels[r * SIDE * lanes..][..SIDE * lanes], lanes, n_planes, to, area, n_columns);
                        }
                    }
                }
            }
        }
    }
}

/// Four pixels of `count` channels, side by side, to lines of as many planes; `length` of them only.
#[inline(always)]
fn part(pixels: &[f32], lanes: usize, count: usize, to: &mut [f32], plane: usize, length: usize) {
    let mut k = 0;
    if length == SIDE {
        while k + 4 <= count {
            let mut four = [[0.0; 4]; SIDE];
            for c in 0..SIDE {
                four[c].copy_from_slice(&pixels[c * lanes + k..][..4]);
            }
            for (i, values) in turned(four).into_iter().enumerate() {
                to[(k + i) * plane..][..4].copy_from_slice(&values);
            }
            k += 4;
        }
    }
    for k in k..count {
        for c in 0..length {
            to[k * plane + c] = pixels[c * lanes + k];
        }
    }
}

/// One of the 36 products: tiles times weights, summed over the channels that come in.
struct Products<'a, V: Copy> {
    tiles: &'a [f32],
    /// `[from, pair]`
    w: &'a [V],
    number: usize,
    step: usize,
}

impl<V: Copy> Products<'_, V> {
    /// Of `count` tiles.
    #[inline(always)]
    fn run<S: Simd<f32s = V>>(&self, simd: S, first: usize, count: usize, out: &mut [S::f32s]) {
        let mut done = 0;
        // As many tiles as leave registers for the rest: 32 registers of 512 bits, else 16.
        if S::F32_LANES == 16 {
            while done + 8 <= count {
                self.of::<S, 8>(simd, first + done, &mut out[done * PAIR..]);
                done += 8;
            }
        }
        while done + 4 <= count {
            self.of::<S, 4>(simd, first + done, &mut out[done * PAIR..]);
            done += 4;
        }
        while done < count {
            self.of::<S, 1>(simd, first + done, &mut out[done * PAIR..]);
            done += 1;
        }
    }

    /// Of P tiles.
    #[inline(always)]
    fn of<S: Simd<f32s = V>, const P: usize>(&self, simd: S, first: usize, out: &mut [S::f32s]) {
        let lanes = S::F32_LANES;
        let block = NUMBERS * self.step * lanes;
        let start = (self.number * self.step + first) * lanes;
        let mut acc = [[simd.splat_f32s(0.0); PAIR]; P];
        for (tiles, w) in self.tiles.chunks_exact(block).zip(self.w.chunks_exact(lanes * PAIR)) {
            let tiles = &tiles[start..][..P * lanes];
            let mut rows: [&[f32]; P] = [&[]; P];
            for p in 0..P {
                rows[p] = &tiles[p * lanes..][..lanes];
            }
            let (w, _) = w.as_chunks::<PAIR>();
            for (lane, w) in w[..lanes].iter().enumerate() {
                for p in 0..P {
                    let value = simd.splat_f32s(rows[p][lane]);
                    for v in 0..PAIR {
                        acc[p][v] = simd.mul_add_e_f32s(value, w[v], acc[p][v]);
                    }
                }
            }
        }
        let (out, _) = out.as_chunks_mut::<PAIR>();
        for (out, acc) in out.iter_mut().zip(acc) {
            *out = acc;
        }
    }
}

/// Aᵀ times six numbers.
#[inline(always)]
fn taken<S: Simd>(simd: S, m: [S::f32s; INPUTS]) -> [S::f32s; SIDE] {
    let [two, four, eight] = [2.0, 4.0, 8.0].map(|number| simd.splat_f32s(number));
    let even = simd.add_f32s(m[1], m[2]);
    let odd = simd.sub_f32s(m[1], m[2]);
    let other_even = simd.add_f32s(m[3], m[4]);
    let other_odd = simd.sub_f32s(m[3], m[4]);
    [
        simd.add_f32s(m[0], simd.add_f32s(even, other_even)),
        simd.mul_add_e_f32s(two, other_odd, odd),
        simd.mul_add_e_f32s(four, other_even, even),
        simd.add_f32s(simd.mul_add_e_f32s(eight, other_odd, odd), m[5]),
    ]
}
