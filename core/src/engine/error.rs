//! Why the engine cannot do something.

use super::ModelId;
use crate::{
    Error, checkpoint::CheckpointError, data::DataError, device::DeviceError, metrics::MetricError, train::RunError,
};

/// Why a job failed; every message names the cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A number or a shape that cannot be used.
    #[error(transparent)]
    Argument(#[from] Error),
    /// A file that is no model.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Pictures that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Numbers that cannot be measured.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// Training cannot go on.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The device that was asked for cannot be used.
    #[error(transparent)]
    Open(#[from] DeviceError),
    /// A model that is not there.
    #[error("the model {0:?} is not open (any more); open its file again, or choose another model")]
    NoModel(ModelId),
    /// Nothing is being trained.
    #[error("there is no training run; start one, or choose another model")]
    NoTraining,
    /// Data of another kind than the network.
    #[error("{found} do not fit a network for {expected}; choose the network for these pictures, or other pictures")]
    Pictures {
        /// What the pictures are.
        found: String,
        /// What the network takes.
        expected: String,
    },
    /// The device failed while it worked.
    #[error("the device did not return its numbers: {0}; try again, or start with the device `cpu`")]
    Device(String),
}

impl EngineError {
    /// The error of a readback.
    pub(super) fn readback(error: impl std::fmt::Debug) -> Self {
        Self::Device(format!("{error:?}"))
    }
}
