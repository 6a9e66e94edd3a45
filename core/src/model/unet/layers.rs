//! The parts of the U-Net: initial weights, the residual block, attention, the time embedding, resampling.

use burn::{
    module::{Module, Param},
    nn::{
        Dropout, DropoutConfig, GroupNorm, GroupNormConfig, Linear, PaddingConfig2d,
        conv::{Conv2d, Conv2dConfig},
    },
    tensor::{
        Device, Tensor, TensorData,
        activation::{silu, softmax},
    },
};

use crate::{
    kernels::{conv2d, group_norm, group_norm_modulated_silu, group_norm_silu},
    rng::Rng,
};

/// Halves the variance of a sum of two branches.
const RESIDUAL_SCALE: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The variance scale of layers that start as almost nothing: the second convolution of a block and the output.
const ALMOST_ZERO: f64 = 1e-10;

/// Makes layers with weights from our own generator, so that a seed gives the same network on every device.
pub(super) struct Init<'a> {
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
pub(super) struct TimeEmbedding {
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
        let mut hidden = silu(self.first.forward(waves));
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
        silu(self.second.forward(hidden))
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

/// A residual block that is told the noise level.
#[derive(Module, Debug)]
pub(super) struct ResidualBlock {
    norm_1: GroupNorm,
    conv_1: Conv2d,
    time: Linear,
    norm_2: GroupNorm,
    dropout: Dropout,
    conv_2: Conv2d,
    /// Present where the number of channels changes.
    shortcut: Option<Conv2d>,
}

impl ResidualBlock {
    pub fn new([from, to]: [usize; 2], time_dim: usize, dropout: f64, init: &mut Init<'_>) -> Self {
        Self {
            norm_1: init.norm(from),
            conv_1: init.conv_3([from, to]),
            time: init.linear(time_dim, 2 * to),
            norm_2: init.norm(to),
            dropout: DropoutConfig::new(dropout).init(),
            conv_2: init.conv_3_zero([to, to]),
            shortcut: (from != to).then(|| init.conv_1([from, to])),
        }
    }

    /// # Shapes
    /// - `x`: `[b, from, h, w]`; `time`: `[b, 4·width]`; output: `[b, to, h, w]`
    pub fn forward(&self, x: Tensor<4>, time: Tensor<2>) -> Tensor<4> {
        let hidden = conv2d(&self.conv_1, group_norm_silu(&self.norm_1, x.clone()));
        let hidden = group_norm_modulated_silu(&self.norm_2, hidden, self.time.forward(time));
        let hidden = conv2d(&self.conv_2, self.dropout.forward(hidden));
        let x = match &self.shortcut {
            Some(shortcut) => conv2d(shortcut, x),
            None => x,
        };
        (x + hidden).mul_scalar(RESIDUAL_SCALE)
    }
}

/// Self-attention over all pixels, pre-norm.
#[derive(Module, Debug)]
pub(super) struct Attention {
    norm: GroupNorm,
    query_key_value: Conv2d,
    output: Conv2d,
    n_heads: usize,
}

impl Attention {
    pub fn new(channels: usize, head_dim: usize, init: &mut Init<'_>) -> Self {
        Self {
            norm: init.norm(channels),
            query_key_value: init.conv_1([channels, 3 * channels]),
            output: init.conv_1([channels, channels]),
            n_heads: (channels / head_dim).max(1),
        }
    }

    /// # Shapes
    /// - `x` and output: `[b, c, h, w]`
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let [batch, channels, height, width] = x.dims();
        let head_dim = channels / self.n_heads;
        let projected = conv2d(&self.query_key_value, group_norm(&self.norm, x.clone()));
        // [b, 3c, h, w] → three of [b, heads, pixels, head_dim]
        let parts = projected.reshape([batch, 3 * self.n_heads, head_dim, height * width]).swap_dims(2, 3).chunk(3, 1);
        let [query, key, value] = [0, 1, 2].map(|i| parts[i].clone());
        let scores = query.matmul(key.swap_dims(2, 3)).mul_scalar((head_dim as f64).sqrt().recip());
        let mixed = softmax(scores, 3).matmul(value);
        // [b, heads, pixels, head_dim] → [b, c, h, w]
        let mixed = mixed.swap_dims(2, 3).reshape([batch, channels, height, width]);
        (x + conv2d(&self.output, mixed)).mul_scalar(RESIDUAL_SCALE)
    }
}

/// Twice the width and height, each pixel four times.
pub(super) fn upsample(x: Tensor<4>) -> Tensor<4> {
    let [batch, channels, height, width] = x.dims();
    x.reshape([batch, channels, height, 1, width, 1]).expand([batch, channels, height, 2, width, 2]).reshape([
        batch,
        channels,
        2 * height,
        2 * width,
    ])
}
