//! What happens to each token by itself, in one pass on the CPU: layer normalisation and GELU, with their gradients.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

use rayon::prelude::*;

use super::{
    exp::normal_share,
    norm::{moments, sum},
    vectors::in_vectors,
};

/// Tokens in one task. It decides in which order gradients are summed, so it depends on nothing.
const ROWS: usize = 64;

/// Numbers in one task of a function of each.
const VALUES: usize = 1 << 14;

/// `(x − μ)/σ·weight + bias` for each row of as many numbers as there are weights.
pub(super) fn normalise(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32) -> Vec<f32> {
    let width = weight.len();
    let mut y = vec![0.0; x.len()];
    let tasks = y.par_chunks_mut(ROWS * width).zip(x.par_chunks(ROWS * width));
    tasks.for_each(|(y, x)| normalise_rows(x, weight, bias, epsilon, y));
    y
}

in_vectors! {
    fn normalise_rows<'a>(x: &'a [f32], weight: &'a [f32], bias: &'a [f32], epsilon: f32, y: &'a mut [f32]) {
        let width = weight.len();
        for (y, x) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            let (mean, deviation) = moments(x, epsilon);
            let factor = deviation.recip();
            for (((y, x), weight), bias) in y.iter_mut().zip(x).zip(weight).zip(bias) {
                *y = (x - mean) * factor * weight + bias;
            }
        }
    }
}

/// The gradients of [`normalise`]: of the input, of the weight and of the bias.
pub(super) fn normalise_backward(x: &[f32], weight: &[f32], epsilon: f32, dy: &[f32]) -> [Vec<f32>; 3] {
    let width = weight.len();
    let mut dx = vec![0.0; x.len()];
    let per_task = ROWS * width;
    let tasks = dx.par_chunks_mut(per_task).zip(x.par_chunks(per_task)).zip(dy.par_chunks(per_task));
    let sums: Vec<[Vec<f32>; 2]> = tasks
        .map(|((dx, x), dy)| {
            let mut sums = [vec![0.0; width], vec![0.0; width]];
            normalise_rows_backward(x, weight, epsilon, dy, dx, &mut sums);
            sums
        })
        .collect();
    let mut out = [dx, vec![0.0; width], vec![0.0; width]];
    for [weight, bias] in sums {
        out[1].iter_mut().zip(weight).for_each(|(sum, value)| *sum += value);
        out[2].iter_mut().zip(bias).for_each(|(sum, value)| *sum += value);
    }
    out
}

in_vectors! {
    fn normalise_rows_backward<'a>(
        x: &'a [f32],
        weight: &'a [f32],
        epsilon: f32,
        dy: &'a [f32],
        dx: &'a mut [f32],
        sums: &'a mut [Vec<f32>; 2],
    ) {
        let width = weight.len();
        let rows = x.chunks_exact(width).zip(dy.chunks_exact(width));
        for (dx, (x, dy)) in dx.chunks_exact_mut(width).zip(rows) {
            normalise_row_backward(x, weight, epsilon, dy, dx, sums);
        }
    }
}

#[inline(always)]
fn normalise_row_backward(
    x: &[f32],
    weight: &[f32],
    epsilon: f32,
    dy: &[f32],
    dx: &mut [f32],
    [weight_sum, bias_sum]: &mut [Vec<f32>; 2],
) {
    let n = x.len() as f32;
    let (mean, deviation) = moments(x, epsilon);
    let factor = deviation.recip();
    // dx is x̂ at first.
    dx.iter_mut().zip(x).for_each(|(dx, x)| *dx = (x - mean) * factor);
    weight_sum.iter_mut().zip(dx.iter().zip(dy)).for_each(|(sum, (x, dy))| *sum += x * dy);
    bias_sum.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
    let mean_g = sum(dy, |i, dy| dy * weight[i]) / n;
    let mean_g_x = sum(dy, |i, dy| dy * weight[i] * dx[i]) / n;
    // dx = (g − mean(g) − x̂·mean(g·x̂))/σ with g = dy·weight.
    for ((dx, dy), weight) in dx.iter_mut().zip(dy).zip(weight) {
        *dx = (dy * weight - mean_g - *dx * mean_g_x) * factor;
    }
}

/// `x·Φ(x)`, where Φ is the normal distribution.
pub(super) fn gelu(x: &[f32]) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    y.par_chunks_mut(VALUES).zip(x.par_chunks(VALUES)).for_each(|(y, x)| gelu_values(x, y));
    y
}

in_vectors! {
    fn gelu_values<'a>(x: &'a [f32], y: &'a mut [f32]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * normal_share(*x).0);
    }
}

/// `dy·(Φ(x) + x·φ(x))`.
pub(super) fn gelu_backward(x: &[f32], dy: &[f32]) -> Vec<f32> {
    let mut dx = vec![0.0; x.len()];
    let tasks = dx.par_chunks_mut(VALUES).zip(x.par_chunks(VALUES)).zip(dy.par_chunks(VALUES));
    tasks.for_each(|((dx, x), dy)| gelu_values_backward(x, dy, dx));
    dx
}

in_vectors! {
    fn gelu_values_backward<'a>(x: &'a [f32], dy: &'a [f32], dx: &'a mut [f32]) {
        /// 1/√(2π).
        const PEAK: f32 = 0.398_942_3;
        for (dx, (x, dy)) in dx.iter_mut().zip(x.iter().zip(dy)) {
            let (share, bell) = normal_share(*x);
            *dx = dy * (share + x * PEAK * bell);
        }
    }
}
