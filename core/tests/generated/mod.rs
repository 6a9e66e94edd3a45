//! Weights and pictures that a test and its Python script both make from names and seeds, so that none are stored.

use std::collections::BTreeMap;

use bit_diffusion::rng::Rng;
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::Deserialize;

/// The shapes of a network's weights: of kernels and matrices, of batch normalisations, of other vectors.
#[derive(Deserialize)]
pub struct Shapes {
    kernels: BTreeMap<String, Vec<usize>>,
    norms: BTreeMap<String, usize>,
    biases: BTreeMap<String, usize>,
}

/// Tensors by name.
pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// FNV-1a of a tensor's name: the seed of its values.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// The same pseudo-random weights as in the Python script.
fn weight(name: &str, shape: &[usize]) -> Vec<f32> {
    let mut rng = Rng::new(seed(name));
    let (low, high) = if shape.len() > 1 {
        let limit = (6.0 / shape[1..].iter().product::<usize>() as f64).sqrt();
        (-limit, limit)
    } else {
        match name.rsplit('.').next().unwrap() {
            "weight" => (0.8, 1.2),
            "running_var" => (0.5, 1.5),
            _ => (-0.1, 0.1),
        }
    };
    (0..shape.iter().product()).map(|_| (low + (high - low) * rng.uniform()) as f32).collect()
}

/// Weights for all of the shapes.
pub fn tensors(of: &Shapes) -> Tensors {
    let mut shapes = of.kernels.clone();
    for (norm, &channels) in &of.norms {
        for part in ["weight", "bias", "running_mean", "running_var"] {
            shapes.insert(format!("{norm}.{part}"), vec![channels]);
        }
    }
    shapes.extend(of.biases.iter().map(|(name, &n)| (name.clone(), vec![n])));
    shapes.into_iter().map(|(name, shape)| (name.clone(), (shape.clone(), weight(&name, &shape)))).collect()
}

/// A safetensors file of them.
pub fn file(tensors: &Tensors) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> =
        tensors.values().map(|(_, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect()).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, (shape, _)), bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    serialize(views, None).unwrap()
}

/// Two pictures of noise, the second with a quarter of the first one's light.
pub fn pictures(size: usize) -> Tensor<4> {
    let (mut rng, half) = (Rng::new(9), 3 * size * size);
    let values: Vec<f32> = (0..2 * half).map(|i| (rng.below(256) / if i < half { 1 } else { 4 }) as f32).collect();
    Tensor::from_data(TensorData::new(values, [2, 3, size, size]), &Device::flex())
}

/// Compares with numbers of PyTorch, to 1e-4 of each and 1e-5 of the largest.
#[track_caller]
pub fn assert_close(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let allowed = 1e-4 * expected.abs() + 1e-5 * largest;
        assert!((found - expected).abs() < allowed, "{what}: number {i} is {found}, PyTorch has {expected}");
    }
}
