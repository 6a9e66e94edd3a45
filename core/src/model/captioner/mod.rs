//! The captioner of the paper's second task: a picture in, words out, by bit diffusion or one word after the other.
//!
//! A caption is a row of tokens of one length; its analog bits have shape `[b, n, length]`. The bit-diffusion captioner is one more
//! [`Denoiser`], told of its picture by [`Condition::Picture`], so samplers, time differences and self-conditioning are those of pictures.
//! The autoregressive baseline is the same decoder with a causal mask. Layers follow the paper (six of width 512) and the authors' code.
//!
//! Deliberately absent: text (see [`crate::text`]; here a caption is token ids) and the training loop.

mod autoregressive;
mod eye;
mod transformer;
mod view;

use std::borrow::Cow;

use burn::{
    module::{Module, Param},
    nn::{LayerNorm, Linear},
    tensor::{Device, Tensor, TensorData, activation::log_softmax},
};
use serde::{Deserialize, Serialize};

pub use self::{
    autoregressive::{Writing, Written},
    eye::Eye,
    view::View,
};
use self::{
    eye::{EyeLayers, imitation_loss},
    transformer::{Layer, Seen},
};
use super::{
    Condition, Denoiser, Input, Output,
    features::{EncoderConfig, ImageEncoder},
    layers::{Init, TimeEmbedding},
    parameters,
};
use crate::{
    Error,
    bits::{Codec, Encoding},
    error::check_number,
    kernels::{join, layer_norm, linear, on_the_cores},
    objective::{Loss, Objective, Prediction},
    rng::Rng,
    text::Vocabulary,
};

/// How a caption comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Method {
    /// All tokens at once, as analog bits, in a few steps.
    BitDiffusion,
    /// One token after the other, each a choice among all.
    Autoregressive,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 2] = [Self::BitDiffusion, Self::Autoregressive];

    /// The method's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::BitDiffusion => "bit diffusion",
            Self::Autoregressive => "autoregressive",
        }
    }
}

/// What is learned of the places after a caption's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Padding {
    /// That they are padding, as in the authors' captioner.
    #[default]
    Learned,
    /// Nothing: they do not count in the loss, as in SCD-Net.
    Ignored,
}

/// Everything that decides a captioner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaptionerConfig {
    /// How a caption comes about.
    pub method: Method,
    /// The tokens.
    pub vocabulary: Vocabulary,
    /// The number of tokens of a caption, its end and the padding too.
    pub length: usize,
    /// How token ids are written as bits.
    pub encoding: Encoding,
    /// Bits are ±`scale`.
    pub scale: f64,
    /// What turns a picture into tokens to look at.
    pub eye: Eye,
    /// Features of a token.
    pub width: usize,
    /// Layers of the decoder.
    pub n_layers: usize,
    /// Attention heads of a layer.
    pub n_heads: usize,
    /// The share of features dropped in training.
    pub dropout: f64,
    /// The last layer.
    pub output: Output,
    /// What the output stands for.
    pub prediction: Prediction,
    /// How the network is trained.
    pub loss: Loss,
    /// What is learned of the places after a caption's end.
    pub padding: Padding,
    /// How many times a step of training adds noise to each caption; looking at its picture, which is done once, may cost more than that.
    #[serde(default = "once")]
    pub n_draws: usize,
}

fn once() -> usize {
    1
}

impl CaptionerConfig {
    /// The paper's captioner: six layers of width 512 and 16 heads, 64 tokens of 15 bits.
    #[must_use]
    pub fn paper(vocabulary: Vocabulary, eye: Eye) -> Self {
        Self {
            method: Method::BitDiffusion,
            vocabulary,
            length: 64,
            encoding: Encoding::Uint8,
            scale: 1.0,
            eye,
            width: 512,
            n_layers: 6,
            n_heads: 16,
            dropout: 0.1,
            output: Output::Linear,
            prediction: Prediction::X0,
            loss: Loss::L2,
            padding: Padding::Learned,
            n_draws: once(),
        }
    }

    /// Checks every number.
    pub fn validate(&self) -> Result<(), Error> {
        let counts = [
            ("caption length", self.length),
            ("layers", self.n_layers),
            ("heads", self.n_heads),
            ("noises for a caption", self.n_draws),
        ];
        for (name, value) in counts {
            if !(1..=4096).contains(&value) {
                return Err(Error::argument(name, value, "from 1 to 4096"));
            }
        }
        if !(4..=8192).contains(&self.width) || !self.width.is_multiple_of(4) {
            return Err(Error::argument("width", self.width, "a multiple of 4 from 4 to 8192"));
        }
        if !self.width.is_multiple_of(self.n_heads) {
            return Err(Error::argument("heads", self.n_heads, format!("a divisor of the width, {}", self.width)));
        }
        check_number("dropout", self.dropout, |share| (0.0..1.0).contains(&share), "a number from 0 to below 1")?;
        if self.encoding == Encoding::Continuous {
            return Err(Error::argument("encoding", self.encoding.label(), "made of bits: words have no order"));
        }
        let is_factorised = self.output == Output::SoftmaxFactorised;
        if self.loss == Loss::SoftmaxCrossEntropy && self.encoding != Encoding::OneHot && !is_factorised {
            let allowed = "one-hot for the softmax cross-entropy, unless the output is softmax factorised";
            return Err(Error::argument("encoding", self.encoding.label(), allowed));
        }
        if is_factorised && (self.loss == Loss::SigmoidCrossEntropy || self.prediction != Prediction::X0) {
            let allowed = "linear unless x₀ is predicted, by ℓ₂ or the softmax cross-entropy";
            return Err(Error::argument("output", "softmax factorised", allowed));
        }
        self.eye.validate()?;
        self.codec().and_then(|codec| self.objective(&codec).validate())
    }

    /// The codec of the tokens.
    pub fn codec(&self) -> Result<Codec, Error> {
        Codec::new(self.encoding, self.vocabulary.n_tokens(), self.scale)
    }

    fn objective(&self, codec: &Codec) -> Objective {
        // What a factorised output makes of its logits are bits already.
        let loss = if self.output == Output::SoftmaxFactorised { Loss::L2 } else { self.loss };
        Objective { prediction: self.prediction, loss, scale: self.scale, bits_per_symbol: codec.bits_per_symbol() }
    }

    /// How many numbers the decoder writes for each token.
    fn n_outputs(&self, codec: &Codec) -> usize {
        match (self.method, self.output) {
            (Method::BitDiffusion, Output::Linear) => codec.bits_per_symbol(),
            (Method::BitDiffusion, Output::SoftmaxFactorised) | (Method::Autoregressive, _) => codec.alphabet(),
        }
    }

    /// The number of weights, without making them.
    #[must_use]
    pub fn n_parameters(&self) -> u64 {
        let Ok(codec) = self.codec() else { return 0 };
        let linear = |from: usize, to: usize| (from + 1) as u64 * to as u64;
        let input = match self.method {
            Method::BitDiffusion => {
                let time = linear(self.width / 4, self.width) + linear(self.width, self.width);
                linear(2 * codec.bits_per_symbol(), self.width) + time
            }
            // One more than there are tokens: the beginning.
            Method::Autoregressive => linear(codec.alphabet(), self.width),
        };
        let ends = (self.length * self.width + 2 * self.width) as u64 + linear(self.width, self.n_outputs(&codec));
        let layers = self.n_layers as u64 * Layer::n_parameters(self.width);
        self.eye.n_parameters(self.width) + input + layers + ends
    }

    /// The network with fresh weights from a seed.
    pub fn init(&self, seed: u64, device: &Device) -> Result<Captioner, Error> {
        self.validate()?;
        let codec = self.codec()?;
        let width = self.width;
        let init = &mut Init { rng: Rng::new(seed), device };
        let eye = self.eye.init(width, init);
        let (bits, time, embedding) = match self.method {
            Method::BitDiffusion => {
                let time = TimeEmbedding::new(width / 4, 0, init);
                (Some(init.linear(2 * codec.bits_per_symbol(), width)), Some(time), None)
            }
            Method::Autoregressive => (None, None, Some(init.normal([codec.alphabet() + 1, width], 0.02))),
        };
        let positions = init.normal([self.length, width], 0.02);
        let layers = (0..self.n_layers).map(|_| Layer::new(width, self.n_heads, self.dropout, init)).collect();
        let norm = init.layer_norm(width);
        let output = init.linear(width, self.n_outputs(&codec));
        let layers = CaptionerLayers { eye, bits, time, embedding, positions, layers, norm, output };
        Ok(Captioner { layers, config: self.clone(), objective: self.objective(&codec), codec })
    }
}

/// All that has weights.
#[derive(Module, Debug)]
pub struct CaptionerLayers {
    eye: EyeLayers,
    /// Takes the bits of a token in; of bit diffusion only.
    bits: Option<Linear>,
    /// Takes the noise level in; of bit diffusion only.
    time: Option<TimeEmbedding>,
    /// The tokens and the beginning; of the autoregressive method only.
    embedding: Option<Param<Tensor<2>>>,
    positions: Param<Tensor<2>>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    output: Linear,
}

/// A captioner: its weights and what they mean.
#[derive(Debug, Clone)]
pub struct Captioner {
    /// The weights.
    pub layers: CaptionerLayers,
    config: CaptionerConfig,
    codec: Codec,
    objective: Objective,
}

impl Captioner {
    /// What decides it.
    #[must_use]
    pub fn config(&self) -> &CaptionerConfig {
        &self.config
    }

    /// The codec of its tokens.
    #[must_use]
    pub fn codec(&self) -> &Codec {
        &self.codec
    }

    /// The name and shape of every parameter.
    #[must_use]
    pub fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        parameters::names(&self.layers)
    }

    /// The shape of the states of `batch` captions.
    #[must_use]
    pub fn state_shape(&self, batch: usize) -> [usize; 3] {
        [batch, self.codec.bits_per_symbol(), self.config.length]
    }

    /// What there is to see in pictures, for [`Condition::Picture`]; once a picture, for all steps.
    ///
    /// # Shapes
    /// - `pictures`: `[b, 3, size, size]` in ±1, or the features that the eye takes; output: `[b, side², width]`
    pub fn look(&self, pictures: Tensor<4>) -> Result<Tensor<3>, Error> {
        let expected = self.config.eye.input_shape();
        if pictures.dims()[1..] != expected {
            return Err(Error::shape("pictures", &pictures.dims(), format!("pictures of {expected:?} numbers")));
        }
        Ok(on_the_cores(&pictures.device(), || self.layers.eye.tokens(self.layers.eye.see(pictures))))
    }

    /// [`Self::look`] of an eye in training, and how far it is from seeing what its teacher does.
    ///
    /// # Shapes
    /// - `taught`: `[b, channels, side, side]`; results: `[b, side², width]` and `[1]`
    pub(crate) fn look_and_learn(&self, pictures: Tensor<4>, taught: Tensor<4>) -> (Tensor<3>, Tensor<1>) {
        on_the_cores(&pictures.device(), || {
            let seen = self.layers.eye.see(pictures);
            (self.layers.eye.tokens(seen.clone()), imitation_loss(seen, taught))
        })
    }

    /// [`Self::look`] at colour values of 0 to 255, picture after picture, each `[3, size, size]`.
    pub fn look_at_pixels(&self, pixels: &[u8], device: &Device) -> Result<Tensor<3>, Error> {
        let [channels, height, width] = self.config.eye.input_shape();
        let one = channels * height * width;
        if !matches!(self.config.eye, Eye::Convolutions { .. }) {
            return Err(Error::argument(
                "pictures",
                "given as pixels",
                "the features that this captioner was trained on",
            ));
        }
        if pixels.is_empty() || !pixels.len().is_multiple_of(one) {
            let expected = format!("whole pictures of {channels} × {height} × {width} values");
            return Err(Error::shape("pictures", &[pixels.len()], expected));
        }
        let values: Vec<f32> = pixels.iter().map(|&value| f32::from(value) / 127.5 - 1.0).collect();
        let shape = [pixels.len() / one, channels, height, width];
        self.look(Tensor::from_data(TensorData::new(values, shape), device))
    }

    /// [`Self::look`] through the encoder whose features this captioner was trained on, at colour values of 0 to 255, picture after
    /// picture, each `[3, size, size]` with [`EncoderConfig::PICTURE_SIZE`].
    pub fn look_through(&self, encoder: &ImageEncoder, pixels: &[u8], device: &Device) -> Result<Tensor<3>, Error> {
        let [channels, side, _] = self.config.eye.input_shape();
        let size = EncoderConfig::PICTURE_SIZE;
        let one = 3 * size * size;
        if pixels.is_empty() || !pixels.len().is_multiple_of(one) {
            return Err(Error::shape(
                "pictures",
                &[pixels.len()],
                format!("whole pictures of 3 × {size} × {size} values"),
            ));
        }
        let n = pixels.len() / one;
        let values: Vec<f32> = pixels.iter().map(|&value| f32::from(value)).collect();
        let tokens = encoder.forward(Tensor::from_data(TensorData::new(values, [n, 3, size, size]), device));
        if tokens.dims() != [n, side * side, channels] {
            let expected = format!("{} tokens of {channels} features", side * side);
            return Err(Error::shape("features", &tokens.dims(), expected));
        }
        // [b, tokens, channels] → [b, channels, side, side]
        self.look(tokens.swap_dims(1, 2).reshape([n, channels, side, side]))
    }

    /// What every layer can see of pictures.
    fn picture_of_layers(&self, tokens: &Tensor<3>) -> Vec<Seen> {
        self.layers.layers.iter().map(|layer| layer.picture(tokens.clone())).collect()
    }

    /// The last layer's view of the tokens.
    fn finish(&self, x: Tensor<3>) -> Tensor<3> {
        linear(&self.layers.output, layer_norm(&self.layers.norm, x))
    }

    /// What the decoder writes for each token: its bits, or its logits.
    ///
    /// # Shapes
    /// - output: `[b, length, n]`, or `[b, length, K]`
    fn write(&self, input: Input<'_, 3>) -> Tensor<3> {
        let Input { x_t, x_pred, gamma, condition } = input;
        let Condition::Picture(picture) = condition else {
            panic!("a captioner looks at pictures; `accepts` says so before");
        };
        let layers = &self.layers;
        let (Some(bits), Some(time)) = (&layers.bits, &layers.time) else {
            panic!("an autoregressive captioner denoises nothing; `accepts` says so before");
        };
        let time = time.forward(gamma, &[], &x_t.device());
        // [b, 2n, length] → [b, length, width]
        let x = linear(bits, join(x_t, x_pred).swap_dims(1, 2));
        let mut x = x + layers.positions.val().unsqueeze::<3>() + time.unsqueeze_dim::<3>(1);
        let seen = picture.layers().map_or_else(|| self.picture_of_layers(picture.tokens()).into(), Cow::from);
        for (layer, seen) in layers.layers.iter().zip(seen.as_ref()) {
            x = layer.forward(x, None, seen.clone(), None).0;
        }
        self.finish(x)
    }

    /// The analog bits that the decoder's output stands for, `[b, n, length]`.
    fn run(&self, input: Input<'_, 3>) -> Tensor<3> {
        let output = self.write(input);
        let [batch, length, k] = output.dims();
        let bits = match self.config.output {
            Output::Linear => output,
            Output::SoftmaxFactorised => {
                let bits = self.codec.expected_bits(output.reshape([batch * length, k]));
                bits.expect("the output has K logits a token").reshape([batch, length, self.codec.bits_per_symbol()])
            }
        };
        bits.swap_dims(1, 2)
    }

    /// How unlikely the decoder's softmax finds each token: −log p, the same for all bits of a token.
    ///
    /// Deviation: the paper trains its softmax factorisation by ℓ₂ on the expected bits. On a vocabulary of thousands that hardly says which of them
    /// a token is; its cross-entropy does, and is lowest for the same probabilities.
    ///
    /// # Shapes
    /// - `x_0` and result: `[b, n, length]`
    fn token_losses(&self, input: Input<'_, 3>, x_0: Tensor<3>) -> Tensor<3> {
        let shape = x_0.dims();
        // [b, 1, length] → [b, length, 1]
        let tokens = self.codec.decode_tensor(x_0).expect("the data have the captioner's bits").swap_dims(1, 2);
        let scores = log_softmax(self.write(input), 2).gather(2, tokens);
        scores.neg().swap_dims(1, 2).expand(shape)
    }
}

impl Denoiser<3> for Captioner {
    fn forward(&self, input: Input<'_, 3>) -> Tensor<3> {
        on_the_cores(&input.x_t.device(), || self.run(input))
    }

    /// Works out what each layer sees of the pictures.
    fn prepare(&self, condition: Condition) -> Condition {
        match condition {
            Condition::Picture(picture) if picture.layers().is_none() => {
                let tokens = picture.tokens().clone();
                let layers = on_the_cores(&tokens.device(), || self.picture_of_layers(&tokens));
                Condition::Picture(Box::new(picture.with_layers(layers)))
            }
            condition => condition,
        }
    }

    fn losses(&self, input: Input<'_, 3>, x_0: Tensor<3>, eps: Tensor<3>) -> Tensor<3> {
        match (self.config.output, self.config.loss) {
            (Output::SoftmaxFactorised, Loss::SoftmaxCrossEntropy) => {
                on_the_cores(&x_0.device(), || self.token_losses(input, x_0))
            }
            _ => self.objective.losses(self.forward(input), x_0, eps),
        }
    }

    fn without_gradients(&self) -> Option<Box<dyn Denoiser<3>>> {
        // Dropout is for training; an estimate that is trained with has it too.
        let has_dropout = self.config.dropout > 0.0;
        (!has_dropout).then(|| Box::new(Self { layers: self.layers.valid(), ..self.clone() }) as Box<dyn Denoiser<3>>)
    }

    fn objective(&self) -> Objective {
        self.objective
    }

    fn accepts(&self, shape: [usize; 3], condition: &Condition) -> Result<(), Error> {
        if self.config.method != Method::BitDiffusion {
            return Err(Error::argument(
                "captioner",
                self.config.method.label(),
                "one of bit diffusion, to be denoised",
            ));
        }
        let expected = self.state_shape(shape[0]);
        if shape[0] == 0 || shape != expected {
            return Err(Error::shape("state", &shape, format!("at least one example of shape {:?}", &expected[1..])));
        }
        let tokens = [shape[0], self.config.eye.side().pow(2), self.config.width];
        match condition {
            Condition::Picture(picture) if picture.tokens().dims() == tokens => Ok(()),
            Condition::Picture(picture) => Err(Error::shape(
                "pictures",
                &picture.tokens().dims(),
                format!("the tokens that the captioner sees, {tokens:?}"),
            )),
            _ => Err(Error::argument("picture", "left out", "given: a captioner says what a picture shows")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_counted_without_making_them() {
        let eyes = [
            Eye::convolutions(8, &[8, 12]),
            Eye::Convolutions { size: 8, widths: vec![8, 12], stride: 2, teacher: None },
            Eye::Features { name: "a network".to_owned(), side: 3, channels: 10 },
        ];
        for eye in eyes {
            for method in Method::ALL {
                for output in [Output::Linear, Output::SoftmaxFactorised] {
                    let config = CaptionerConfig {
                        method,
                        length: 6,
                        width: 16,
                        n_layers: 2,
                        n_heads: 2,
                        output,
                        ..CaptionerConfig::paper(Vocabulary::Bytes, eye.clone())
                    };
                    let network = config.init(0, &Device::flex()).unwrap();
                    let counted: usize =
                        network.parameters().iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
                    assert_eq!(config.n_parameters(), counted as u64, "{config:?}");
                }
            }
        }
    }
}
