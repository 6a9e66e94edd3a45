//! The ResNet-56 for CIFAR-10 of He et al. 2016, section 4.2, with the tensor names of `akamaster/pytorch_resnet_cifar10`.
//!
//! Three stages of nine blocks of two convolutions. Shortcuts have no weights (option A): where a stage begins, every second pixel is
//! taken and the missing channels are zeros.

use burn::tensor::{Device, Tensor, TensorData, activation::relu};

use super::{
    FeatureError,
    weights::{Conv, Weights, Window},
};

/// The number of features.
pub(super) const DIM: usize = 64;

/// The width and height of the pictures.
pub(super) const SIZE: usize = crate::data::cifar10::SIZE;

/// A tensor that this network has and a shallower one has not.
pub(super) const MARK: &str = "layer3.8.conv2.weight";

const N_CLASSES: usize = 10;
const N_BLOCKS: usize = 9;
const N_CHANNELS: [usize; 3] = [16, 32, DIM];

/// PyTorch's default.
const EPSILON: f64 = 1e-5;

/// What its training subtracted from and divided colour values from 0 to 1 by: the numbers of ImageNet, on CIFAR-10 too.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const SPREAD: [f32; 3] = [0.229, 0.224, 0.225];

/// Two convolutions and the way around them.
#[derive(Debug, Clone)]
struct Block {
    first: Conv,
    second: Conv,
}

/// The network.
#[derive(Debug, Clone)]
pub(super) struct ResNet56 {
    input: Conv,
    blocks: Vec<Block>,
    /// `[10, 64]`
    head: Tensor<2>,
    head_bias: Tensor<1>,
}

impl ResNet56 {
    pub fn load(weights: &Weights<'_>) -> Result<Self, FeatureError> {
        let conv = |block: &str, n: usize, channels: [usize; 2], stride: usize| {
            let window = Window { size: [3, 3], stride, padding: [1, 1] };
            weights.conv([&format!("{block}conv{n}"), &format!("{block}bn{n}")], channels, window, EPSILON)
        };
        let input = conv("", 1, [3, N_CHANNELS[0]], 1)?;
        let mut from = N_CHANNELS[0];
        let mut blocks = Vec::new();
        for (stage, to) in N_CHANNELS.into_iter().enumerate() {
            for block in 0..N_BLOCKS {
                let stride = if to == from { 1 } else { 2 };
                let name = format!("layer{}.{block}.", stage + 1);
                blocks.push(Block { first: conv(&name, 1, [from, to], stride)?, second: conv(&name, 2, [to, to], 1)? });
                from = to;
            }
        }
        let head = weights.tensor("linear.weight", [N_CLASSES, DIM])?;
        Ok(Self { input, blocks, head, head_bias: weights.tensor("linear.bias", [N_CLASSES])? })
    }

    /// # Shapes
    /// - `pictures`: `[b, 3, 32, 32]`, from 0 to 255; output: `[b, 64]`
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<2> {
        let mut x = relu(self.input.forward(normalised(pictures)));
        for Block { first, second } in &self.blocks {
            let hidden = second.forward(relu(first.forward(x.clone())));
            x = relu(hidden.clone() + shortcut(x, hidden.dims()));
        }
        let [batch, channels, ..] = x.dims();
        x.reshape([batch, channels, SIZE * SIZE / 16]).mean_dim(2).reshape([batch, channels])
    }

    /// # Shapes
    /// - `features`: `[b, 64]`; output: `[b, 10]`
    pub fn logits(&self, features: Tensor<2>) -> Tensor<2> {
        features.matmul(self.head.clone().transpose()) + self.head_bias.clone().unsqueeze()
    }
}

fn normalised(pictures: Tensor<4>) -> Tensor<4> {
    let colours =
        |values: [f32; 3], device: &Device| Tensor::from_data(TensorData::new(values.to_vec(), [1, 3, 1, 1]), device);
    let (mean, spread) = (colours(MEAN, &pictures.device()), colours(SPREAD, &pictures.device()));
    (pictures.div_scalar(255.0) - mean) / spread
}

/// The block's input, where need be with every second pixel only and half the new channels of zeros on either side.
fn shortcut(x: Tensor<4>, to: [usize; 4]) -> Tensor<4> {
    let [batch, channels, height, width] = x.dims();
    if [batch, channels, height, width] == to {
        return x;
    }
    // [b, c, h, w] → [b, c, h/2, 1, w/2, 1] → [b, c, h/2, w/2]
    let pairs = x.reshape([batch, channels, height / 2, 2, width / 2, 2]);
    let x = pairs.narrow(3, 0, 1).narrow(5, 0, 1).reshape([batch, channels, to[2], to[3]]);
    let zeros = Tensor::zeros([batch, (to[1] - channels) / 2, to[2], to[3]], &x.device());
    Tensor::cat(vec![zeros.clone(), x, zeros], 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortcut_takes_every_second_pixel_and_adds_zeros_on_both_sides() {
        let x: Vec<f32> = (1..=32).map(|i| i as f32).collect();
        let x = Tensor::from_data(TensorData::new(x, [1, 2, 4, 4]), &Device::flex());
        assert_eq!(shortcut(x.clone(), [1, 2, 4, 4]).dims(), [1, 2, 4, 4]);
        let out = shortcut(x, [1, 4, 2, 2]).into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(out, [0., 0., 0., 0., 1., 3., 9., 11., 17., 19., 25., 27., 0., 0., 0., 0.]);
    }
}
