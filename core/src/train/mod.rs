//! Training: the loss of Algorithm 1, and the loop around it as a library.
//!
//! A [`Trainer`] makes one step at a time and says what happened; programs decide where the pictures come from, when to
//! stop, and what to keep. Deliberately absent: files, progress bars, threads.

mod loss;
mod trainer;

pub use loss::{DEFAULT_SELF_COND_SHARE, Draw, loss};
pub(crate) use trainer::Parts;
pub use trainer::{Batch, Progress, TrainConfig, TrainError, Trainer};
