//! As small as a U-Net gets with all its parts: two picture sizes, attention at the smaller one, classes.

use bit_diffusion::{bits::Encoding, model::UNetConfig};

/// The network for pictures of `size` × `size` pixels, a multiple of 2.
pub fn unet(size: usize) -> UNetConfig {
    UNetConfig {
        size,
        channels: 1,
        encoding: Encoding::Gray,
        alphabet: 4,
        width: 8,
        multipliers: vec![1, 2],
        n_blocks: 1,
        attention_sizes: vec![size / 2],
        head_dim: 8,
        n_classes: 3,
        ..UNetConfig::cifar10()
    }
}
