//! Training: the loss of Algorithm 1, and the loop around it as a library.
//!
//! A [`Trainer`] makes one step at a time and says what happened. A [`Run`] around it picks the pictures and says what is due, as a
//! stream of [`Event`]s that a command line, a window and a page all read. Deliberately absent: files, progress bars, threads.

mod captions;
mod loss;
mod network;
mod pictures;
mod run;
mod trainer;

pub use captions::{CaptionBatch, CaptionData, CaptionPiece, CaptionSheet, ReadFeatures};
pub use loss::{DEFAULT_SELF_COND_SHARE, Draw, loss};
pub use network::{Kind, Network, NetworkConfig, SheetStep};
pub use pictures::{Batch, Samples};
pub use run::{Event, Plan, Run, RunError};
pub(crate) use trainer::Parts;
pub use trainer::{Progress, TrainConfig, TrainError, Trainer};
