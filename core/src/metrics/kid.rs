//! The kernel distance between two sets of feature vectors (KID; Bińkowski et al. 2018).
//!
//! Unlike the Fréchet distance it is unbiased: few samples make it noisy, not too large. Its values are comparable with published
//! ones only if the features are those of the FID Inception.

use nalgebra::DMatrix;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{MetricError, count_vectors};
use crate::{Error, rng::Rng};

/// How the samples are divided into subsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KidSettings {
    /// How many random subsets are compared.
    pub n_subsets: usize,
    /// How many samples of each set are in a subset. Where a set has fewer, as many as the smaller set has.
    pub subset_size: usize,
}

impl Default for KidSettings {
    /// 100 subsets of 1,000, the convention.
    fn default() -> Self {
        Self { n_subsets: 100, subset_size: 1000 }
    }
}

/// A kernel distance, and what it was computed from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kid {
    /// The mean over the subsets. It estimates a squared distance without bias, so that it can be negative.
    pub mean: f64,
    /// The standard deviation over the subsets (divided by their number, as NumPy's).
    pub deviation: f64,
    /// How many subsets were compared; 1 where a subset is all there is.
    pub n_subsets: usize,
    /// How many samples of each set were in a subset.
    pub subset_size: usize,
}

/// The squared maximum mean discrepancy with the kernel `(x·y/d + 1)³`, unbiased, over random subsets without repetition.
///
/// The size of a subset is `subset_size`, or that of the smaller set if that is less. If a subset is all of both sets, one is
/// enough. Subset k is drawn from stream k of `rng`, so that the result does not depend on the number of cores.
///
/// # Shapes
/// - `left`, `right`: whole vectors of `dim` numbers, one after another; two of each at least
pub fn kernel_distance(
    left: &[f32],
    right: &[f32],
    dim: usize,
    settings: KidSettings,
    rng: &Rng,
) -> Result<Kid, MetricError> {
    let (n_left, n_right) = (count_vectors(left, dim)?, count_vectors(right, dim)?);
    if settings.n_subsets == 0 {
        return Err(Error::argument("KID subsets", 0, "at least 1").into());
    }
    if settings.subset_size < 2 {
        return Err(Error::argument("KID subset size", settings.subset_size, "at least 2").into());
    }
    let subset_size = settings.subset_size.min(n_left).min(n_right);
    if subset_size < 2 {
        let found = n_left.min(n_right);
        return Err(MetricError::TooFew { metric: "a kernel distance", needed: 2, of: "samples of each set", found });
    }
    let n_subsets = if subset_size == n_left && subset_size == n_right { 1 } else { settings.n_subsets };
    let of_subset = |subset: usize| {
        let mut rng = rng.fork(subset as u64);
        let x = gather(left, dim, &draw(n_left, subset_size, &mut rng));
        let y = gather(right, dim, &draw(n_right, subset_size, &mut rng));
        squared_discrepancy(&x, &y)
    };
    let values: Vec<f64> = (0..n_subsets).into_par_iter().map(of_subset).collect();
    let mean = values.iter().sum::<f64>() / n_subsets as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n_subsets as f64;
    Ok(Kid { mean, deviation: variance.sqrt(), n_subsets, subset_size })
}

/// `size` different numbers below `n`: the beginning of a Fisher–Yates shuffle.
fn draw(n: usize, size: usize, rng: &mut Rng) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..n).collect();
    for i in 0..size {
        indices.swap(i, i + rng.below(n - i));
    }
    indices.truncate(size);
    indices
}

/// The vectors of these indices, one a column.
fn gather(features: &[f32], dim: usize, indices: &[usize]) -> DMatrix<f64> {
    let values = indices.iter().flat_map(|&index| &features[index * dim..(index + 1) * dim]);
    DMatrix::from_iterator(dim, indices.len(), values.map(|&value| f64::from(value)))
}

/// Bińkowski et al. 2018, equation 4: the mean kernel within each set, without the diagonal, minus twice the mean between them.
fn squared_discrepancy(x: &DMatrix<f64>, y: &DMatrix<f64>) -> f64 {
    let m = x.ncols() as f64;
    let kernel = |a: &DMatrix<f64>, b: &DMatrix<f64>| {
        (a.transpose() * b).map(|product| (product / a.nrows() as f64 + 1.0).powi(3))
    };
    let within = |a: &DMatrix<f64>| {
        let kernel = kernel(a, a);
        (kernel.sum() - kernel.trace()) / (m * (m - 1.0))
    };
    within(x) + within(y) - 2.0 * kernel(x, y).sum() / (m * m)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_against_two_by_hand() {
        // In one dimension the kernel is (x·y + 1)³. Within {0, 1}: 1. Within {1, 2}: 27. Between: 1, 1, 8, 27.
        let settings = KidSettings::default();
        let kid = kernel_distance(&[0.0, 1.0], &[1.0, 2.0], 1, settings, &Rng::new(0)).unwrap();
        assert_eq!(kid, Kid { mean: 1.0 + 27.0 - 37.0 / 2.0, deviation: 0.0, n_subsets: 1, subset_size: 2 });
    }

    #[test]
    fn equal_distributions_are_near_0_and_others_are_not() {
        let dim = 8;
        let set = |seed, offset: f32| Rng::new(seed).normals(400 * dim).iter().map(|v| v + offset).collect::<Vec<_>>();
        let settings = KidSettings { n_subsets: 20, subset_size: 100 };
        let kid = |right: &[f32]| kernel_distance(&set(1, 0.0), right, dim, settings, &Rng::new(3)).unwrap();
        let (same, other) = (kid(&set(2, 0.0)), kid(&set(2, 0.5)));
        assert!(same.mean.abs() < 3.0 * same.deviation && same.deviation > 0.0, "{same:?}");
        assert!(other.mean > 5.0 * other.deviation, "{other:?}");
        assert_eq!((other.n_subsets, other.subset_size), (20, 100));
        assert_eq!(other, kid(&set(2, 0.5)), "a seed determines it");
    }

    #[test]
    fn a_smaller_set_makes_smaller_subsets() {
        let (left, right) = (Rng::new(1).normals(40), Rng::new(2).normals(100));
        let kid = kernel_distance(&left, &right, 4, KidSettings::default(), &Rng::new(0)).unwrap();
        assert_eq!((kid.n_subsets, kid.subset_size), (100, 10));
    }

    #[test]
    fn a_draw_has_no_repetitions_and_reaches_everything() {
        let mut rng = Rng::new(5);
        let mut seen = [false; 10];
        for _ in 0..50 {
            let mut indices = draw(10, 4, &mut rng);
            for &index in &indices {
                seen[index] = true;
            }
            indices.sort_unstable();
            indices.dedup();
            assert_eq!(indices.len(), 4);
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn what_cannot_be_compared_says_why() {
        let kid = |left: &[f32], settings| kernel_distance(left, &[0.0; 8], 2, settings, &Rng::new(0));
        let default = KidSettings::default();
        assert!(matches!(kid(&[0.0; 2], default), Err(MetricError::TooFew { found: 1, .. })));
        assert!(matches!(kid(&[0.0; 3], default), Err(MetricError::Ragged { dim: 2, found: 3 })));
        assert!(matches!(kid(&[f32::NAN; 8], default), Err(MetricError::NotFinite { index: 0, .. })));
        assert!(kid(&[0.0; 8], KidSettings { n_subsets: 0, ..default }).is_err());
        assert!(kid(&[0.0; 8], KidSettings { subset_size: 1, ..default }).is_err());
    }
}
