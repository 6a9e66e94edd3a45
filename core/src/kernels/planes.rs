//! What happens to whole planes of pixels besides convolutions, in one pass on the CPU: doubling, and the sum of two branches.

use rayon::prelude::*;

use super::vectors::in_vectors;

/// Numbers in one task of a sum.
const VALUES: usize = 1 << 15;

/// Twice the width and height, each pixel four times.
pub(super) fn upsample(x: &[f32], area: usize, width: usize) -> Vec<f32> {
    let mut y = vec![0.0; 4 * x.len()];
    y.par_chunks_exact_mut(4 * area).zip(x.par_chunks_exact(area)).with_min_len(16).for_each(|(y, x)| {
        for (rows, x) in y.chunks_exact_mut(4 * width).zip(x.chunks_exact(width)) {
            let (first, second) = rows.split_at_mut(2 * width);
            for (pair, x) in first.as_chunks_mut::<2>().0.iter_mut().zip(x) {
                *pair = [*x; 2];
            }
            second.copy_from_slice(first);
        }
    });
    y
}

/// The gradient of [`upsample`]: each pixel has the sum of its four.
pub(super) fn upsample_backward(dy: &[f32], area: usize, width: usize) -> Vec<f32> {
    let mut dx = vec![0.0; dy.len() / 4];
    dx.par_chunks_exact_mut(area).zip(dy.par_chunks_exact(4 * area)).with_min_len(16).for_each(|(dx, dy)| {
        for (dx, rows) in dx.chunks_exact_mut(width).zip(dy.chunks_exact(4 * width)) {
            let (first, second) = rows.split_at(2 * width);
            let pairs = first.as_chunks::<2>().0.iter().zip(second.as_chunks::<2>().0);
            for (dx, (a, b)) in dx.iter_mut().zip(pairs) {
                *dx = a[0] + a[1] + b[0] + b[1];
            }
        }
    });
    dx
}

/// `(x + y)·factor`, into the numbers of `y`.
pub(super) fn sum_scaled(x: &[f32], y: &mut [f32], factor: f32) {
    y.par_chunks_mut(VALUES).zip(x.par_chunks(VALUES)).for_each(|(y, x)| sum_values(x, y, factor));
}

in_vectors! {
    fn sum_values<'a>(x: &'a [f32], y: &'a mut [f32], factor: f32) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = (x + *y) * factor);
    }
}

/// `x·factor`.
pub(super) fn scaled(x: &[f32], factor: f32) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    y.par_chunks_mut(VALUES).zip(x.par_chunks(VALUES)).for_each(|(y, x)| scale_values(x, y, factor));
    y
}

in_vectors! {
    fn scale_values<'a>(x: &'a [f32], y: &'a mut [f32], factor: f32) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * factor);
    }
}
