//! Convolutions of 3 × 3 taps on the CPU by Winograd's trick: a quarter of the multiplications, between transformed tiles of 4 × 4 pixels.
//!
//! Lavin and Gray 2016, F(4 × 4, 3 × 3): a tile of outputs is Aᵀ·[(G·g·Gᵀ) ⊙ (Bᵀ·d·B)]·A, summed over the channels that come in. Each of the 36 numbers of a
//! transformed tile is then a matrix product of its own, channels by channels. As in `conv`, channels lie along the lanes of a vector; what is transformed stays in
//! the cache, a few dozen tiles at a time.
//!
//! Results differ from the direct ones by some millionths of the largest number.
//!
//! The gradient of the weights is in `winograd_backward`.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]
#![expect(clippy::needless_range_loop, reason = "rows and columns of small squares are clearer by their numbers")]

use std::ops::Range;

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::conv::{Order, Run, Shape};

/// Outputs of a tile, along one side.
pub(super) const SIDE: usize = 4;

/// Inputs of a tile, along one side: they overlap by two.
pub(super) const INPUTS: usize = SIDE + 2;

/// Numbers of a transformed tile.
pub(super) const NUMBERS: usize = INPUTS * INPUTS;

/// Vectors of output channels that are worked on together.
pub(super) const PAIR: usize = 2;

/// The most lanes of a vector.
pub(super) const MOST_LANES: usize = 16;

/// About as many tiles are worked on together: enough to use each weight often, few enough to stay in the cache.
const TILES: usize = 64;

/// So many are multiplied before they go back into pictures.
const AT_ONCE: usize = 16;

/// Fewer channels are not worth the transforms.
const FEWEST_CHANNELS: usize = 16;

/// Whether a convolution is one of these. The number of pictures has no say, so that a picture's result does not depend on its company.
pub(super) fn fits(shape: Shape) -> bool {
    let tiles = Grid::of(shape);
    let filled = tiles.of_picture() * SIDE * SIDE;
    shape.size == 3
        && shape.stride == 1
        && shape.from.min(shape.to) >= FEWEST_CHANNELS
        && tiles.of_picture() >= 4
        && 2 * filled <= 3 * shape.height * shape.width
}

/// How pictures are cut into tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub across: usize,
    pub down: usize,
}

impl Grid {
    pub fn of(shape: Shape) -> Self {
        Self { across: shape.width.div_ceil(SIDE), down: shape.height.div_ceil(SIDE) }
    }

    pub fn of_picture(self) -> usize {
        self.across * self.down
    }

    /// Rows of tiles, counted through all pictures, in parts that are worked on together.
    pub fn parts(self, n_pictures: usize) -> impl Iterator<Item = Range<usize>> {
        let n_rows = n_pictures * self.down;
        let at_once = (TILES / self.across).max(1);
        (0..n_rows).step_by(at_once).map(move |first| first..(first + at_once).min(n_rows))
    }

    /// The picture that a row of tiles is of, and its first line there.
    pub fn line(self, row: usize) -> (usize, usize) {
        (row / self.down, row % self.down * SIDE)
    }
}

/// How many tiles there is room for where so many are kept: an odd number, or the 36 numbers of a tile would contend for the same places in the cache.
pub(super) fn room_for(n_tiles: usize) -> usize {
    n_tiles | 1
}

/// Into how many pictures a batch is cut, so that every core has something to do.
fn group(batch: usize) -> usize {
    batch.div_ceil(2 * rayon::current_num_threads())
}

/// Weights in Winograd's form, G·g·Gᵀ: `[pair, 36, from, pair of vectors]`, channels filled up to whole vectors.
///
/// `shape` is that of the convolution itself, whose weights `order` says how to read.
pub(super) fn pack(shape: Shape, w: &[f32], order: Order) -> Vec<f32> {
    Arch::new().dispatch(Pack { shape, w, order })
}

struct Pack<'a> {
    shape: Shape,
    w: &'a [f32],
    order: Order,
}

impl WithSimd for Pack<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self { shape, w, order } = self;
        let width = PAIR * S::F32_LANES;
        let from = shape.from.next_multiple_of(S::F32_LANES);
        let mut out = vec![0.0; shape.to.div_ceil(width) * NUMBERS * from * width];
        out.par_chunks_exact_mut(NUMBERS * from * width).enumerate().for_each(|(pair, out)| {
            simd.vectorize(Run(PackPair { shape, w, order, first: pair * width, out }, simd));
        });
        out
    }
}

/// The weights of a pair of vectors of output channels.
struct PackPair<'a> {
    shape: Shape,
    w: &'a [f32],
    order: Order,
    /// The first output channel.
    first: usize,
    out: &'a mut [f32],
}

impl<S: Simd> NullaryFnOnce for Run<PackPair<'_>, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(PackPair { shape, w, order, first, out }, simd) = self;
        let lanes = S::F32_LANES;
        let width = PAIR * lanes;
        let (out, _) = S::as_mut_simd_f32s(out);
        let step = out.len() / NUMBERS;
        let count = width.min(shape.to - first);
        let mut taps = [0.0_f32; 9 * PAIR * MOST_LANES];
        for from in 0..shape.from {
            for lane in 0..count {
                let to = first + lane;
                let at = match order {
                    Order::Forward => (to * shape.from + from) * 9,
                    Order::Backward => (from * shape.to + to) * 9,
                };
                for (tap, value) in w[at..at + 9].iter().enumerate() {
                    let tap = if order == Order::Forward { tap } else { 8 - tap };
                    taps[tap * width + lane] = *value;
                }
            }
            let (taps, _) = S::as_simd_f32s(&taps[..9 * width]);
            for v in 0..PAIR {
                let mut columns = [[simd.splat_f32s(0.0); INPUTS]; 3];
                for c in 0..3 {
                    columns[c] = spread(simd, [taps[c * PAIR + v], taps[(3 + c) * PAIR + v], taps[(6 + c) * PAIR + v]]);
                }
                for r in 0..INPUTS {
                    let values = spread(simd, row(&columns, r));
                    for c in 0..INPUTS {
                        out[(INPUTS * r + c) * step + from * PAIR + v] = values[c];
                    }
                }
            }
        }
    }
}

/// G times three numbers.
#[inline(always)]
fn spread<S: Simd>(simd: S, g: [S::f32s; 3]) -> [S::f32s; INPUTS] {
    let times = |factor: f32, x| simd.mul_f32s(simd.splat_f32s(factor), x);
    let ends = times(-1.0 / 6.0, simd.add_f32s(g[0], g[2]));
    let middle = times(1.0 / 6.0, g[1]);
    let other_ends = simd.add_f32s(times(1.0 / 24.0, g[0]), times(1.0 / 6.0, g[2]));
    let other_middle = times(1.0 / 12.0, g[1]);
    [
        times(0.25, g[0]),
        simd.sub_f32s(ends, middle),
        simd.add_f32s(ends, middle),
        simd.add_f32s(other_ends, other_middle),
        simd.sub_f32s(other_ends, other_middle),
        g[2],
    ]
}

/// `y = x ∗ w + bias`, with weights in Winograd's form.
pub(super) fn forward(shape: Shape, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    Arch::new().dispatch(Forward { shape, x, w, bias })
}

struct Forward<'a> {
    shape: Shape,
    x: &'a [f32],
    w: &'a [f32],
    bias: Option<&'a [f32]>,
}

impl WithSimd for Forward<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self { shape, x, w, bias } = self;
        let grid = Grid::of(shape);
        let area = shape.height * shape.width;
        let (lanes, width) = (S::F32_LANES, PAIR * S::F32_LANES);
        let bias = {
            let mut bias = bias.map_or_else(Vec::new, <[f32]>::to_vec);
            bias.resize(shape.to.next_multiple_of(width), 0.0);
            bias
        };
        let n_pairs = shape.to.div_ceil(width);
        let weights_of_pair = w.len() / n_pairs;
        let mut out = vec![0.0; shape.out_len()];
        let group = group(shape.batch);
        let groups = out.par_chunks_mut(group * shape.to * area).zip(x.par_chunks(group * shape.from * area));
        groups.for_each_init(Vec::new, |tiles: &mut Vec<f32>, (out, x)| {
            for rows in grid.parts(x.len() / (shape.from * area)) {
                let block = NUMBERS * room_for(rows.len() * grid.across) * lanes;
                tiles.resize(shape.from.div_ceil(lanes) * block, 0.0);
                let channels = shape.from;
                tiles.par_chunks_exact_mut(block).enumerate().for_each(|(block, out)| {
                    let inputs = Inputs { shape, channels, x, rows: rows.clone(), first: block * lanes, out };
                    simd.vectorize(Run(inputs, simd));
                });
                // Of each pair of vectors of channels, the planes in every picture.
                let mut pairs: Vec<Vec<&mut [f32]>> = (0..n_pairs).map(|_| Vec::new()).collect();
                for picture in out.chunks_exact_mut(shape.to * area) {
                    for (pair, planes) in pairs.iter_mut().zip(picture.chunks_mut(width * area)) {
                        pair.push(planes);
                    }
                }
                pairs.into_par_iter().enumerate().for_each(|(pair, planes)| {
                    let outputs = Outputs {
                        shape,
                        rows: rows.clone(),
                        tiles,
                        w: &w[pair * weights_of_pair..][..weights_of_pair],
                        bias: &bias[pair * width..][..width],
                        planes,
                    };
                    simd.vectorize(Run(outputs, simd));
                });
            }
        });
        out
    }
}

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

/// Rows for columns: in shuffles, once it is compiled.
#[inline(always)]
fn turned([a, b, c, d]: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    [[a[0], b[0], c[0], d[0]], [a[1], b[1], c[1], d[1]], [a[2], b[2], c[2], d[2]], [a[3], b[3], c[3], d[3]]]
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

/// The products of tiles and weights, back in pictures: a pair of vectors of output channels.
struct Outputs<'a> {
    shape: Shape,
    rows: Range<usize>,
    /// `[block of channels, 36, room for tiles, lanes]`
    tiles: &'a [f32],
    /// `[36, from, pair]`
    w: &'a [f32],
    bias: &'a [f32],
    /// The planes of these channels, of every picture.
    planes: Vec<&'a mut [f32]>,
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

/// Row `r` of columns.
#[inline(always)]
pub(super) fn row<T: Copy, const M: usize, const N: usize>(columns: &[[T; N]; M], r: usize) -> [T; M] {
    let mut row = [columns[0][r]; M];
    for c in 0..M {
        row[c] = columns[c][r];
    }
    row
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

#[cfg(test)]
mod tests {
    use super::{
        super::{
            conv::tests::{As, assert_same},
            winograd_backward::Weights,
        },
        *,
    };
    use crate::rng::Rng;

    /// Sizes that do and do not fill vectors and tiles: pictures, channels that come in and go out, height and width.
    const SIZES: [[usize; 5]; 4] = [[1, 16, 16, 8, 8], [2, 20, 33, 9, 11], [3, 17, 64, 16, 8], [5, 40, 16, 12, 17]];

    /// Sums over taps, number by number.
    fn plain(shape: Shape, x: &[f32], w: &[f32], mut each: impl FnMut(usize, usize, usize)) {
        let Shape { batch, from, to, height, width, .. } = shape;
        assert_eq!((x.len(), w.len()), (batch * from * height * width, to * from * 9));
        for (b, o, c) in (0..batch).flat_map(|b| (0..to).flat_map(move |o| (0..from).map(move |c| (b, o, c)))) {
            for (line, column, tap) in
                (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..9).map(move |tap| (y, x, tap))))
            {
                let (y, x) = (line + tap / 3, column + tap % 3);
                if (1..=height).contains(&y) && (1..=width).contains(&x) {
                    let output = ((b * to + o) * height + line) * width + column;
                    let input = ((b * from + c) * height + y - 1) * width + x - 1;
                    each(output, input, (o * from + c) * 9 + tap);
                }
            }
        }
    }

    /// With the vectors of `simd`, against plain sums.
    fn compare<S: Simd>(name: &str, simd: S) {
        for [batch, from, to, height, width] in SIZES {
            let shape = Shape { batch, from, to, height, width, size: 3, stride: 1 };
            assert!(fits(shape), "{shape:?}");
            let what = format!("{name}: {shape:?}");
            let x = Rng::new(1).normals(batch * from * height * width);
            let w: Vec<f32> = Rng::new(2).normals(to * from * 9).iter().map(|w| w / 10.0).collect();
            let bias = Rng::new(3).normals(to);
            let dy: Vec<f32> = Rng::new(4).normals(shape.out_len()).iter().map(|dy| dy / 10.0).collect();

            let area = height * width;
            let mut y: Vec<f32> = (0..shape.out_len()).map(|i| bias[i / area % to]).collect();
            let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; w.len()]);
            plain(shape, &x, &w, |output, input, tap| {
                y[output] += x[input] * w[tap];
                dx[input] += dy[output] * w[tap];
                dw[tap] += dy[output] * x[input];
            });
            let packed = |shape, order| simd.vectorize(As(Pack { shape, w: &w, order }, simd));
            let forward = Forward { shape, x: &x, w: &packed(shape, Order::Forward), bias: Some(&bias) };
            assert_same(&what, &simd.vectorize(As(forward, simd)), &y);
            let shape_back = Shape { from: to, to: from, ..shape };
            let backward = Forward { shape: shape_back, x: &dy, w: &packed(shape_back, Order::Backward), bias: None };
            assert_same(&format!("{what}, gradient of x"), &simd.vectorize(As(backward, simd)), &dx);
            let weights = Weights { shape, x: &x, dy: &dy };
            assert_same(&format!("{what}, gradient of the weights"), &simd.vectorize(As(weights, simd)), &dw);
        }
    }

    #[test]
    fn every_vector_width_gives_plain_sums() {
        compare("no vectors", pulp::Scalar);
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(simd) = pulp::x86::V3::try_new() {
                compare("AVX2", simd);
            }
            if let Some(simd) = pulp::x86::V4::try_new() {
                compare("AVX-512", simd);
            }
        }
    }

    #[test]
    fn a_picture_does_not_depend_on_its_company() {
        let shape = Shape { batch: 5, from: 16, to: 24, height: 8, width: 12, size: 3, stride: 1 };
        let x = Rng::new(1).normals(5 * 16 * 96);
        let w = pack(shape, &Rng::new(2).normals(24 * 16 * 9), Order::Forward);
        let together = forward(shape, &x, &w, None);
        for (x, together) in x.chunks(16 * 96).zip(together.chunks(24 * 96)) {
            assert_eq!(forward(Shape { batch: 1, ..shape }, x, &w, None), together);
        }
    }
}
