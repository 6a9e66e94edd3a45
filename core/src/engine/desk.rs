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

/// Weights times pixels that the processor gets through in some 40 ms, on one thread of a browser.
const PRODUCTS_AT_ONCE: usize = 500_000_000;

/// Whether a job needs another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Going,
    Done,
}

/// How many examples a network may be given at a time. In a browser, on the page's own thread, the processor has to hand it back before
/// a person notices; everywhere else all of them.
///
/// It follows from the network and the size of its pictures alone, so that a chain is the same every time to the last bit.
pub(super) fn n_at_once(n_parameters: usize, size: usize, device: &Device) -> usize {
    if cfg!(not(target_arch = "wasm32")) || *device != Device::flex() {
        return usize::MAX;
    }
    (PRODUCTS_AT_ONCE / (n_parameters * size * size).max(1)).max(1)
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
