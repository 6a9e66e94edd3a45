//! How a network of pictures learns: what a batch is, and what a sheet of samples.

use burn::tensor::{Device, Tensor};

use super::{Draw, Kind, Network, NetworkConfig, RunError, SheetStep, TrainConfig, loss};
use crate::{
    Error,
    data::Pictures,
    model::{Condition, Layers, UNet, UNetConfig},
    rng::Rng,
    sampler::{Chain, Piece, Settings, SingleChain, State, n_at_once},
};

/// Pictures to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Colour values of all pictures, one after the other, each `[channels, size, size]`.
    pub pixels: Vec<u32>,
    /// The class of each picture; empty if they have none.
    pub classes: Vec<usize>,
}

/// A sheet of samples under way.
pub struct Samples {
    network: UNet,
    chain: SingleChain<4>,
}

impl NetworkConfig for UNetConfig {
    type Network = UNet;

    const KIND: Kind = Kind::Pictures;

    fn validate(&self) -> Result<(), Error> {
        self.validate()
    }

    fn n_parameters(&self) -> u64 {
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
    type Sheet = Samples;

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
        let at_once = n_at_once(self.config().n_parameters(), self.config().size, device);
        let chain = Chain::new(settings, condition, state)?;
        Ok(Samples { network: self, chain: SingleChain::new(chain, at_once) })
    }

    async fn continue_sheet(Samples { network, chain }: &mut Samples) -> Result<SheetStep, RunError> {
        let piece = chain.advance(network)?;
        let chain = chain.chain();
        if !matches!(piece, Piece::Step(_)) || !chain.is_finished() {
            return Ok(SheetStep::Going { step: chain.state().step, n_steps: chain.settings().n_steps });
        }
        let symbols = network.config().codec()?.decode_tensor(chain.state().memory.x_pred.clone())?;
        let data = symbols.into_data_async().await;
        let data = data.map_err(Error::readback)?;
        Ok(SheetStep::Done(data.iter::<u32>().collect()))
    }
}
