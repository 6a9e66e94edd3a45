//! What all jobs share: the device, the models, the kept results, the training run, and the events that wait to be read.

use std::{
    collections::VecDeque,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use burn::tensor::Device;

use super::{
    EngineError, Event, ModelId, ModelInfo,
    cache::Cache,
    live::Canvas,
    model::{Model, Models},
    training::Training,
};
use crate::sampler::n_at_once;

/// Whether a job needs another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Going,
    Done,
}

/// What all jobs share.
pub(super) struct Desk {
    pub device: Device,
    /// Where a window draws with the same device.
    pub canvas: Option<Canvas>,
    pub models: Models,
    pub cache: Cache,
    pub training: Option<Training>,
    pub events: VecDeque<Event>,
    pub evaluations: Arc<AtomicU64>,
}

impl Desk {
    /// The denoiser of a name, as it is now.
    pub fn model(&mut self, id: ModelId) -> Result<Rc<Model>, EngineError> {
        match (id, &self.training) {
            (ModelId::Training, Some(training)) => Ok(Rc::new(training.model()?)),
            _ => self.models.find(id, &self.device),
        }
    }

    /// Tells a model in training from itself a few steps later; 0 for all others.
    pub fn version(&self, id: ModelId) -> Result<u64, EngineError> {
        match (id, &self.training) {
            (ModelId::Training, Some(training)) => Ok(training.version()),
            (ModelId::Training, None) => Err(EngineError::NoTraining),
            _ => Ok(0),
        }
    }

    /// How many examples of a model's pictures its network may be given at a time.
    pub fn n_at_once(&self, info: &ModelInfo) -> usize {
        n_at_once(info.n_parameters, info.size, &self.device)
    }

    /// Counts one run of a network.
    pub fn count_evaluation(&self) {
        self.evaluations.fetch_add(1, Ordering::Relaxed);
    }
}
