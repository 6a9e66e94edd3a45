//! Convolutions of 3 × 3 taps on the CPU by Winograd's trick: a quarter of the multiplications, between transformed tiles of 4 × 4 pixels.
//!
//! Lavin and Gray 2016, F(4 × 4, 3 × 3): a tile of outputs is Aᵀ·[(G·g·Gᵀ) ⊙ (Bᵀ·d·B)]·A, summed over the channels that come in. Each of the 36 numbers of a
//! transformed tile is then a matrix product of its own, channels by channels. As in `conv`, channels lie along the lanes of a vector; what is transformed stays in
//! the cache, a few dozen tiles at a time.
//!
//! Results differ from the direct ones by some millionths of the largest number.
//!
//! `weights` and `inputs` are what goes into the products, `outputs` are the products and the way back; `backward` is the gradient of the weights.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

pub(super) mod backward;
mod inputs;
mod outputs;
mod weights;

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

pub(super) use self::weights::pack;
use self::{inputs::Inputs, outputs::Outputs};
use super::conv::{Run, Shape};

/// Outputs of a tile, along one side.
const SIDE: usize = 4;

/// Inputs of a tile, along one side: they overlap by two.
const INPUTS: usize = SIDE + 2;

/// Numbers of a transformed tile.
const NUMBERS: usize = INPUTS * INPUTS;

/// Vectors of output channels that are worked on together.
const PAIR: usize = 2;

/// The most lanes of a vector.
const MOST_LANES: usize = 16;

/// About as many tiles are worked on together: enough to use each weight often, few enough to stay in the cache.
const TILES: usize = 64;

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
struct Grid {
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
fn room_for(n_tiles: usize) -> usize {
    n_tiles | 1
}

/// How many pictures each part of a batch has, so that every core has something to do.
fn group(batch: usize) -> usize {
    batch.div_ceil(2 * rayon::current_num_threads())
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

/// Rows for columns: in shuffles, once it is compiled.
#[inline(always)]
fn turned([a, b, c, d]: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    [[a[0], b[0], c[0], d[0]], [a[1], b[1], c[1], d[1]], [a[2], b[2], c[2], d[2]], [a[3], b[3], c[3], d[3]]]
}

/// Row `r` of columns.
#[inline(always)]
fn row<T: Copy, const M: usize, const N: usize>(columns: &[[T; N]; M], r: usize) -> [T; M] {
    let mut row = [columns[0][r]; M];
    for c in 0..M {
        row[c] = columns[c][r];
    }
    row
}

#[cfg(test)]
mod tests {
    use super::{backward::Weights, weights::Pack, *};
    use crate::{
        kernels::conv::{
            Order,
            tests::{As, assert_same},
        },
        rng::Rng,
    };

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
