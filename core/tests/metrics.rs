//! The distances between sets of feature vectors against NumPy and `SciPy`, `golden/metrics_reference.py`, whose results are in
//! `golden/metrics.json`.
//!
//! Tolerances: both sides are in f64, on the same f32 numbers. Where there are fewer samples than dimensions, the roots of
//! eigenvalues that are 0 but for rounding (1e-16 of the largest) come to 1e-8 of its root, on both sides: 1e-6 leaves room for
//! that. Otherwise 1e-10 does.

use bit_diffusion::{
    metrics::{
        frechet::{Gaussian, Statistics, frechet_distance},
        kid::{KidSettings, kernel_distance},
    },
    rng::Rng,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    dim: usize,
    left: Vec<f32>,
    right: Vec<f32>,
    frechet: f64,
    kid: f64,
}

fn gaussian(features: &[f32], dim: usize) -> Gaussian {
    let mut statistics = Statistics::new(dim);
    statistics.add(features).unwrap();
    statistics.finish().unwrap()
}

#[test]
fn distances_agree_with_numpy_and_scipy() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/metrics.json")).unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        let (left, right) = (gaussian(&case.left, case.dim), gaussian(&case.right, case.dim));
        let distance = frechet_distance(&left, &right).unwrap();
        let tolerance = if case.left.len() / case.dim > case.dim { 1e-10 } else { 1e-6 };
        let error = (distance - case.frechet).abs() / case.frechet;
        assert!(error < tolerance, "{}: {distance}, SciPy has {}", case.name, case.frechet);

        // One subset of all samples leaves nothing to chance.
        let kid = kernel_distance(&case.left, &case.right, case.dim, KidSettings::default(), &Rng::new(0)).unwrap();
        assert_eq!(kid.n_subsets, 1);
        assert!((kid.mean - case.kid).abs() < 1e-10 * case.kid.abs(), "{}: {kid:?}, NumPy has {}", case.name, case.kid);
    }
}
