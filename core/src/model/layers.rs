//! What more than one network is made of: initial weights from our own generator, and the noise level as a vector.

use burn::{
    module::{Module, Param},
    nn::{
        GroupNorm, GroupNormConfig, LayerNorm, LayerNormConfig, Linear, PaddingConfig2d,
        conv::{Conv2d, Conv2dConfig},
    },
    tensor::{Device, Tensor, TensorData},
};

use crate::{
    kernels::{TOKEN_EPSILON, linear_silu},
    rng::Rng,
};

/// The variance scale of layers that start as almost nothing: the second convolution of a block and the output.
const ALMOST_ZERO: f64 = 1e-10;

/// Makes layers with weights from our own generator, so that a seed gives the same network on every device.
pub(crate) struct Init<'a> {
    pub rng: Rng,
    pub device: &'a Device,
}

impl Init<'_> {
    /// A square convolution of odd size that keeps the picture's size (divided by `stride`), without bias at first.
    pub fn conv(&mut self, [from, to]: [usize; 2], size: usize, stride: usize, scale: f64) -> Conv2d {
        let padding = size / 2;
        let mut conv = Conv2dConfig::new([from, to], [size, size])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            .with_initializer(burn::nn::Initializer::Zeros)
            .init(self.device);
        let area = size * size;
        conv.weight = self.uniform([to, from, size, size], from * area, to * area, scale);
        conv
    }

    /// A 3×3 convolution.
    pub fn conv_3(&mut self, channels: [usize; 2]) -> Conv2d {
        self.conv(channels, 3, 1, 1.0)
    }

    /// A 3×3 convolution that starts as almost nothing.
    pub fn conv_3_zero(&mut self, channels: [usize; 2]) -> Conv2d {
        self.conv(channels, 3, 1, ALMOST_ZERO)
    }

    /// A 1×1 convolution.
    pub fn conv_1(&mut self, channels: [usize; 2]) -> Conv2d {
        self.conv(channels, 1, 1, 1.0)
    }

    /// A fully connected layer.
    pub fn linear(&mut self, from: usize, to: usize) -> Linear {
        Linear {
            weight: self.uniform([from, to], from, to, 1.0),
            bias: Some(Param::from_tensor(Tensor::zeros([to], self.device))),
        }
    }

    /// Group normalisation over groups of at least 4 channels, at most 32 groups.
    pub fn norm(&self, channels: usize) -> GroupNorm {
        GroupNormConfig::new(n_groups(channels), channels).with_epsilon(1e-5).init(self.device)
    }

    /// Normalisation of each token.
    pub fn layer_norm(&self, width: usize) -> LayerNorm {
        LayerNormConfig::new(width).with_epsilon(TOKEN_EPSILON).init(self.device)
    }

    /// Normal numbers of a standard deviation: what embeddings begin as.
    pub fn normal<const D: usize>(&mut self, shape: [usize; D], deviation: f64) -> Param<Tensor<D>> {
        Param::from_tensor(self.rng.normal_tensor(shape, self.device).mul_scalar(deviation))
    }

    /// Variance scaling over the mean of fan-in and fan-out, uniform.
    fn uniform<const D: usize>(
        &mut self,
        shape: [usize; D],
        fan_in: usize,
        fan_out: usize,
        scale: f64,
    ) -> Param<Tensor<D>> {
        let limit = (6.0 * scale / (fan_in + fan_out) as f64).sqrt();
        let values: Vec<f32> =
            (0..shape.iter().product()).map(|_| ((2.0 * self.rng.uniform() - 1.0) * limit) as f32).collect();
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), self.device))
    }
}

/// `min(channels/4, 32)`, and a divisor of the channels.
fn n_groups(channels: usize) -> usize {
    (1..=(channels / 4).clamp(1, 32)).rev().find(|groups| channels.is_multiple_of(*groups)).unwrap_or(1)
}

/// The noise level and the class, as one vector for all blocks.
#[derive(Module, Debug)]
pub(crate) struct TimeEmbedding {
    first: Linear,
    second: Linear,
    width: usize,
    n_classes: usize,
}

impl TimeEmbedding {
    pub fn new(width: usize, n_classes: usize, init: &mut Init<'_>) -> Self {
        let dim = Self::dim(width);
        Self { first: init.linear(width, dim), second: init.linear(dim + n_classes, dim), width, n_classes }
    }

    /// The size of the vector.
    pub fn dim(width: usize) -> usize {
        4 * width
    }

    /// # Shapes
    /// - `gamma`, `classes`: b entries; output: `[b, 4·width]`
    pub fn forward(&self, gamma: &[f64], classes: &[Option<usize>], device: &Device) -> Tensor<2> {
        let waves = Tensor::from_data(TensorData::new(sinusoids(gamma, self.width), [gamma.len(), self.width]), device);
        let mut hidden = linear_silu(&self.first, waves);
        if self.n_classes > 0 {
            // One-hot; the null label is the zero vector.
            let mut labels = vec![0.0_f32; gamma.len() * self.n_classes];
            for (example, class) in classes.iter().enumerate() {
                if let Some(class) = class {
                    labels[example * self.n_classes + class] = 1.0;
                }
            }
            let labels = Tensor::from_data(TensorData::new(labels, [gamma.len(), self.n_classes]), device);
            hidden = Tensor::cat(vec![hidden, labels], 1);
        }
        linear_silu(&self.second, hidden)
    }
}

/// Sines and cosines of 1000·γ at `width`/2 rates from 1 down to 1/10,000: `[sin | cos]`, one row a noise level.
fn sinusoids(gamma: &[f64], width: usize) -> Vec<f32> {
    let half = width / 2;
    let angle = |gamma: f64, i: usize| 1000.0 * gamma * 10_000_f64.powf(-(2.0 * i as f64) / width as f64);
    gamma
        .iter()
        .flat_map(|&gamma| {
            let sines = (0..half).map(move |i| angle(gamma, i).sin() as f32);
            sines.chain((0..half).map(move |i| angle(gamma, i).cos() as f32))
        })
        .collect()
}
