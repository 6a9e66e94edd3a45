//! Weights in Winograd's form.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::{INPUTS, MOST_LANES, NUMBERS, PAIR, row};
use crate::kernels::conv::{Order, Run, Shape};

/// Weights in Winograd's form, G·g·Gᵀ: `[pair, 36, from, pair of vectors]`, channels filled up to whole vectors.
///
/// `shape` is that of the convolution itself, whose weights `order` says how to read.
pub(in crate::kernels) fn pack(shape: Shape, w: &[f32], order: Order) -> Vec<f32> {
    Arch::new().dispatch(Pack { shape, w, order })
}

/// See [`pack`].
pub(super) struct Pack<'a> {
    pub shape: Shape,
    pub w: &'a [f32],
    pub order: Order,
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
