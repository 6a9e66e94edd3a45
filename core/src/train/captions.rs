//! How a captioner learns: what a batch is, the loss of both methods, and what a sheet of captions.

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

use super::{Draw, Kind, Network, NetworkConfig, RunError, SheetStep, TrainConfig, loss};
use crate::{
    Error,
    checkpoint::CheckpointError,
    data::{CaptionedPictures, DataError},
    model::{Captioner, CaptionerConfig, CaptionerLayers, Condition, Eye, Method, Padding, Writing},
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
    /// For an eye that takes features, those of a picture, `[tokens, channels]`; see [`crate::model::features::TokenCache::read`].
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
        let input = match &mut self.features {
            Some(read) => {
                let channels = config.eye.input_shape()[0];
                let tokens = read(index)?;
                let n = tokens.len() / channels;
                // [tokens, channels] → [channels, side, side]
                (0..channels * n).map(|i| tokens[i % n * channels + i / n]).collect()
            }
            None => example.pixels.iter().map(|&value| f32::from(value) / 127.5 - 1.0).collect(),
        };
        Ok((input, example.captions))
    }
}

/// Pictures and their captions to learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptionBatch {
    /// What the eye is given, picture after picture.
    pub inputs: Vec<f32>,
    /// The token ids of all captions, one after the other, each of the captioner's length.
    pub tokens: Vec<u32>,
}

/// Some of a batch, on the device.
pub struct CaptionPiece {
    /// `[b, …]`, as the eye takes it.
    inputs: Tensor<4>,
    tokens: Vec<u32>,
    /// 0 for pictures that are hidden; `[b, 1, 1]`.
    shown: Tensor<3>,
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

    fn n_parameters(&self) -> usize {
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
        let mut batch = CaptionBatch { inputs: Vec::new(), tokens: Vec::new() };
        for _ in 0..config.batch_size {
            let (inputs, captions) = data.read(&config.network, rng.below(data.pictures.n_examples()))?;
            batch.inputs.extend(inputs);
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
        let [channels, height, width] = network.eye.input_shape();
        let (one, length, n) = (channels * height * width, network.length, config.batch_size);
        if batch.inputs.len() != n * one || batch.tokens.len() != n * length {
            let expected = format!("{n} pictures of {one} numbers and {n} captions of {length} tokens");
            return Err(Error::shape("batch", &[batch.inputs.len(), batch.tokens.len()], expected));
        }
        let mut inputs = batch.inputs.clone();
        if config.flips && matches!(network.eye, Eye::Convolutions { .. }) {
            for picture in inputs.chunks_exact_mut(one) {
                if rng.uniform() < 0.5 {
                    picture.chunks_exact_mut(width).for_each(<[f32]>::reverse);
                }
            }
        }
        let hidden = config.class_dropout;
        let shown: Vec<f32> = (0..n).map(|_| if rng.uniform() < hidden { 0.0 } else { 1.0 }).collect();
        let per_piece = config.micro_batch_size;
        let pieces = inputs.chunks(per_piece * one).zip(batch.tokens.chunks(per_piece * length));
        let pieces = pieces.zip(shown.chunks(per_piece)).map(|((inputs, tokens), shown)| {
            let count = shown.len();
            let shape = [count, channels, height, width];
            let piece = CaptionPiece {
                inputs: Tensor::from_data(TensorData::new(inputs.to_vec(), shape), device),
                tokens: tokens.to_vec(),
                shown: Tensor::from_data(TensorData::new(shown.to_vec(), [count, 1, 1]), device),
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
        let CaptionPiece { inputs, tokens, shown } = piece;
        let (device, length) = (inputs.device(), self.config().length);
        let picture = self.look(inputs)? * shown;
        let n = tokens.len() / length;
        // 1 up to the end of each caption.
        let end = self.config().vocabulary.eos();
        let counts = tokens.chunks_exact(length).flat_map(|row| {
            let n = row.iter().position(|token| *token == end).map_or(length, |at| at + 1);
            (0..length).map(move |i| if i < n { 1.0_f32 } else { 0.0 })
        });
        let counts = Tensor::<3>::from_data(TensorData::new(counts.collect::<Vec<_>>(), [n, 1, length]), &device);
        match self.config().method {
            Method::BitDiffusion => {
                let x_0 = self.codec().encode_tensor(&tokens, [n, 1, length], &device)?;
                let draw = Draw::new(&x_0, &config.schedule, config.self_cond_share, rng)?;
                let weight = (self.config().padding == Padding::Ignored).then_some(counts);
                loss(self, x_0, &Condition::picture(picture), &draw, weight)
            }
            Method::Autoregressive => {
                let scores = log_softmax(self.next_tokens(&tokens, &picture), 2);
                let targets: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
                let targets = Tensor::<3, Int>::from_data(TensorData::new(targets, [n, length, 1]), &device);
                let scores = scores.gather(2, targets).swap_dims(1, 2);
                Ok((scores * counts.clone()).sum().neg() / counts.sum())
            }
        }
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
                let data = data.map_err(|error| CheckpointError::Readback(format!("{error:?}")))?;
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
