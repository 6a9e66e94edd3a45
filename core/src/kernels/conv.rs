//! Convolutions on the CPU, without a copy of the picture for every tap (no "im2col").
//!
//! Output channels lie along the lanes of a vector and input pixels are broadcast: a tile of P neighbouring pixels × 2 vectors of
//! channels stays in registers while input channels and taps run by. The width of the vectors is chosen at run time (pulp), the work is
//! shared among the cores (rayon).
//!
//! Those of 3 × 3 taps with enough channels are for `winograd`. The gradients of weights and biases are in `conv_backward`.
//!
//! Deliberately absent: dilation, groups, padding other than half the kernel's size. The U-Net has none of them.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::{
    product::{Bias, Matrix, Panels, Product},
    winograd,
};

/// Vectors of output channels that weights are packed for.
const PACKED: usize = 2;

/// The most numbers a tile has: 16 vectors of 16.
const MAX_TILE: usize = 16 * 16;

/// The sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub batch: usize,
    /// Channels that come in.
    pub from: usize,
    /// Channels that go out.
    pub to: usize,
    /// Of the pictures that come in.
    pub height: usize,
    /// Of the pictures that come in.
    pub width: usize,
    /// Width and height of the kernel: 1 or 3.
    pub size: usize,
    /// 1, or 2 with a kernel of 3.
    pub stride: usize,
}

impl Shape {
    pub(super) fn out_height(&self) -> usize {
        self.height.div_ceil(self.stride)
    }
    pub(super) fn out_width(&self) -> usize {
        self.width.div_ceil(self.stride)
    }
    pub(super) fn out_len(&self) -> usize {
        self.batch * self.to * self.out_height() * self.out_width()
    }
    /// The shape of the convolution itself, or of the one that takes the output's gradient back to the input.
    pub(super) fn of(self, order: Order) -> Self {
        match order {
            Order::Forward => self,
            Order::Backward => Self { from: self.to, to: self.from, stride: 1, ..self },
        }
    }
}

/// Weights as the convolution of this machine wants them; the same for kernels of one pixel.
///
/// `shape` is that of the convolution forward, also for the weights of the way back.
pub(super) fn pack(shape: Shape, w: &[f32], order: Order) -> Vec<f32> {
    let shape = shape.of(order);
    if winograd::fits(shape) {
        winograd::pack(shape, w, order)
    } else if shape.size == 1 {
        w.to_vec()
    } else {
        Arch::new().dispatch(Pack { shape, w, order })
    }
}

/// `y = x ∗ w + bias`, with packed weights.
pub(super) fn forward(shape: Shape, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    if winograd::fits(shape) {
        return winograd::forward(shape, x, w, bias);
    }
    Arch::new().dispatch(Forward { shape, x, w, bias, order: Order::Forward })
}

/// The gradient of the input, with weights packed for the way back.
pub(super) fn x_backward(shape: Shape, w: &[f32], dy: &[f32]) -> Vec<f32> {
    let back = shape.of(Order::Backward);
    let spread;
    let dy = if shape.stride == 1 {
        dy
    } else {
        spread = spread_out(shape, dy);
        &spread
    };
    if winograd::fits(back) {
        return winograd::forward(back, dy, w, None);
    }
    Arch::new().dispatch(Forward { shape: back, x: dy, w, bias: None, order: Order::Backward })
}

/// Puts zeros between the pixels of a strided output, so that its gradient is one of a plain convolution.
fn spread_out(shape: Shape, dy: &[f32]) -> Vec<f32> {
    let (height, width) = (shape.height, shape.width);
    let (h, w) = (shape.out_height(), shape.out_width());
    let mut out = vec![0.0; shape.batch * shape.to * height * width];
    for (to, from) in out.chunks_exact_mut(height * width).zip(dy.chunks_exact(h * w)) {
        for (y, row) in from.chunks_exact(w).enumerate() {
            for (x, value) in row.iter().enumerate() {
                to[y * shape.stride * width + x * shape.stride] = *value;
            }
        }
    }
    out
}

/// Which weights a convolution uses: its own, or those of the way back (channels swapped, taps mirrored).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Order {
    Forward,
    Backward,
}

struct Forward<'a> {
    shape: Shape,
    x: &'a [f32],
    w: &'a [f32],
    bias: Option<&'a [f32]>,
    order: Order,
}

/// Planes with a border of zeros, `[planes, height + 2·pad, row]`: as few as are used together, so that they stay in the cache.
pub(super) struct Padded {
    pub values: Vec<f32>,
    /// The length of a row.
    pub row: usize,
    /// The length of a plane.
    pub plane: usize,
    shape: Shape,
}

impl Padded {
    /// Room for planes. Rows are at least long enough for one tile of `pixels` outputs.
    pub fn new(shape: Shape, n_planes: usize, pixels: usize) -> Self {
        let pad = shape.size / 2;
        let row = (shape.width.max(shape.out_width().max(pixels) * shape.stride)) + 2 * pad;
        let plane = (shape.height + 2 * pad) * row;
        Self { values: vec![0.0; n_planes * plane], row, plane, shape }
    }

    /// Puts planes into the room, in the place of those that were there.
    pub fn fill<'a>(&mut self, planes: impl Iterator<Item = &'a [f32]>) {
        let Shape { size, width, .. } = self.shape;
        let pad = size / 2;
        for (to, from) in self.values.chunks_exact_mut(self.plane).zip(planes) {
            for (to, from) in to.chunks_exact_mut(self.row).skip(pad).zip(from.chunks_exact(width)) {
                to[pad..pad + width].copy_from_slice(from);
            }
        }
    }
}

impl WithSimd for Forward<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        // As many pixels as leave registers for weights and inputs: 32 registers of 512 bits, else 16.
        let step = (self.shape.size, self.shape.stride);
        if S::F32_LANES == 16 {
            match step {
                (3, 1) if self.wants_small_tasks::<S>() => self.run::<S, 16, 1, 3, 1>(simd),
                (3, 1) => self.run::<S, 8, 2, 3, 1>(simd),
                (3, 2) => self.run::<S, 8, 2, 3, 2>(simd),
                (1, 1) => self.run_pointwise(simd),
                _ => unreachable!("kernels::conv2d lets only these through"),
            }
        } else {
            match step {
                (3, 1) => self.run::<S, 4, 2, 3, 1>(simd),
                (3, 2) => self.run::<S, 4, 2, 3, 2>(simd),
                (1, 1) => self.run_pointwise(simd),
                _ => unreachable!("kernels::conv2d lets only these through"),
            }
        }
    }
}

impl Forward<'_> {
    /// Whether tiles of two vectors would leave cores without work, and one of many pixels fits into a row.
    #[inline(always)]
    fn wants_small_tasks<S: Simd>(&self) -> bool {
        let n_tasks = self.shape.batch * self.shape.to.div_ceil(2 * S::F32_LANES);
        n_tasks < rayon::current_num_threads() && self.shape.to > S::F32_LANES && self.shape.out_width() >= 16
    }

    #[inline(always)]
    fn run<S: Simd, const P: usize, const V: usize, const K: usize, const STRIDE: usize>(self, simd: S) -> Vec<f32> {
        let Self { shape, x, w, bias, .. } = self;
        let lanes = S::F32_LANES * V;
        let bias_packed: Vec<f32> = {
            let mut b = bias.map_or_else(Vec::new, <[f32]>::to_vec);
            b.resize(shape.to.next_multiple_of(lanes), 0.0);
            b
        };
        let area = shape.out_height() * shape.out_width();
        let per_block = shape.from * K * K * S::F32_LANES * PACKED;
        let mut out = vec![0.0; shape.out_len()];
        let plane = shape.height * shape.width;
        let pictures = out.par_chunks_exact_mut(shape.to * area).zip(x.par_chunks_exact(shape.from * plane));
        let room = || Padded::new(shape, shape.from, P);
        pictures.for_each_init(room, |padded, (picture, x)| {
            padded.fill(x.chunks_exact(plane));
            let padded = &*padded;
            picture.par_chunks_mut(lanes * area).enumerate().for_each(|(block, out)| {
                let (packed, vector) = (block * V / PACKED, block * V % PACKED);
                let tiles = Tiles::<P, V, K, STRIDE> {
                    shape,
                    row: padded.row,
                    plane: padded.plane,
                    x: &padded.values,
                    w: &w[packed * per_block..][..per_block],
                    vector,
                    bias: &bias_packed[block * lanes..][..lanes],
                    out,
                };
                simd.vectorize(Run(tiles, simd));
            });
        });
        out
    }
}

impl Forward<'_> {
    /// With kernels of one pixel a convolution is a product: weights times the planes of a picture, as they lie.
    #[inline(always)]
    fn run_pointwise<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self { shape, x, w, bias, order } = self;
        let area = shape.height * shape.width;
        let weights = match order {
            Order::Forward => Matrix::rows(w, shape.from),
            Order::Backward => Matrix::rows(w, shape.to).transposed(),
        };
        let mut out = vec![0.0; shape.out_len()];
        let per_task = rows_per_task(shape.batch, shape.to);
        let (pictures, inputs) = (out.par_chunks_exact_mut(shape.to * area), x.par_chunks_exact(shape.from * area));
        pictures.zip(inputs).for_each(|(picture, x)| {
            let copied = (!area.is_multiple_of(Panels::columns::<S>()))
                .then(|| Panels::new(Matrix::rows(x, area), shape.from, area, S::F32_LANES));
            picture.par_chunks_mut(per_task * area).enumerate().for_each(|(task, out)| {
                let first = task * per_task;
                let product = Product {
                    m: out.len() / area,
                    inner: shape.from,
                    n: area,
                    left: weights.from(first, 0),
                    bias: bias.map_or(Bias::None, |bias| Bias::PerRow(&bias[first..])),
                    out,
                    out_row: area,
                };
                simd.vectorize(
                    #[inline(always)]
                    || match &copied {
                        Some(panels) => product.run(simd, panels.values(), &mut Vec::new()),
                        None => product.run_in_place(simd, x, &mut Vec::new()),
                    },
                );
            });
        });
        out
    }
}

/// Into how many rows each of `batch` pictures is cut, so that every core has something to do.
fn rows_per_task(batch: usize, rows: usize) -> usize {
    let tasks = (2 * rayon::current_num_threads()).div_ceil(batch);
    rows.div_ceil(tasks).next_multiple_of(8)
}

struct Pack<'a> {
    shape: Shape,
    w: &'a [f32],
    order: Order,
}

impl WithSimd for Pack<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f32> {
        pack_weights(self.shape, self.w, self.order, S::F32_LANES * PACKED)
    }
}

/// Weights as `[block, from, taps, lanes]`, the last block filled up with zeros.
fn pack_weights(shape: Shape, w: &[f32], order: Order, lanes: usize) -> Vec<f32> {
    let taps = shape.size * shape.size;
    let mut out = vec![0.0; shape.to.next_multiple_of(lanes) * shape.from * taps];
    for (i, block) in out.chunks_exact_mut(shape.from * taps * lanes).enumerate() {
        for (c, channel) in block.chunks_exact_mut(taps * lanes).enumerate() {
            for (tap, values) in channel.chunks_exact_mut(lanes).enumerate() {
                for (lane, value) in values.iter_mut().enumerate().take(shape.to - (i * lanes).min(shape.to)) {
                    let o = i * lanes + lane;
                    *value = match order {
                        Order::Forward => w[(o * shape.from + c) * taps + tap],
                        Order::Backward => w[(c * shape.to + o) * taps + taps - 1 - tap],
                    };
                }
            }
        }
    }
    out
}

struct Tiles<'a, const P: usize, const V: usize, const K: usize, const STRIDE: usize> {
    shape: Shape,
    row: usize,
    plane: usize,
    x: &'a [f32],
    w: &'a [f32],
    /// The first vector of the packed weights that is used.
    vector: usize,
    bias: &'a [f32],
    out: &'a mut [f32],
}

/// Work that is inlined into pulp's dispatch, with the vectors it has.
pub(super) struct Run<T, S>(pub T, pub S);

impl<S: Simd, const P: usize, const V: usize, const K: usize, const STRIDE: usize> NullaryFnOnce
    for Run<Tiles<'_, P, V, K, STRIDE>, S>
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(tiles, simd) = self;
        let (height, width) = (tiles.shape.out_height(), tiles.shape.out_width());
        let area = height * width;
        let lanes = S::F32_LANES * V;
        let (bias, _) = S::as_simd_f32s(tiles.bias);
        let (w, _) = S::as_simd_f32s(tiles.w);
        let mut buffer = [0.0_f32; MAX_TILE];
        let buffer = &mut buffer[..P * lanes];
        for y in 0..height {
            let mut left = 0;
            loop {
                let start = y * STRIDE * tiles.row + left * STRIDE;
                let bias = std::array::from_fn(|v| bias[v]);
                let from = From { x: &tiles.x[start..], plane: tiles.plane, row: tiles.row };
                let acc = tile::<S, P, V, K, STRIDE>(simd, from, w, tiles.vector, bias);
                for (p, acc) in acc.into_iter().enumerate() {
                    for (v, acc) in acc.into_iter().enumerate() {
                        simd.partial_store_f32s(&mut buffer[p * lanes + v * S::F32_LANES..][..S::F32_LANES], acc);
                    }
                }
                let count = P.min(width - left);
                for (o, plane) in tiles.out.chunks_exact_mut(area).enumerate() {
                    for (p, out) in plane[y * width + left..][..count].iter_mut().enumerate() {
                        *out = buffer[p * lanes + o];
                    }
                }
                if left + P >= width {
                    break;
                }
                // The last tile of a row begins earlier rather than reach beyond it.
                left = (left + P).min(width - P);
            }
        }
    }
}

/// The pixels that a tile starts from: of the first channel first, the next ones a plane further.
struct From<'a> {
    x: &'a [f32],
    plane: usize,
    row: usize,
}

/// P neighbouring outputs of all channels of a block.
#[inline(always)]
fn tile<S: Simd, const P: usize, const V: usize, const K: usize, const STRIDE: usize>(
    simd: S,
    From { x, plane, row }: From<'_>,
    w: &[S::f32s],
    vector: usize,
    bias: [S::f32s; V],
) -> [[S::f32s; V]; P] {
    let mut acc = [bias; P];
    let span = (P - 1) * STRIDE + K;
    let mut base = 0;
    let vector = if V == PACKED { 0 } else { vector };
    for w in w.chunks_exact(K * K * PACKED) {
        for ky in 0..K {
            let line = &x[base + ky * row..][..span];
            for kx in 0..K {
                let w: [S::f32s; V] = std::array::from_fn(|v| w[(ky * K + kx) * PACKED + vector + v]);
                for p in 0..P {
                    let value = simd.splat_f32s(line[p * STRIDE + kx]);
                    for v in 0..V {
                        acc[p][v] = simd.mul_add_e_f32s(value, w[v], acc[p][v]);
                    }
                }
            }
        }
        base += plane;
    }
    acc
}

#[cfg(test)]
pub(super) mod tests {
    use super::{super::conv_backward::*, *};
    use crate::rng::Rng;

    /// Runs an operation as on a machine with other vectors.
    pub struct As<Op, S>(pub Op, pub S);

    impl<Op: WithSimd, S: Simd> NullaryFnOnce for As<Op, S> {
        type Output = Op::Output;

        #[inline(always)]
        fn call(self) -> Op::Output {
            self.0.with_simd(self.1)
        }
    }

    pub fn assert_same(what: &str, found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len(), "{what}");
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a - b).abs() < 1e-4, "{what}: element {i} is {a}, not {b}");
        }
    }

    /// Results with the vectors of `simd` against those with the widest there are.
    fn compare<S: Simd>(name: &str, simd: S) {
        for (to, size, stride) in [(5, 3, 1), (40, 3, 2), (33, 1, 1)] {
            let shape = Shape { batch: 2, from: 7, to, height: 9, width: 9, size, stride };
            let what = format!("{name}: {shape:?}");
            let x = Rng::new(1).normals(2 * 7 * 81);
            let w = Rng::new(2).normals(to * 7 * size * size);
            let bias = Rng::new(3).normals(to);
            let dy = Rng::new(4).normals(shape.out_len());
            let packed =
                if size == 1 { w.clone() } else { pack_weights(shape, &w, Order::Forward, S::F32_LANES * PACKED) };
            let op = Forward { shape, x: &x, w: &packed, bias: Some(&bias), order: Order::Forward };
            let widest = forward(shape, &x, &pack(shape, &w, Order::Forward), Some(&bias));
            assert_same(&what, &simd.vectorize(As(op, simd)), &widest);
            let op = Weights { shape, x: &x, dy: &dy };
            assert_same(&what, &simd.vectorize(As(op, simd)), &w_backward(shape, &x, &dy));
        }
    }

    #[test]
    fn every_vector_width_gives_the_same() {
        compare("no vectors", pulp::Scalar);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            compare("AVX2", simd);
        }
    }
}
