//! The U-Net of the paper's picture models.
//!
//! The paper gives width, stages and blocks; the rest follows the authors' released code: self-conditioning by concatenation,
//! residual sums divided by √2, attention after the blocks at some sizes, skips taken before attention, no middle block.

mod layers;

use burn::{
    module::Module,
    nn::{GroupNorm, conv::Conv2d},
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

use self::layers::{Attention, ResidualBlock};
use super::{
    Condition, Denoiser, Input,
    layers::{Init, TimeEmbedding},
    parameters,
};
use crate::{
    Error,
    bits::{Codec, Encoding},
    data::Picture,
    error::check_number,
    kernels::{conv2d, double, group_norm, group_norm_silu, join, on_the_cores},
    objective::{Loss, Objective, Prediction},
    rng::Rng,
};

/// As many as anybody has; each example's class is written out one-hot.
const MAX_CLASSES: usize = 1 << 16;

/// The last layer: what it predicts the bits from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Output {
    /// The bits directly.
    #[default]
    Linear,
    /// A distribution over the values of each sub-pixel, and from it the expected bits; the paper's tweak for UINT8 (RAND).
    SoftmaxFactorised,
}

/// Everything that decides a U-Net.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UNetConfig {
    /// Width and height of the pictures, in pixels.
    pub size: usize,
    /// Colour channels of the pictures: 3, or 1 for grey ones.
    pub channels: usize,
    /// How colour values are written.
    pub encoding: Encoding,
    /// The number of colour values, K.
    pub alphabet: usize,
    /// Bits are ±`scale`.
    pub scale: f64,
    /// The number of features of the first stage.
    pub width: usize,
    /// For each stage, from the largest pictures to the smallest, how many times `width` it has.
    pub multipliers: Vec<usize>,
    /// Residual blocks a stage.
    pub n_blocks: usize,
    /// Picture sizes at which blocks are followed by attention.
    pub attention_sizes: Vec<usize>,
    /// Features of one attention head.
    pub head_dim: usize,
    /// The share of features dropped in training.
    pub dropout: f64,
    /// The number of classes; 0 for pictures without.
    pub n_classes: usize,
    /// The last layer.
    pub output: Output,
    /// What the output stands for.
    pub prediction: Prediction,
    /// How the network is trained.
    pub loss: Loss,
}

impl UNetConfig {
    /// The paper's CIFAR-10 network: width 256, three stages, three blocks; 52 million parameters.
    #[must_use]
    pub fn cifar10() -> Self {
        Self {
            size: 32,
            channels: 3,
            encoding: Encoding::Uint8,
            alphabet: 256,
            scale: 1.0,
            width: 256,
            multipliers: vec![1, 1, 1],
            n_blocks: 3,
            attention_sizes: vec![16, 8],
            head_dim: 64,
            dropout: 0.0,
            n_classes: 0,
            output: Output::Linear,
            prediction: Prediction::X0,
            loss: Loss::L2,
        }
    }

    /// The paper's ImageNet 64×64 network: width 192 × 1, 2, 3, 4; 247 million parameters.
    #[must_use]
    pub fn imagenet64() -> Self {
        Self { size: 64, width: 192, multipliers: vec![1, 2, 3, 4], n_classes: 1000, ..Self::cifar10() }
    }

    /// Checks every number.
    pub fn validate(&self) -> Result<(), Error> {
        let positive = [
            ("picture size", self.size),
            ("picture channels", self.channels),
            ("stages", self.multipliers.len()),
            ("blocks per stage", self.n_blocks),
            ("head dim", self.head_dim),
        ];
        if self.n_classes > MAX_CLASSES {
            return Err(Error::argument("classes", self.n_classes, format!("at most {MAX_CLASSES}")));
        }
        for (name, value) in positive {
            if !(1..=4096).contains(&value) {
                return Err(Error::argument(name, value, "from 1 to 4096"));
            }
        }
        if !(4..=4096).contains(&self.width) || !self.width.is_multiple_of(4) {
            return Err(Error::argument("width", self.width, "a multiple of 4 from 4 to 4096"));
        }
        for &multiplier in &self.multipliers {
            if !(1..=64).contains(&multiplier) {
                return Err(Error::argument("width multiplier", multiplier, "from 1 to 64"));
            }
        }
        let halvings = self.multipliers.len() - 1;
        if halvings > 12 || !self.size.is_multiple_of(1 << halvings) {
            let allowed = format!("divisible by 2 once for each of {halvings} halvings between stages");
            return Err(Error::argument("picture size", self.size, allowed));
        }
        check_number("dropout", self.dropout, |share| (0.0..1.0).contains(&share), "a number from 0 to below 1")?;
        let attended = self.stages().filter(|(size, _)| self.attention_sizes.contains(size));
        for (size, features) in attended {
            if features > self.head_dim && !features.is_multiple_of(self.head_dim) {
                let allowed = format!("a divisor of the {features} features at {size} pixels");
                return Err(Error::argument("head dim", self.head_dim, allowed));
            }
        }
        let discrete = self.encoding != Encoding::Continuous;
        if !discrete && (self.loss != Loss::L2 || self.output != Output::Linear) {
            return Err(Error::argument("encoding", self.encoding.label(), "made of bits for this loss and output"));
        }
        if self.loss == Loss::SoftmaxCrossEntropy && self.encoding != Encoding::OneHot {
            return Err(Error::argument("encoding", self.encoding.label(), "one-hot for the softmax cross-entropy"));
        }
        if self.output == Output::SoftmaxFactorised && (self.loss != Loss::L2 || self.prediction != Prediction::X0) {
            return Err(Error::argument("output", "softmax factorised", "linear unless x₀ is predicted by ℓ₂"));
        }
        self.codec().and_then(|codec| self.objective_with(&codec).validate())
    }

    /// The codec of the pictures.
    pub fn codec(&self) -> Result<Codec, Error> {
        Codec::new(self.encoding, self.alphabet, self.scale)
    }

    /// The colour values of a picture as symbols: of 256, as many as the network has.
    pub fn symbols_of<'a>(&self, picture: &'a Picture) -> impl Iterator<Item = u32> + use<'a> {
        let alphabet = self.alphabet as u32;
        picture.pixels.iter().map(move |&value| u32::from(value) * alphabet / 256)
    }

    /// Size of the pictures and number of features of each stage.
    fn stages(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator + '_ {
        self.multipliers.iter().enumerate().map(|(stage, multiplier)| (self.size >> stage, self.width * multiplier))
    }

    /// The number of weights, without making them.
    #[must_use]
    pub fn n_parameters(&self) -> u64 {
        let conv = |from: usize, to: usize, size: usize| (from * size * size + 1) as u64 * to as u64;
        let linear = |from: usize, to: usize| (from + 1) as u64 * to as u64;
        let norm = |features: usize| 2 * features as u64;
        let time_dim = TimeEmbedding::dim(self.width);
        let block = |from: usize, to: usize, size: usize| {
            let shortcut = if from == to { 0 } else { conv(from, to, 1) };
            let attends = self.attention_sizes.contains(&size);
            let attention = if attends { norm(to) + conv(to, 3 * to, 1) + conv(to, to, 1) } else { 0 };
            let convs = conv(from, to, 3) + conv(to, to, 3) + shortcut;
            norm(from) + norm(to) + linear(time_dim, 2 * to) + convs + attention
        };
        let bits = self.channels * self.codec().map_or(0, |codec| codec.bits_per_symbol());
        let mut total = conv(2 * bits, self.width, 3) + norm(self.width);
        total += linear(self.width, time_dim) + linear(time_dim + self.n_classes, time_dim);
        let mut skips = vec![self.width];
        let mut features = self.width;
        for (stage, (size, to)) in self.stages().enumerate() {
            if stage > 0 {
                total += conv(features, features, 3);
                skips.push(features);
            }
            for _ in 0..self.n_blocks {
                total += block(features, to, size);
                features = to;
                skips.push(features);
            }
        }
        for (stage, (size, to)) in self.stages().enumerate().rev() {
            for _ in 0..=self.n_blocks {
                total += block(features + skips.pop().unwrap_or(0), to, size);
                features = to;
            }
            if stage > 0 {
                total += conv(features, features, 3);
            }
        }
        let output = match self.output {
            Output::Linear => conv(features, bits, 3),
            Output::SoftmaxFactorised => conv(features, self.channels * self.alphabet, 1),
        };
        total + norm(features) + output
    }

    fn objective_with(&self, codec: &Codec) -> Objective {
        Objective {
            prediction: self.prediction,
            loss: self.loss,
            scale: self.scale,
            bits_per_symbol: codec.bits_per_symbol(),
        }
    }

    /// The network with fresh weights from a seed.
    pub fn init(&self, seed: u64, device: &Device) -> Result<UNet, Error> {
        self.validate()?;
        let codec = self.codec()?;
        let init = &mut Init { rng: Rng::new(seed), device };
        let bits = self.channels * codec.bits_per_symbol();
        let time_dim = TimeEmbedding::dim(self.width);
        let attention = |size: usize, features: usize, init: &mut Init<'_>| {
            self.attention_sizes.contains(&size).then(|| Attention::new(features, self.head_dim, init))
        };

        // Both x_t and the self-conditioning estimate come in.
        let input = init.conv_3([2 * bits, self.width]);
        let input_norm = init.norm(self.width);
        let time = TimeEmbedding::new(self.width, self.n_classes, init);
        let mut skips = vec![self.width];
        let mut features = self.width;
        let mut down = Vec::new();
        let n_stages = self.multipliers.len();
        for (stage, (size, to)) in self.stages().enumerate() {
            let mut blocks = Vec::new();
            for _ in 0..self.n_blocks {
                let residual = ResidualBlock::new([features, to], time_dim, self.dropout, init);
                blocks.push(Block { residual, attention: attention(size, to, init) });
                features = to;
                skips.push(features);
            }
            let resample = (stage + 1 < n_stages).then(|| init.conv([features, features], 3, 2, 1.0));
            if resample.is_some() {
                skips.push(features);
            }
            down.push(Stage { blocks, resample });
        }
        let mut up = Vec::new();
        for (stage, (size, to)) in self.stages().enumerate().rev() {
            let mut blocks = Vec::new();
            // One more than on the way down: the skip of the input or of the downsampling.
            for _ in 0..=self.n_blocks {
                let skip = skips.pop().expect("every up block has a skip");
                let residual = ResidualBlock::new([features + skip, to], time_dim, self.dropout, init);
                blocks.push(Block { residual, attention: attention(size, to, init) });
                features = to;
            }
            let resample = (stage > 0).then(|| init.conv_3([features, features]));
            up.push(Stage { blocks, resample });
        }
        let output_norm = init.norm(features);
        let output = match self.output {
            Output::Linear => init.conv_3_zero([features, bits]),
            Output::SoftmaxFactorised => init.conv_1([features, self.channels * self.alphabet]),
        };
        let parts = Layers { input, input_norm, time, down, up, output_norm, output };
        Ok(UNet { layers: parts, config: self.clone(), objective: self.objective_with(&codec), codec })
    }
}

/// A residual block and, at some sizes, attention after it.
#[derive(Module, Debug)]
struct Block {
    residual: ResidualBlock,
    attention: Option<Attention>,
}

/// The blocks at one picture size, and the way to the next one.
#[derive(Module, Debug)]
struct Stage {
    blocks: Vec<Block>,
    resample: Option<Conv2d>,
}

/// All that has weights.
#[derive(Module, Debug)]
pub struct Layers {
    input: Conv2d,
    input_norm: GroupNorm,
    time: TimeEmbedding,
    down: Vec<Stage>,
    up: Vec<Stage>,
    output_norm: GroupNorm,
    output: Conv2d,
}

/// A U-Net: its weights and what they mean.
#[derive(Debug, Clone)]
pub struct UNet {
    /// The weights.
    pub layers: Layers,
    config: UNetConfig,
    codec: Codec,
    objective: Objective,
}

impl UNet {
    /// What decides it.
    #[must_use]
    pub fn config(&self) -> &UNetConfig {
        &self.config
    }

    /// The name and shape of every parameter.
    #[must_use]
    pub fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        parameters::names(&self.layers)
    }

    /// The shape of `batch` states.
    #[must_use]
    pub fn state_shape(&self, batch: usize) -> [usize; 4] {
        let bits = self.config.channels * self.codec.bits_per_symbol();
        [batch, bits, self.config.size, self.config.size]
    }

    fn run(&self, input: Input<'_, 4>) -> Tensor<4> {
        let Input { x_t, x_pred, gamma, condition } = input;
        let device = x_t.device();
        let classes = match condition {
            Condition::Classes(classes) => classes.clone(),
            Condition::None | Condition::Picture(_) => vec![None; gamma.len()],
        };
        let layers = &self.layers;
        let time = layers.time.forward(gamma, &classes, &device);
        let mut x = group_norm(&layers.input_norm, conv2d(&layers.input, join(x_t, x_pred)));
        let mut skips = vec![x.clone()];
        for stage in &layers.down {
            for Block { residual, attention } in &stage.blocks {
                x = residual.forward(x, time.clone());
                skips.push(x.clone());
                if let Some(attention) = attention {
                    x = attention.forward(x);
                }
            }
            if let Some(downsample) = &stage.resample {
                x = conv2d(downsample, x);
                skips.push(x.clone());
            }
        }
        for stage in &layers.up {
            for Block { residual, attention } in &stage.blocks {
                let skip = skips.pop().expect("every up block has a skip");
                x = residual.forward(join(x, skip), time.clone());
                if let Some(attention) = attention {
                    x = attention.forward(x);
                }
            }
            if let Some(resample) = &stage.resample {
                x = conv2d(resample, double(x));
            }
        }
        let x = conv2d(&layers.output, group_norm_silu(&layers.output_norm, x));
        match self.config.output {
            Output::Linear => x,
            Output::SoftmaxFactorised => self.codec.expected_bits(x).expect("the output has K logits a sub-pixel"),
        }
    }
}

impl Denoiser<4> for UNet {
    fn forward(&self, input: Input<'_, 4>) -> Tensor<4> {
        on_the_cores(&input.x_t.device(), || self.run(input))
    }

    fn without_gradients(&self) -> Option<Box<dyn Denoiser<4>>> {
        // Dropout is for training; an estimate that is trained with has it too.
        let has_dropout = self.config.dropout > 0.0;
        (!has_dropout).then(|| Box::new(Self { layers: self.layers.valid(), ..self.clone() }) as Box<dyn Denoiser<4>>)
    }

    fn objective(&self) -> Objective {
        self.objective
    }

    fn accepts(&self, shape: [usize; 4], condition: &Condition) -> Result<(), Error> {
        let expected = self.state_shape(shape[0]);
        if shape[0] == 0 || shape != expected {
            return Err(Error::shape("state", &shape, format!("at least one example of shape {:?}", &expected[1..])));
        }
        let classes = match condition {
            Condition::None => return Ok(()),
            Condition::Classes(classes) => classes,
            Condition::Picture(_) => {
                return Err(Error::argument("picture", "given", "left out: this network captions nothing"));
            }
        };
        let n_classes = self.config.n_classes;
        if n_classes == 0 {
            return Err(Error::argument("class", "given", "left out: this network has no classes"));
        }
        match classes.iter().flatten().find(|class| **class >= n_classes) {
            None => Ok(()),
            Some(class) => Err(Error::argument("class", class, format!("from 0 to {}", n_classes - 1))),
        }
    }
}
