//! How a captioner learns: what a batch is, the loss of both methods, and what a sheet of captions.

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

use super::{Draw, Kind, Network, NetworkConfig, RunError, SheetStep, TrainConfig, loss};
use crate::{
    Error,
    data::{CaptionedPictures, DataError},
    model::{Captioner, CaptionerConfig, CaptionerLayers, Condition, Denoiser, Eye, Method, Padding, Writing},
    rng::Rng,
    sampler::{Chain, Settings, State},
    text::Tokenizer,
};

/// Captioned pictures, and how their captions become tokens.
pub struct CaptionData {
    /// The pictures and their captions.
    pub pictures: Box<dyn CaptionedPictures>,
    /// The tokenizer of the captioner's vocabulary.
    pub tokenizer: Tokenizer,
    /// For an eye that takes features or has a teacher, those of a picture, `[tokens, channels]`; see
    /// [`crate::model::features::TokenCache::read`].
    pub features: Option<ReadFeatures>,
}

/// Reads the features of the picture with a number.
pub type ReadFeatures = Box<dyn FnMut(usize) -> Result<Vec<f32>, DataError>>;

impl CaptionData {
    /// What the eye is given of a picture, and the picture's captions.
    ///
    /// Pixels are shifted and scaled to ±1.
    pub fn read(&mut self, config: &CaptionerConfig, index: usize) -> Result<(Vec<f32>, Vec<String>), DataError> {
        let example = self.pictures.read(index)?;
        let input = match &config.eye {
            Eye::Features { .. } => self.features_of(config, index)?,
            Eye::Convolutions { .. } => example.pixels.iter().map(|&value| f32::from(value) / 127.5 - 1.0).collect(),
        };
        Ok((input, example.captions))
    }

    /// The features of a picture, `[channels, side, side]`; none where there are none.
    fn features_of(&mut self, config: &CaptionerConfig, index: usize) -> Result<Vec<f32>, DataError> {
        let (Some(read), Some([channels, side, _])) = (&mut self.features, config.eye.features_shape()) else {
            return Ok(Vec::new());
        };
        let (tokens, n) = (read(index)?, side * side);
        // [tokens, channels] → [channels, side, side]
        Ok((0..channels * n).map(|i| tokens[i % n * channels + i / n]).collect())
    }
}

/// Pictures and their captions to learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptionBatch {
    /// What the eye is given, picture after picture.
    pub inputs: Vec<f32>,
    /// What its teacher sees, if it has one, picture after picture.
    pub taught: Vec<f32>,
    /// The token ids of all captions, one after the other, each of the captioner's length.
    pub tokens: Vec<u32>,
}

/// Some of a batch, on the device.
pub struct CaptionPiece {
    /// `[b, …]`, as the eye takes it.
    inputs: Tensor<4>,
    /// `[b, channels, side, side]`, of an eye with a teacher.
    taught: Option<Tensor<4>>,
    tokens: Vec<u32>,
    /// 0 for pictures that are hidden; `[b, 1, 1]`.
    shown: Tensor<3>,
}

/// Turns left and right of a picture `[channels, height, width]` around.
fn mirror(picture: &mut [f32], [_, _, width]: [usize; 3]) {
    picture.chunks_exact_mut(width).for_each(<[f32]>::reverse);
}

/// Captions under way.
pub enum CaptionSheet {
    /// By bit diffusion.
    Bits(Box<(Captioner, Chain<3>)>),
    /// One token after the other.
    Tokens(Box<Writing>, usize, u32),
}

impl NetworkConfig for CaptionerConfig {
    type Network = Captioner;

    const KIND: Kind = Kind::Captions;

    fn validate(&self) -> Result<(), Error> {
        self.validate()
    }

    fn n_parameters(&self) -> u64 {
        self.n_parameters()
    }

    fn dropout(&self) -> f64 {
        self.dropout
    }

    fn init(&self, seed: u64, device: &Device) -> Result<Captioner, Error> {
        self.init(seed, device)
    }
}

impl Network for Captioner {
    type Config = CaptionerConfig;
    type Layers = CaptionerLayers;
    type Batch = CaptionBatch;
    type Piece = CaptionPiece;
    type Data = CaptionData;
    type Sheet = CaptionSheet;

    fn layers(&self) -> &CaptionerLayers {
        &self.layers
    }

    fn with_layers(mut self, layers: CaptionerLayers) -> Self {
        self.layers = layers;
        self
    }

    fn read(
        config: &TrainConfig<CaptionerConfig>,
        data: &mut CaptionData,
        rng: &mut Rng,
    ) -> Result<CaptionBatch, RunError> {
        let mut batch = CaptionBatch { inputs: Vec::new(), taught: Vec::new(), tokens: Vec::new() };
        let has_teacher = matches!(config.network.eye, Eye::Convolutions { teacher: Some(_), .. });
        for _ in 0..config.batch_size {
            let index = rng.below(data.pictures.n_examples());
            let (inputs, captions) = data.read(&config.network, index)?;
            batch.inputs.extend(inputs);
            if has_teacher {
                batch.taught.extend(data.features_of(&config.network, index)?);
            }
            let caption = &captions[rng.below(captions.len())];
            batch.tokens.extend(data.tokenizer.encode_cut(caption, config.network.length)?);
        }
        Ok(batch)
    }

    /// The batch on the device, mirrored and with hidden pictures as the settings say.
    fn pieces(
        &self,
        config: &TrainConfig<CaptionerConfig>,
        batch: &CaptionBatch,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Vec<(usize, CaptionPiece)>, Error> {
        let network = &config.network;
        let (input, length, n) = (network.eye.input_shape(), network.length, config.batch_size);
        let teacher = network.eye.features_shape().filter(|_| matches!(network.eye, Eye::Convolutions { .. }));
        let [one, one_taught] = [Some(input), teacher].map(|shape| shape.map_or(0, |shape| shape.iter().product()));
        let expected = [n * one, n * one_taught, n * length];
        let found = [batch.inputs.len(), batch.taught.len(), batch.tokens.len()];
        if found != expected {
            let expected = format!("{n} times {one} numbers of pictures, {one_taught} of a teacher's, {length} tokens");
            return Err(Error::shape("batch", &found, expected));
        }
        let (mut inputs, mut taught) = (batch.inputs.clone(), batch.taught.clone());
        if config.flips && matches!(network.eye, Eye::Convolutions { .. }) {
            for i in 0..n {
                if rng.uniform() < 0.5 {
                    mirror(&mut inputs[i * one..][..one], input);
                    if let Some(shape) = teacher {
                        mirror(&mut taught[i * one_taught..][..one_taught], shape);
                    }
                }
            }
        }
        let hidden = config.class_dropout;
        let shown: Vec<f32> = (0..n).map(|_| if rng.uniform() < hidden { 0.0 } else { 1.0 }).collect();
        let numbers = |values: &[f32], from: usize, count: usize, [channels, height, width]: [usize; 3]| {
            let one = channels * height * width;
            let values = values[from * one..][..count * one].to_vec();
            Tensor::from_data(TensorData::new(values, [count, channels, height, width]), device)
        };
        let pieces = (0..n).step_by(config.micro_batch_size).map(|from| {
            let count = config.micro_batch_size.min(n - from);
            let piece = CaptionPiece {
                inputs: numbers(&inputs, from, count, input),
                taught: teacher.map(|shape| numbers(&taught, from, count, shape)),
                tokens: batch.tokens[from * length..][..count * length].to_vec(),
                shown: Tensor::from_data(TensorData::new(shown[from..][..count].to_vec(), [count, 1, 1]), device),
            };
            (count, piece)
        });
        Ok(pieces.collect())
    }

    fn loss(
        &self,
        config: &TrainConfig<CaptionerConfig>,
        piece: CaptionPiece,
        rng: &mut Rng,
    ) -> Result<Tensor<1>, Error> {
        let CaptionPiece { inputs, taught, tokens, shown } = piece;
        let (device, length) = (inputs.device(), self.config().length);
        let (picture, imitation) = match taught {
            None => (self.look(inputs)?, None),
            Some(taught) => {
                let (picture, imitation) = self.look_and_learn(inputs, taught);
                (picture, Some(imitation))
            }
        };
        let picture = picture * shown;
        let n = tokens.len() / length;
        let CaptionerConfig { method, padding, vocabulary, n_draws, .. } = self.config();
        let (end, unknown) = (vocabulary.eos(), vocabulary.unknown());
        let learns_padding = *method == Method::BitDiffusion && *padding == Padding::Learned;
        // 1 for what is learned. Words that the vocabulary lacks are not: it would only learn to say that it lacks them.
        let counts = tokens.chunks_exact(length).flat_map(|row| {
            let n = row.iter().position(|token| *token == end).map_or(length, |at| at + 1);
            let is_learned = move |i: usize, token: u32| (i < n || learns_padding) && Some(token) != unknown;
            row.iter().enumerate().map(move |(i, token)| if is_learned(i, *token) { 1.0_f32 } else { 0.0 })
        });
        let counts = Tensor::<3>::from_data(TensorData::new(counts.collect::<Vec<_>>(), [n, 1, length]), &device);
        let captions = match method {
            Method::BitDiffusion => {
                let again = |tensor: Tensor<3>| tensor.repeat_dim(0, *n_draws);
                let x_0 = again(self.codec().encode_tensor(&tokens, [n, 1, length], &device)?);
                let condition = self.prepare(Condition::picture(picture)).repeat(*n_draws);
                let draw = Draw::new(&x_0, &config.schedule, config.self_cond_share, rng)?;
                loss(self, x_0, &condition, &draw, Some(again(counts)))?
            }
            Method::Autoregressive => {
                let scores = log_softmax(self.next_tokens(&tokens, &picture), 2);
                let targets: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
                let targets = Tensor::<3, Int>::from_data(TensorData::new(targets, [n, length, 1]), &device);
                let scores = scores.gather(2, targets).swap_dims(1, 2);
                (scores * counts.clone()).sum().neg() / counts.sum()
            }
        };
        Ok(match imitation {
            None => captions,
            Some(imitation) => captions + imitation,
        })
    }

    /// Captions of the first pictures of the data.
    fn begin_sheet(
        self,
        data: &mut CaptionData,
        settings: Settings,
        n: usize,
        device: &Device,
    ) -> Result<CaptionSheet, RunError> {
        let mut inputs = Vec::new();
        let n = n.min(data.pictures.n_examples());
        for index in 0..n {
            inputs.extend(data.read(self.config(), index)?.0);
        }
        let [channels, height, width] = self.config().eye.input_shape();
        let picture = self.look(Tensor::from_data(TensorData::new(inputs, [n, channels, height, width]), device))?;
        Ok(match self.config().method {
            Method::BitDiffusion => {
                let state = State::from_seed(self.state_shape(n), 0, device);
                let chain = Chain::new(settings, Condition::picture(picture), state)?;
                CaptionSheet::Bits(Box::new((self, chain)))
            }
            Method::Autoregressive => {
                let CaptionerConfig { length, vocabulary, .. } = self.config();
                let (length, end) = (*length, vocabulary.eos());
                CaptionSheet::Tokens(Box::new(Writing::new(&self, &picture, 1)?), length, end)
            }
        })
    }

    async fn continue_sheet(sheet: &mut CaptionSheet) -> Result<SheetStep, RunError> {
        match sheet {
            CaptionSheet::Bits(under_way) => {
                let (network, chain) = under_way.as_mut();
                chain.step(network)?;
                if !chain.is_finished() {
                    return Ok(SheetStep::Going { step: chain.state().step, n_steps: chain.settings().n_steps });
                }
                let symbols = network.codec().decode_tensor(chain.state().memory.x_pred.clone())?;
                let data = symbols.into_data_async().await;
                let data = data.map_err(Error::readback)?;
                Ok(SheetStep::Done(data.iter::<u32>().collect()))
            }
            CaptionSheet::Tokens(writing, length, end) => {
                writing.step().await?;
                if !writing.is_finished() {
                    return Ok(SheetStep::Going { step: writing.n_tokens(), n_steps: *length });
                }
                let rows = writing.captions().into_iter();
                Ok(SheetStep::Done(
                    rows.flat_map(|written| {
                        let mut row = written.tokens;
                        row.resize(*length, *end);
                        row
                    })
                    .collect(),
                ))
            }
        }
    }
}
