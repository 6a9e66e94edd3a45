//! The Fréchet distance between two sets of feature vectors, each seen as a normal distribution.
//!
//! Heusel et al. 2017 with the features of their Inception network call it FID. With any other features it is a Fréchet distance
//! and nothing more, and its values mean something only beside others from the same features and the same number of samples.
//!
//! Deliberately absent: the features, and a correction for small samples (the distance of few samples is too large).

use nalgebra::{DMatrix, DVector, SymmetricEigen};

use super::{MetricError, check_finite, count_vectors};

/// How many vectors are collected before the covariance is brought up to date with one product of matrices.
const BLOCK: usize = 256;

/// How far the two halves of a given covariance may differ, relative to its largest entry: rounding, with room to spare.
const ASYMMETRY: f64 = 1e-6;

/// Collects feature vectors, and keeps only their mean and covariance, in f64.
///
/// Blocks of vectors are merged as in Chan, Golub & `LeVeque` 1983, so that a large common offset costs no digits.
#[derive(Debug, Clone)]
pub struct Statistics {
    dim: usize,
    /// Vectors that are not yet in the numbers below, one after another.
    pending: Vec<f32>,
    n_merged: usize,
    mean: DVector<f64>,
    /// Σ (x − mean)(x − mean)ᵀ over the merged vectors.
    scatter: DMatrix<f64>,
}

impl Statistics {
    /// No vectors yet; each will have `dim` numbers.
    #[must_use]
    pub fn new(dim: usize) -> Self {
        assert!(dim > 0, "a feature vector has at least one number");
        Self {
            dim,
            pending: Vec::with_capacity(BLOCK * dim),
            n_merged: 0,
            mean: DVector::zeros(dim),
            scatter: DMatrix::zeros(dim, dim),
        }
    }

    /// Adds one feature vector, or several, one after another. Of vectors with an error, none is added.
    pub fn add(&mut self, features: &[f32]) -> Result<(), MetricError> {
        count_vectors(features, self.dim)?;
        for vector in features.chunks_exact(self.dim) {
            self.pending.extend_from_slice(vector);
            if self.pending.len() == BLOCK * self.dim {
                self.merge();
            }
        }
        Ok(())
    }

    /// The number of vectors so far.
    #[must_use]
    pub fn n_samples(&self) -> usize {
        self.n_merged + self.pending.len() / self.dim
    }

    /// The mean and the unbiased covariance (divided by n − 1) of all that was added.
    pub fn finish(mut self) -> Result<Gaussian, MetricError> {
        let n = self.n_samples();
        if n < 2 {
            return Err(MetricError::TooFew { metric: "a covariance", needed: 2, of: "samples", found: n });
        }
        self.merge();
        Ok(Gaussian { mean: self.mean, covariance: self.scatter / (n - 1) as f64 })
    }

    /// Moves the pending vectors into the mean and the scatter.
    fn merge(&mut self) {
        let n = self.pending.len() / self.dim;
        if n == 0 {
            return;
        }
        let mut block = DMatrix::from_iterator(self.dim, n, self.pending.iter().map(|&value| f64::from(value)));
        self.pending.clear();
        let block_mean = block.column_mean();
        for mut column in block.column_iter_mut() {
            column -= &block_mean;
        }
        self.scatter.gemm(1.0, &block, &block.transpose(), 1.0);
        let (merged, new) = (self.n_merged as f64, n as f64);
        let shift = block_mean - &self.mean;
        self.scatter.ger(merged * new / (merged + new), &shift, &shift, 1.0);
        self.mean.axpy(new / (merged + new), &shift, 1.0);
        self.n_merged += n;
    }
}

/// A normal distribution: all that the Fréchet distance knows of a set of feature vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    mean: DVector<f64>,
    covariance: DMatrix<f64>,
}

impl Gaussian {
    /// A distribution from statistics that were computed before, here or by another program; `covariance` row by row.
    pub fn new(mean: Vec<f64>, covariance: Vec<f64>) -> Result<Self, MetricError> {
        let dim = mean.len();
        if dim == 0 {
            return Err(MetricError::TooFew { metric: "a distribution", needed: 1, of: "dimensions", found: 0 });
        }
        if dim.checked_mul(dim) != Some(covariance.len()) {
            let (left, right) = (dim.saturating_mul(dim), covariance.len());
            return Err(MetricError::Different {
                name: "the squared length of the mean and the covariance",
                left,
                right,
            });
        }
        check_finite("mean", &mean)?;
        check_finite("covariance", &covariance)?;
        let covariance = DMatrix::from_vec(dim, dim, covariance);
        let allowed = ASYMMETRY * covariance.amax();
        for row in 0..dim {
            for column in 0..row {
                if (covariance[(row, column)] - covariance[(column, row)]).abs() > allowed {
                    return Err(MetricError::NotSymmetric { row, column });
                }
            }
        }
        Ok(Self { mean: DVector::from_vec(mean), covariance })
    }

    /// The number of dimensions.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        self.mean.as_slice()
    }

    /// The covariance, row by row (or column by column: it is symmetric).
    #[must_use]
    pub fn covariance(&self) -> &[f64] {
        self.covariance.as_slice()
    }
}

/// The (squared) Fréchet distance: `|μ₁ − μ₂|² + tr(Σ₁ + Σ₂ − 2·(Σ₁Σ₂)^½)`.
///
/// Heusel et al. 2017, equation 6. The trace of the root is `Σ √λ` over the eigenvalues λ of the symmetric `Σ₁^½ Σ₂ Σ₁^½`; those that
/// rounding made negative count as 0. So it is a real number also where there are fewer samples than dimensions. Two equal
/// distributions have a distance of 0 up to rounding, and that may be negative.
///
/// With 2,048 dimensions this takes some ten seconds, with 64 some milliseconds.
pub fn frechet_distance(left: &Gaussian, right: &Gaussian) -> Result<f64, MetricError> {
    if left.dim() != right.dim() {
        let name = "the lengths of the feature vectors";
        return Err(MetricError::Different { name, left: left.dim(), right: right.dim() });
    }
    let SymmetricEigen { eigenvectors, eigenvalues } = SymmetricEigen::new(left.covariance.clone());
    // V·diag(√λ) in place of the symmetric root V·diag(√λ)·Vᵀ: an orthogonal factor on the outside changes no eigenvalue.
    let mut root = eigenvectors;
    for (mut column, eigenvalue) in root.column_iter_mut().zip(eigenvalues.iter()) {
        column *= eigenvalue.max(0.0).sqrt();
    }
    let inner = root.transpose() * (&right.covariance * &root);
    let trace_of_root: f64 = inner.symmetric_eigenvalues().iter().map(|eigenvalue| eigenvalue.max(0.0).sqrt()).sum();
    let offset = (&left.mean - &right.mean).norm_squared();
    Ok(offset + left.covariance.trace() + right.covariance.trace() - 2.0 * trace_of_root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn gaussian(dim: usize, features: &[f32]) -> Gaussian {
        let mut statistics = Statistics::new(dim);
        statistics.add(features).unwrap();
        statistics.finish().unwrap()
    }

    #[test]
    fn mean_and_covariance_by_hand() {
        let statistics = gaussian(2, &[1.0, 2.0, 3.0, 2.0, 5.0, 8.0]);
        assert_eq!(statistics.mean(), [3.0, 4.0]);
        assert_eq!(statistics.covariance(), [4.0, 6.0, 6.0, 12.0]);
    }

    #[test]
    fn blocks_and_an_offset_change_nothing() {
        // More than two blocks, added in pieces, far from 0.
        let n = 2 * BLOCK + 17;
        let features: Vec<f32> = Rng::new(1).normals(3 * n).iter().map(|value| value.mul_add(0.125, 4096.0)).collect();
        let mut streamed = Statistics::new(3);
        for piece in features.chunks(3 * 50) {
            streamed.add(piece).unwrap();
        }
        assert_eq!(streamed.n_samples(), n);
        let streamed = streamed.finish().unwrap();
        let column = |c: usize| features.iter().skip(c).step_by(3).map(|&value| f64::from(value));
        let means = [0, 1, 2].map(|c| column(c).sum::<f64>() / n as f64);
        for a in 0..3 {
            assert!((streamed.mean()[a] - means[a]).abs() < 1e-9);
            for b in 0..3 {
                let products = column(a).zip(column(b)).map(|(x, y)| (x - means[a]) * (y - means[b]));
                let expected = products.sum::<f64>() / (n - 1) as f64;
                // Of entries of 0.016; the naive sum of squares would lose 1e7 × 1e-16 / 0.016.
                let found = streamed.covariance()[3 * a + b];
                assert!((found - expected).abs() < 1e-14, "{found} {expected}");
            }
        }
    }

    #[test]
    fn distances_by_hand() {
        let unit = Gaussian::new(vec![0.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let other = Gaussian::new(vec![3.0, 4.0], vec![4.0, 0.0, 0.0, 9.0]).unwrap();
        // 3² + 4² + (2 − 1)² + (3 − 1)²
        assert!((frechet_distance(&unit, &other).unwrap() - 30.0).abs() < 1e-12);
        assert!(frechet_distance(&other, &other).unwrap().abs() < 1e-12);
    }

    #[test]
    fn it_is_symmetric_and_real_with_fewer_samples_than_dimensions() {
        let features = |seed| gaussian(64, &Rng::new(seed).normals(64 * 20));
        let (a, b) = (features(1), features(2));
        let (ab, ba) = (frechet_distance(&a, &b).unwrap(), frechet_distance(&b, &a).unwrap());
        assert!(ab > 1.0 && (ab - ba).abs() < 1e-6 * ab, "{ab} {ba}");
        // The roots of eigenvalues that are 0 but for 1e-16 of rounding are 1e-8, and there are 45 of them.
        assert!(frechet_distance(&a, &a).unwrap().abs() < 1e-5);
    }

    #[test]
    fn what_cannot_be_compared_says_why() {
        let mut few = Statistics::new(2);
        assert_eq!(few.add(&[1.0, 2.0, 3.0]), Err(MetricError::Ragged { dim: 2, found: 3 }));
        let error = few.add(&[1.0, 2.0, 3.0, f32::NAN]).unwrap_err();
        assert!(error.to_string().starts_with("feature number 3 is NaN"), "{error}");
        assert_eq!(few.n_samples(), 0, "a vector beside a broken one is not added either");
        few.add(&[1.0, 2.0]).unwrap();
        let error = few.finish().unwrap_err();
        assert!(error.to_string().contains("at least 2 samples, and there are 1"), "{error}");

        let one = Gaussian::new(vec![0.0], vec![1.0]).unwrap();
        let two = Gaussian::new(vec![0.0, 0.0], vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        assert!(matches!(frechet_distance(&one, &two), Err(MetricError::Different { left: 1, right: 2, .. })));
        assert!(Gaussian::new(vec![], vec![]).is_err());
        assert!(Gaussian::new(vec![0.0, 0.0], vec![1.0, 0.0, 1.0]).is_err());
        assert!(Gaussian::new(vec![0.0], vec![f64::INFINITY]).is_err());
        let crooked = Gaussian::new(vec![0.0, 0.0], vec![1.0, 0.5, 0.4, 1.0]);
        assert_eq!(crooked, Err(MetricError::NotSymmetric { row: 1, column: 0 }));
    }
}
