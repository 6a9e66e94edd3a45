//! What can be trained: networks of pictures and of captions, by one trainer.
//!
//! A [`NetworkConfig`] decides a network; the [`Network`] says how it learns. `pictures` and `captions` are the two there are.

use std::fmt::Debug;

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{RunError, TrainConfig};
use crate::{Error, rng::Rng, sampler::Settings};

/// What a network makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Kind {
    /// Pictures.
    #[default]
    Pictures,
    /// Captions of pictures.
    Captions,
}

impl Kind {
    /// The kind's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Pictures => "pictures",
            Self::Captions => "captions",
        }
    }
}

/// Everything that decides a network.
pub trait NetworkConfig: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync {
    /// The network.
    type Network: Network<Config = Self>;

    /// What it makes.
    const KIND: Kind;

    /// Checks every number.
    fn validate(&self) -> Result<(), Error>;

    /// The number of weights, without making them.
    fn n_parameters(&self) -> u64;

    /// The share of features dropped in training.
    fn dropout(&self) -> f64;

    /// The network with fresh weights from a seed.
    fn init(&self, seed: u64, device: &Device) -> Result<Self::Network, Error>;
}

/// A network that can be trained.
pub trait Network: Clone + Send + Sync {
    /// What decides it.
    type Config: NetworkConfig<Network = Self>;
    /// All that has weights.
    type Layers: Module;
    /// The examples of one step.
    type Batch;
    /// Some of them, on a device.
    type Piece: Send;
    /// What examples come from.
    type Data: ?Sized;
    /// Samples under way, to see how far the training has come.
    type Sheet;

    /// All that has weights.
    fn layers(&self) -> &Self::Layers;

    /// The same network with other layers.
    #[must_use]
    fn with_layers(self, layers: Self::Layers) -> Self;

    /// Reads the examples of one step, which `rng` chooses.
    fn read(config: &TrainConfig<Self::Config>, data: &mut Self::Data, rng: &mut Rng) -> Result<Self::Batch, RunError>;

    /// A batch in micro-batches, each with its number of examples.
    fn pieces(
        &self,
        config: &TrainConfig<Self::Config>,
        batch: &Self::Batch,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Vec<(usize, Self::Piece)>, Error>;

    /// The loss of a micro-batch.
    fn loss(&self, config: &TrainConfig<Self::Config>, piece: Self::Piece, rng: &mut Rng) -> Result<Tensor<1>, Error>;

    /// Begins `n` samples, always from the same noise.
    fn begin_sheet(
        self,
        data: &mut Self::Data,
        settings: Settings,
        n: usize,
        device: &Device,
    ) -> Result<Self::Sheet, RunError>;

    /// Makes a step of a sheet, or a part of one: no longer than a person would wait for.
    fn continue_sheet(sheet: &mut Self::Sheet) -> impl Future<Output = Result<SheetStep, RunError>>;
}

/// How far a sheet has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SheetStep {
    /// This many steps, of so many in all.
    Going {
        /// Steps made.
        step: usize,
        /// Steps in all.
        n_steps: usize,
    },
    /// To its end: the symbols of all samples, one after the other.
    Done(Vec<u32>),
}
