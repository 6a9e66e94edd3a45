//! The gradient of a convolution's weights by Winograd's trick: `winograd` backwards.
//!
//! What the tiles of pictures and those of the outputs' gradient have in common is summed in Winograd's form, Gᵀ·[(Bᵀ·d·B) ⊙ (A·dy·Aᵀ)]·G: for each of the
//! 36 numbers of a tile, a matrix product over all tiles. Every core sums over pictures of its own.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]
#![expect(clippy::needless_range_loop, reason = "rows and columns of small squares are clearer by their numbers")]

use std::ops::Range;

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::{
    Grid, INPUTS, MOST_LANES, NUMBERS, PAIR, SIDE,
    inputs::{Inputs, interleave},
    room_for, row,
};
use crate::kernels::conv::{Run, Shape};

/// Over fewer tiles it takes longer to transform the sums than to make them.
const FEWEST_TILES: usize = 64;

/// Whether the gradient of a convolution's weights is one of these.
pub(in crate::kernels) fn fits(shape: Shape) -> bool {
    super::fits(shape) && shape.batch * Grid::of(shape).of_picture() >= FEWEST_TILES
}

/// The gradient of the weights, `[to, from, 3, 3]`.
pub(in crate::kernels) fn w_backward(shape: Shape, x: &[f32], dy: &[f32]) -> Vec<f32> {
    Arch::new().dispatch(Weights { shape, x, dy })
}

/// See [`w_backward`].
pub(super) struct Weights<'a> {
    pub shape: Shape,
    pub x: &'a [f32],
    pub dy: &'a [f32],
}

impl WithSimd for Weights<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self { shape, x, dy } = self;
        let area = shape.height * shape.width;
        let width = PAIR * S::F32_LANES;
        let group = shape.batch.div_ceil(rayon::current_num_threads());
        let groups = x.par_chunks(group * shape.from * area).zip(dy.par_chunks(group * shape.to * area));
        // In the order of the pictures, so that sums do not depend on who is done first.
        let sums: Vec<Vec<f32>> = groups.map(|(x, dy)| sums(simd, shape, x, dy)).collect();
        let mut out = vec![0.0; shape.to * shape.from * 9];
        out.par_chunks_mut(width * shape.from * 9).enumerate().for_each(|(pair, out)| {
            simd.vectorize(Run(Taps { shape, sums: &sums, pair, out }, simd));
        });
        out
    }
}

/// The sums over all tiles of some pictures: `[block of channels that come in, 36, pair, lanes, pair of vectors]`.
#[inline(always)]
fn sums<S: Simd>(simd: S, shape: Shape, x: &[f32], dy: &[f32]) -> Vec<f32> {
    let grid = Grid::of(shape);
    let lanes = S::F32_LANES;
    let width = PAIR * lanes;
    let (n_blocks, n_pairs) = (shape.from.div_ceil(lanes), shape.to.div_ceil(width));
    let mut sums = vec![0.0; n_blocks * NUMBERS * n_pairs * lanes * width];
    let (mut tiles, mut slopes) = (Vec::new(), Vec::new());
    for rows in grid.parts(x.len() / (shape.from * shape.height * shape.width)) {
        let n = rows.len() * grid.across;
        let [block, pair] = [lanes, width].map(|width| NUMBERS * room_for(n) * width);
        tiles.resize(n_blocks * block, 0.0);
        tiles.par_chunks_exact_mut(block).enumerate().for_each(|(block, out)| {
            let inputs = Inputs { shape, channels: shape.from, x, rows: rows.clone(), first: block * lanes, out };
            simd.vectorize(Run(inputs, simd));
        });
        slopes.resize(n_pairs * pair, 0.0);
        slopes.par_chunks_exact_mut(pair).enumerate().for_each(|(pair, out)| {
            let slopes = Slopes { shape, dy, rows: rows.clone(), first: pair * width, out };
            simd.vectorize(Run(slopes, simd));
        });
        let blocks = sums.par_chunks_exact_mut(NUMBERS * n_pairs * lanes * width).zip(tiles.par_chunks_exact(block));
        blocks.for_each(|(out, tiles)| simd.vectorize(Run(Sums { tiles, slopes: &slopes, n, n_pairs, out }, simd)));
    }
    sums
}

/// Gradients of the outputs in Winograd's form, A·dy·Aᵀ: a pair of vectors of channels.
struct Slopes<'a> {
    shape: Shape,
    dy: &'a [f32],
    rows: Range<usize>,
    /// The first channel.
    first: usize,
    /// `[36, room for tiles, pair]`
    out: &'a mut [f32],
}

impl<S: Simd> NullaryFnOnce for Run<Slopes<'_>, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(Slopes { shape, dy, rows, first, out }, simd) = self;
        let Shape { to: channels, height, width, .. } = shape;
        let grid = Grid::of(shape);
        let lanes = S::F32_LANES;
        let step = room_for(rows.len() * grid.across) * PAIR;
        let (out, _) = S::as_mut_simd_f32s(out);
        let length = grid.across * SIDE;
        for v in 0..PAIR {
            let first = first + v * lanes;
            // Channels that fill up a vector stay zeros.
            let count = lanes.min(channels.saturating_sub(first));
            let mut lines = vec![0.0; SIDE * length * lanes];
            for (at, tile_row) in rows.clone().enumerate() {
                let (picture, line) = grid.line(tile_row);
                for (r, to) in lines.chunks_exact_mut(length * lanes).enumerate() {
                    if line + r >= height {
                        to.fill(0.0);
                    } else if count > 0 {
                        let from = &dy[((picture * channels + first) * height + line + r) * width..];
                        interleave(from, height * width, width, count, to, lanes);
                    }
                }
                let (lines, _) = S::as_simd_f32s(&lines);
                for i in 0..grid.across {
                    let mut columns = [[simd.splat_f32s(0.0); INPUTS]; SIDE];
                    for c in 0..SIDE {
                        let mut column = [simd.splat_f32s(0.0); SIDE];
                        for r in 0..SIDE {
                            column[r] = lines[r * length + i * SIDE + c];
                        }
                        columns[c] = sloped(simd, column);
                    }
                    let tile = at * grid.across + i;
                    for r in 0..INPUTS {
                        let values = sloped(simd, row(&columns, r));
                        for c in 0..INPUTS {
                            out[(INPUTS * r + c) * step + tile * PAIR + v] = values[c];
                        }
                    }
                }
            }
        }
    }
}

/// A times four numbers.
#[inline(always)]
fn sloped<S: Simd>(simd: S, d: [S::f32s; SIDE]) -> [S::f32s; INPUTS] {
    let [two, four, eight] = [2.0, 4.0, 8.0].map(|number| simd.splat_f32s(number));
    let even = simd.add_f32s(d[0], d[2]);
    let odd = simd.add_f32s(d[1], d[3]);
    let other_even = simd.mul_add_e_f32s(four, d[2], d[0]);
    let other_odd = simd.mul_add_e_f32s(eight, d[3], simd.mul_f32s(two, d[1]));
    [
        d[0],
        simd.add_f32s(even, odd),
        simd.sub_f32s(even, odd),
        simd.add_f32s(other_even, other_odd),
        simd.sub_f32s(other_even, other_odd),
        d[3],
    ]
}

/// Adds what tiles and slopes have in common, for a vector of channels that come in and all that go out.
struct Sums<'a> {
    /// `[36, room for tiles, lanes]`
    tiles: &'a [f32],
    /// `[pair, 36, room for tiles, pair]`
    slopes: &'a [f32],
    n: usize,
    n_pairs: usize,
    /// `[36, pair, lanes, pair]`
    out: &'a mut [f32],
}

impl<S: Simd> NullaryFnOnce for Run<Sums<'_>, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(Sums { tiles, slopes, n, n_pairs, out }, simd) = self;
        let lanes = S::F32_LANES;
        let step = room_for(n);
        let (slopes, _) = S::as_simd_f32s(slopes);
        let (slopes, _) = slopes.as_chunks::<PAIR>();
        let (out, _) = S::as_mut_simd_f32s(out);
        let (out, _) = out.as_chunks_mut::<PAIR>();
        for (at, out) in out.chunks_exact_mut(lanes).enumerate() {
            let (number, pair) = (at / n_pairs, at % n_pairs);
            let tiles = &tiles[number * step * lanes..][..n * lanes];
            let slopes = &slopes[(pair * NUMBERS + number) * step..][..n];
            // As many channels as leave registers for the rest: 32 registers of 512 bits, else 16.
            let mut first = 0;
            while first < lanes {
                let out = &mut out[first..];
                first += match lanes {
                    16 => add::<S, 8>(simd, &tiles[first..], slopes, out),
                    4.. => add::<S, 4>(simd, &tiles[first..], slopes, out),
                    _ => add::<S, 1>(simd, &tiles[first..], slopes, out),
                };
            }
        }
    }
}

/// Adds for P channels that come in; gives P.
#[inline(always)]
fn add<S: Simd, const P: usize>(
    simd: S,
    tiles: &[f32],
    slopes: &[[S::f32s; PAIR]],
    out: &mut [[S::f32s; PAIR]],
) -> usize {
    let out = out.first_chunk_mut::<P>().expect("vectors have at least P lanes");
    let mut acc = *out;
    for (tile, slope) in tiles.chunks(S::F32_LANES).zip(slopes) {
        let tile = tile.first_chunk::<P>().expect("vectors have at least P lanes");
        for p in 0..P {
            let value = simd.splat_f32s(tile[p]);
            for v in 0..PAIR {
                acc[p][v] = simd.mul_add_e_f32s(value, slope[v], acc[p][v]);
            }
        }
    }
    *out = acc;
    P
}

/// Back from Winograd's form, Gᵀ·u·G: a pair of vectors of output channels.
struct Taps<'a> {
    shape: Shape,
    /// Of each group of pictures.
    sums: &'a [Vec<f32>],
    pair: usize,
    /// `[channels, from, 3, 3]`
    out: &'a mut [f32],
}

impl<S: Simd> NullaryFnOnce for Run<Taps<'_>, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(Taps { shape, sums, pair, out }, simd) = self;
        let lanes = S::F32_LANES;
        let n_pairs = shape.to.div_ceil(PAIR * lanes);
        let per_channel = shape.from * 9;
        let mut taps = [0.0_f32; 9 * MOST_LANES];
        let taps = &mut taps[..9 * lanes];
        for from in 0..shape.from {
            for v in 0..PAIR {
                let mut columns = [[simd.splat_f32s(0.0); 3]; INPUTS];
                for c in 0..INPUTS {
                    let mut column = [simd.splat_f32s(0.0); INPUTS];
                    for r in 0..INPUTS {
                        let number = from / lanes * NUMBERS + INPUTS * r + c;
                        let at = ((number * n_pairs + pair) * lanes + from % lanes) * PAIR + v;
                        for sums in sums {
                            let (sums, _) = S::as_simd_f32s(sums);
                            column[r] = simd.add_f32s(column[r], sums[at]);
                        }
                    }
                    columns[c] = tapped(simd, column);
                }
                let (vectors, _) = S::as_mut_simd_f32s(&mut *taps);
                for r in 0..3 {
                    let values = tapped(simd, row(&columns, r));
                    for c in 0..3 {
                        vectors[3 * r + c] = values[c];
                    }
                }
                let channels = out.chunks_exact_mut(per_channel).skip(v * lanes).take(lanes);
                for (lane, channel) in channels.enumerate() {
                    for (tap, to) in channel[from * 9..][..9].iter_mut().enumerate() {
                        *to = taps[tap * lanes + lane];
                    }
                }
            }
        }
    }
}

/// Gᵀ times six numbers.
#[inline(always)]
fn tapped<S: Simd>(simd: S, u: [S::f32s; INPUTS]) -> [S::f32s; 3] {
    let times = |factor: f32, x| simd.mul_f32s(simd.splat_f32s(factor), x);
    let a = times(1.0 / 6.0, simd.add_f32s(u[1], u[2]));
    let b = simd.add_f32s(u[3], u[4]);
    let middle = times(1.0 / 6.0, simd.sub_f32s(u[2], u[1]));
    let other_middle = times(1.0 / 12.0, simd.sub_f32s(u[3], u[4]));
    [
        simd.add_f32s(simd.sub_f32s(times(0.25, u[0]), a), times(1.0 / 24.0, b)),
        simd.add_f32s(middle, other_middle),
        simd.add_f32s(simd.sub_f32s(times(1.0 / 6.0, b), a), u[5]),
    ]
}
