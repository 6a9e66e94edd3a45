//! The gradients of a convolution's weights and bias on the CPU.
//!
//! Output channels lie along the lanes of a vector; all taps of a kernel stay in registers while the pixels of all pictures run by.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::{
    conv::{Padded, Run, Shape},
    norm::sum,
    vectors::in_vectors,
    winograd,
};

/// The gradient of the weights, `[to, from, size, size]`.
pub(super) fn w_backward(shape: Shape, x: &[f32], dy: &[f32]) -> Vec<f32> {
    if winograd::backward::fits(shape) {
        return winograd::backward::w_backward(shape, x, dy);
    }
    Arch::new().dispatch(Weights { shape, x, dy })
}

/// The gradient of the bias.
pub(super) fn bias_backward(shape: Shape, dy: &[f32]) -> Vec<f32> {
    let area = shape.out_height() * shape.out_width();
    let mut out = vec![0.0; shape.to];
    out.par_iter_mut()
        .enumerate()
        .with_min_len(8)
        .for_each(|(channel, sum)| sum_planes(dy, area, shape.to, channel, sum));
    out
}

in_vectors! {
    /// The sum of one of `of` channels over all pictures.
    fn sum_planes<'a>(dy: &'a [f32], area: usize, of: usize, channel: usize, out: &'a mut f32) {
        *out = dy.chunks_exact(area).skip(channel).step_by(of).map(|plane| sum(plane, |_, value| value)).sum();
    }
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
        match (self.shape.size, self.shape.stride) {
            // Two channels fill 18 of 32 registers.
            (3, 1) if S::F32_LANES == 16 => self.run::<S, 2, 3, 1>(simd),
            (3, 1) => self.run::<S, 1, 3, 1>(simd),
            (3, 2) => self.run::<S, 1, 3, 2>(simd),
            (1, 1) => self.run::<S, 8, 1, 1>(simd),
            _ => unreachable!("kernels::conv2d lets only these through"),
        }
    }
}

impl Weights<'_> {
    #[inline(always)]
    fn run<S: Simd, const C: usize, const K: usize, const STRIDE: usize>(self, simd: S) -> Vec<f32> {
        let Self { shape, x, dy } = self;
        let lanes = S::F32_LANES;
        let n_blocks = shape.to.div_ceil(lanes);
        let area = shape.out_height() * shape.out_width();
        // dy as [block, batch, pixel, lane].
        let mut packed = vec![0.0; n_blocks * shape.batch * area * lanes];
        packed.par_chunks_exact_mut(area * lanes).enumerate().for_each(|(i, out)| {
            let (block, b) = (i / shape.batch, i % shape.batch);
            for lane in 0..lanes.min(shape.to - block * lanes) {
                let plane = &dy[(b * shape.to + block * lanes + lane) * area..][..area];
                for (pixel, value) in plane.iter().enumerate() {
                    out[pixel * lanes + lane] = *value;
                }
            }
        });
        // dw as [from, block, taps, lane], several channels at a time where registers are left.
        let mut dw = vec![0.0; shape.from * n_blocks * K * K * lanes];
        let room = || Padded::new(shape, shape.batch * C, 1);
        dw.par_chunks_mut(C * n_blocks * K * K * lanes).enumerate().for_each_init(room, |padded, (group, out)| {
            let planes = (0..shape.batch * C).map(|i| {
                // Beyond the last channel the last one is worked out again, and thrown away.
                let channel = (group * C + i % C).min(shape.from - 1);
                let plane = shape.height * shape.width;
                &x[(i / C * shape.from + channel) * plane..][..plane]
            });
            padded.fill(planes);
            let channels = Channels::<C, K, STRIDE> { shape, padded, packed: &packed, out };
            simd.vectorize(Run(channels, simd));
        });
        let mut out = vec![0.0; shape.to * shape.from * K * K];
        for (o, out) in out.chunks_exact_mut(shape.from * K * K).enumerate() {
            for (c, out) in out.chunks_exact_mut(K * K).enumerate() {
                for (tap, out) in out.iter_mut().enumerate() {
                    *out = dw[((c * n_blocks + o / lanes) * K * K + tap) * lanes + o % lanes];
                }
            }
        }
        out
    }
}

/// The gradient of the weights of `C` input channels.
struct Channels<'a, const C: usize, const K: usize, const STRIDE: usize> {
    shape: Shape,
    /// `[batch, C]` planes; the last group of channels may have fewer than `C` of its own.
    padded: &'a Padded,
    /// `[block, batch, pixel, lane]`.
    packed: &'a [f32],
    /// `[channel, block, tap, lane]`.
    out: &'a mut [f32],
}

impl<S: Simd, const C: usize, const K: usize, const STRIDE: usize> NullaryFnOnce
    for Run<Channels<'_, C, K, STRIDE>, S>
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(Channels { shape, padded, packed, out }, simd) = self;
        let (height, width) = (shape.out_height(), shape.out_width());
        let lanes = S::F32_LANES;
        let per_block = shape.batch * height * width * lanes;
        let n_blocks = packed.len() / per_block;
        for block in 0..n_blocks {
            let mut acc = [[[simd.splat_f32s(0.0); K]; K]; C];
            let (dy, _) = S::as_simd_f32s(&packed[block * per_block..][..per_block]);
            for (b, dy) in dy.chunks_exact(height * width).enumerate() {
                let planes: [&[f32]; C] =
                    std::array::from_fn(|c| &padded.values[(b * C + c) * padded.plane..][..padded.plane]);
                for (y, dy) in dy.chunks_exact(width).enumerate() {
                    let lines: [[&[f32]; K]; C] = std::array::from_fn(|c| {
                        std::array::from_fn(|ky| {
                            &planes[c][(y * STRIDE + ky) * padded.row..][..(width - 1) * STRIDE + K]
                        })
                    });
                    for (at, dy) in dy.iter().enumerate() {
                        for c in 0..C {
                            for ky in 0..K {
                                let line = &lines[c][ky][at * STRIDE..][..K];
                                for kx in 0..K {
                                    let x = simd.splat_f32s(line[kx]);
                                    acc[c][ky][kx] = simd.mul_add_e_f32s(x, *dy, acc[c][ky][kx]);
                                }
                            }
                        }
                    }
                }
            }
            for (out, acc) in out.chunks_exact_mut(n_blocks * K * K * lanes).zip(acc) {
                let taps = out[block * K * K * lanes..].chunks_exact_mut(lanes);
                for (out, acc) in taps.zip(acc.into_iter().flatten()) {
                    simd.partial_store_f32s(out, acc);
                }
            }
        }
    }
}
