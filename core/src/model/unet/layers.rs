//! The parts of the U-Net: the residual block, attention.

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, GroupNorm, Linear, conv::Conv2d},
    tensor::Tensor,
};

use crate::{
    kernels::{
        attention_to_pixels, conv2d, conv2d_onto, group_norm, group_norm_modulated_silu, group_norm_silu, linear,
    },
    model::layers::Init,
};

/// Halves the variance of a sum of two branches.
const RESIDUAL_SCALE: f64 = std::f64::consts::FRAC_1_SQRT_2;

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
        let hidden = group_norm_modulated_silu(&self.norm_2, hidden, linear(&self.time, time));
        let x = match &self.shortcut {
            Some(shortcut) => conv2d(shortcut, x),
            None => x,
        };
        conv2d_onto(x, &self.conv_2, self.dropout.forward(hidden), RESIDUAL_SCALE)
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
        let projected = conv2d(&self.query_key_value, group_norm(&self.norm, x.clone()));
        let mixed = attention_to_pixels(projected, self.n_heads);
        conv2d_onto(x, &self.output, mixed, RESIDUAL_SCALE)
    }
}
