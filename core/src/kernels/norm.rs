//! Group normalisation, the shift and scale of the noise level, and `SiLU`, in one pass on the CPU.
//!
//! `y = silu(((x − μ)/σ · weight + bias) · (1 + scale) + shift)`, where μ and σ² are the mean and the variance of one group of channels of
//! one example. A group's values lie side by side, so each is read into the cache once. Loops are plain: within pulp's dispatch the
//! compiler turns them into the widest vectors there are.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

use rayon::prelude::*;

use super::{exp::sigmoid, vectors::in_vectors};

/// Numbers summed side by side, so that sums can use vectors.
const LANES: usize = 16;

/// The sizes of a normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub batch: usize,
    pub channels: usize,
    /// Pixels a channel.
    pub area: usize,
    pub groups: usize,
}

impl Shape {
    fn per_group(&self) -> usize {
        self.channels / self.groups
    }
}

/// What follows the normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// Nothing.
    None,
    /// `z·σ(z)`.
    Silu,
}

/// What the normalisation is given besides the pictures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Affine<'a> {
    /// A factor for each channel.
    pub weight: &'a [f32],
    /// A summand for each channel.
    pub bias: &'a [f32],
    /// For each example, first a scale for each channel, then a shift for each; empty for none.
    pub scale_shift: &'a [f32],
    /// Added to the variance.
    pub epsilon: f32,
    pub activation: Activation,
}

/// The gradients of everything that came in.
pub(super) struct Gradients {
    pub x: Vec<f32>,
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    pub scale_shift: Vec<f32>,
}

impl Affine<'_> {
    /// `(1 + scale, shift)` of a channel.
    fn modulation(&self, shape: Shape, example: usize, channel: usize) -> (f32, f32) {
        if self.scale_shift.is_empty() {
            return (1.0, 0.0);
        }
        let start = example * 2 * shape.channels;
        (1.0 + self.scale_shift[start + channel], self.scale_shift[start + shape.channels + channel])
    }
}

/// The normalised pictures.
pub(super) fn forward(shape: Shape, x: &[f32], affine: Affine<'_>) -> Vec<f32> {
    let length = shape.per_group() * shape.area;
    let mut y = vec![0.0; x.len()];
    y.par_chunks_exact_mut(length).zip(x.par_chunks_exact(length)).enumerate().for_each(|(i, (y, x))| {
        forward_group(shape, i, x, affine, y);
    });
    y
}

in_vectors! {
    fn forward_group<'a>(shape: Shape, i: usize, x: &'a [f32], affine: Affine<'a>, y: &'a mut [f32]) {
        let (example, group) = (i / shape.groups, i % shape.groups);
        let (mean, deviation) = moments(x, affine.epsilon);
        let channels = group * shape.per_group()..;
        for ((y, x), channel) in y.chunks_exact_mut(shape.area).zip(x.chunks_exact(shape.area)).zip(channels) {
            let (scale, shift) = affine.modulation(shape, example, channel);
            // One multiplication and one addition a value.
            let slope = affine.weight[channel] / deviation;
            let offset = (affine.bias[channel] - mean * slope) * scale + shift;
            let slope = slope * scale;
            match affine.activation {
                Activation::None => y.iter_mut().zip(x).for_each(|(y, x)| *y = x * slope + offset),
                Activation::Silu => y.iter_mut().zip(x).for_each(|(y, x)| {
                    let z = x * slope + offset;
                    *y = z * sigmoid(z);
                }),
            }
        }
    }
}

/// The gradients, given that of the output.
pub(super) fn backward(shape: Shape, x: &[f32], affine: Affine<'_>, dy: &[f32]) -> Gradients {
    let length = shape.per_group() * shape.area;
    let mut dx = vec![0.0; x.len()];
    // For each channel of each example the sums of dz and of dz·x̂.
    let mut sums = vec![[0.0_f32; 2]; shape.batch * shape.channels];
    let groups = dx.par_chunks_exact_mut(length).zip(sums.par_chunks_exact_mut(shape.per_group()));
    let given = x.par_chunks_exact(length).zip(dy.par_chunks_exact(length));
    groups.zip(given).enumerate().for_each(|(i, ((dx, sums), (x, dy)))| {
        backward_group(shape, i, x, affine, dy, dx, sums);
    });
    let mut gradients = Gradients {
        x: dx,
        weight: vec![0.0; shape.channels],
        bias: vec![0.0; shape.channels],
        scale_shift: vec![0.0; affine.scale_shift.len()],
    };
    for (example, sums) in sums.chunks_exact(shape.channels).enumerate() {
        for (channel, [dz, dz_x]) in sums.iter().enumerate() {
            let (scale, _) = affine.modulation(shape, example, channel);
            gradients.weight[channel] += scale * dz_x;
            gradients.bias[channel] += scale * dz;
            if !affine.scale_shift.is_empty() {
                let start = example * 2 * shape.channels + channel;
                gradients.scale_shift[start] = affine.weight[channel] * dz_x + affine.bias[channel] * dz;
                gradients.scale_shift[start + shape.channels] = *dz;
            }
        }
    }
    gradients
}

in_vectors! {
    fn backward_group<'a>(
        shape: Shape,
        i: usize,
        x: &'a [f32],
        affine: Affine<'a>,
        dy: &'a [f32],
        dx: &'a mut [f32],
        sums: &'a mut [[f32; 2]],
    ) {
        let (example, group) = (i / shape.groups, i % shape.groups);
        let (mean, deviation) = moments(x, affine.epsilon);
        let area = shape.area;
        let first = group * shape.per_group();
        // Means over the group of slope·dz and of slope·dz·x̂.
        let (mut mean_dz, mut mean_dz_x) = (0.0, 0.0);
        for (c, sums) in sums.iter_mut().enumerate() {
            let (scale, shift) = affine.modulation(shape, example, first + c);
            let weight = affine.weight[first + c];
            let slope = weight / deviation;
            let offset = (affine.bias[first + c] - mean * slope) * scale + shift;
            let plane = c * area..(c + 1) * area;
            let (x, dy, dz) = (&x[plane.clone()], &dy[plane.clone()], &mut dx[plane]);
            match affine.activation {
                Activation::None => dz.copy_from_slice(dy),
                Activation::Silu => dz.iter_mut().zip(x.iter().zip(dy)).for_each(|(dz, (x, dy))| {
                    let z = x * slope * scale + offset;
                    let s = sigmoid(z);
                    *dz = dy * s * (1.0 + z * (1.0 - s));
                }),
            }
            let sum_dz = sum(dz, |_, dz| dz);
            let sum_dz_x = sum(dz, |i, dz| dz * (x[i] - mean)) / deviation;
            *sums = [sum_dz, sum_dz_x];
            mean_dz += weight * scale * sum_dz;
            mean_dz_x += weight * scale * sum_dz_x;
        }
        let n = x.len() as f32;
        (mean_dz, mean_dz_x) = (mean_dz / n, mean_dz_x / n);
        for (c, (dx, x)) in dx.chunks_exact_mut(area).zip(x.chunks_exact(area)).enumerate() {
            let (scale, _) = affine.modulation(shape, example, first + c);
            let factor = affine.weight[first + c] * scale / deviation;
            // dx = (slope·dz − mean(slope·dz) − x̂·mean(slope·dz·x̂))/σ
            let slope = mean_dz_x / (deviation * deviation);
            let offset = (mean * mean_dz_x / deviation - mean_dz) / deviation;
            dx.iter_mut().zip(x).for_each(|(dx, x)| *dx = *dx * factor - x * slope + offset);
        }
    }
}

/// Mean and standard deviation.
#[inline(always)]
pub(super) fn moments(x: &[f32], epsilon: f32) -> (f32, f32) {
    let n = x.len() as f32;
    let mean = sum(x, |_, x| x) / n;
    let variance = sum(x, |_, x| (x - mean) * (x - mean)) / n;
    (mean, (variance + epsilon).sqrt())
}

/// The sum of a function of index and value.
#[inline(always)]
pub(super) fn sum(x: &[f32], f: impl Fn(usize, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for (i, chunk) in chunks.iter().enumerate() {
        for lane in 0..LANES {
            lanes[lane] += f(i * LANES + lane, chunk[lane]);
        }
    }
    let rest: f32 = rest.iter().enumerate().map(|(i, x)| f(chunks.len() * LANES + i, *x)).sum();
    lanes.iter().sum::<f32>() + rest
}
