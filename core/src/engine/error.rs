//! Why the engine cannot do something.

use crate::{
    Error, checkpoint::CheckpointError, data::DataError, demo::Demo, device::DeviceError, metrics::MetricError,
    model::features::FeatureError, train::RunError,
};

/// Why a job failed; every message names the cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A number or a shape that cannot be used, or a device that failed while it worked.
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
    #[error("this model is not open (any more); open its file again, or choose another model")]
    NoModel,
    /// A demo model whose file has yet to be brought.
    #[error("the demo model {0} is not here yet; it has to be fetched first")]
    Absent(Demo),
    /// A demo model whose file cannot be had.
    #[error(
        "the demo model {demo} cannot be fetched: {reason}; check the connection and ask for it again, or choose another model"
    )]
    Fetch {
        /// Which.
        demo: Demo,
        /// Why not.
        reason: String,
    },
    /// A captioner whose tokens are in another file.
    #[error(
        "this captioner writes word pieces of a sentencepiece file, which the studio does not have; use it on the command line: \
         bit-diffusion caption --tokenizer FILE.model"
    )]
    NoTokenizer,
    /// A captioner that looks through an encoder which is not open.
    #[error(
        "this captioner looks through {0}, whose weights are not part of the program; open their safetensors file first \
         (bench/features_to_safetensors.py makes it), and then the captioner again"
    )]
    NeedsEncoder(String),
    /// A captioner that looks through something unknown.
    #[error(
        "this captioner looks through {0}, which is not known here; use one of EfficientNet-lite0, or one that sees pictures"
    )]
    UnknownEncoder(String),
    /// An encoder that cannot be used.
    #[error(transparent)]
    Encoder(#[from] FeatureError),
    /// Tokens that are no text.
    #[error(transparent)]
    Text(crate::text::TextError),
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
}
