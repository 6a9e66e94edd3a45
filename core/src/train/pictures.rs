//! How a network of pictures learns: what a batch is, and what a sheet of samples.

use burn::tensor::{Device, Tensor};

use super::{Draw, Kind, Network, NetworkConfig, RunError, SheetStep, TrainConfig, loss};
use crate::{
    Error,
    checkpoint::CheckpointError,
    data::Pictures,
    model::{Condition, Layers, UNet, UNetConfig},
    rng::Rng,
    sampler::{Chain, Settings, State},
};

/// Pictures to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Colour values of all pictures, one after the other, each `[channels, size, size]`.
    pub pixels: Vec<u32>,
    /// The class of each picture; empty if they have none.
    pub classes: Vec<usize>,
}

impl NetworkConfig for UNetConfig {
    type Network = UNet;

    const KIND: Kind = Kind::Pictures;

    fn validate(&self) -> Result<(), Error> {
        self.validate()
    }

    fn n_parameters(&self) -> usize {
        self.n_parameters()
    }

    fn dropout(&self) -> f64 {
        self.dropout
    }

    fn init(&self, seed: u64, device: &Device) -> Result<UNet, Error> {
        self.init(seed, device)
    }
}

impl Network for UNet {
    type Config = UNetConfig;
    type Layers = Layers;
    type Batch = Batch;
    type Piece = (Tensor<4>, Condition);
    type Data = dyn Pictures;
    type Sheet = (Self, Chain<4>);

    fn layers(&self) -> &Layers {
        &self.layers
    }

    fn with_layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    fn read(config: &TrainConfig, pictures: &mut (dyn Pictures + 'static), rng: &mut Rng) -> Result<Batch, RunError> {
        let mut batch = Batch { pixels: Vec::new(), classes: Vec::new() };
        for _ in 0..config.batch_size {
            let picture = pictures.read(rng.below(pictures.n_examples()))?;
            batch.pixels.extend(config.network.symbols_of(&picture));
            if config.network.n_classes > 0 {
                batch.classes.push(picture.class);
            }
        }
        Ok(batch)
    }

    /// The batch as analog bits, mirrored and with hidden classes as the settings say.
    fn pieces(
        &self,
        config: &TrainConfig,
        batch: &Batch,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Vec<(usize, Self::Piece)>, Error> {
        let UNetConfig { size, channels, n_classes, .. } = config.network;
        let one = channels * size * size;
        let n = config.batch_size;
        if batch.pixels.len() != n * one {
            let expected = format!("{n} pictures of {channels} × {size} × {size} values");
            return Err(Error::shape("batch", &[batch.pixels.len()], expected));
        }
        if n_classes > 0 && batch.classes.len() != n {
            return Err(Error::shape("classes", &[batch.classes.len()], format!("one class for each of {n} pictures")));
        }
        let mut pixels = batch.pixels.clone();
        if config.flips {
            for picture in pixels.chunks_exact_mut(one) {
                if rng.uniform() < 0.5 {
                    picture.chunks_exact_mut(size).for_each(<[u32]>::reverse);
                }
            }
        }
        let mut classes = Vec::new();
        if n_classes > 0 {
            let hidden = config.class_dropout;
            classes = batch.classes.iter().map(|&class| (rng.uniform() >= hidden).then_some(class)).collect();
        }
        let codec = config.network.codec()?;
        let per_piece = config.micro_batch_size;
        let pieces = pixels.chunks(per_piece * one).enumerate().map(|(i, pixels)| {
            let count = pixels.len() / one;
            let x_0 = codec.encode_tensor(pixels, [count, channels, size, size], device)?;
            let condition = match classes.get(i * per_piece..i * per_piece + count) {
                Some(classes) if n_classes > 0 => Condition::Classes(classes.to_vec()),
                _ => Condition::None,
            };
            Ok((count, (x_0, condition)))
        });
        pieces.collect()
    }

    fn loss(&self, config: &TrainConfig, (x_0, condition): Self::Piece, rng: &mut Rng) -> Result<Tensor<1>, Error> {
        let draw = Draw::new(&x_0, &config.schedule, config.self_cond_share, rng)?;
        loss(self, x_0, &condition, &draw, None)
    }

    fn begin_sheet(
        self,
        _: &mut (dyn Pictures + 'static),
        settings: Settings,
        n: usize,
        device: &Device,
    ) -> Result<Self::Sheet, RunError> {
        let n_classes = self.config().n_classes;
        let condition = match n_classes {
            0 => Condition::None,
            _ => Condition::Classes((0..n).map(|i| Some(i % n_classes)).collect()),
        };
        let state = State::from_seed(self.state_shape(n), 0, device);
        Ok((self, Chain::new(settings, condition, state)?))
    }

    async fn continue_sheet((network, chain): &mut Self::Sheet) -> Result<SheetStep, RunError> {
        chain.step(network)?;
        if !chain.is_finished() {
            return Ok(SheetStep::Going { step: chain.state().step, n_steps: chain.settings().n_steps });
        }
        let symbols = network.config().codec()?.decode_tensor(chain.state().memory.x_pred.clone())?;
        let data = symbols.into_data_async().await;
        let data = data.map_err(|error| CheckpointError::Readback(format!("{error:?}")))?;
        Ok(SheetStep::Done(data.iter::<u32>().collect()))
    }
}
