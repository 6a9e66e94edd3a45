//! A training run as a stream of events: steps, checkpoints that are due, sheets of samples.
//!
//! Each call of [`Run::next`] does one piece of work, at most one training step or one step of a chain, and says what came of it, so
//! that a window or a page can draw in between and a program can stop at any time. Deliberately absent: files and clocks.

use burn::tensor::Device;

use super::{Network, NetworkConfig, Progress, SheetStep, TrainError, Trainer};
use crate::{
    Error,
    checkpoint::{self, CheckpointError},
    data::DataError,
    model::UNetConfig,
    sampler::Settings,
    text::TextError,
};

/// What a run does besides training, and when it ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The run ends when it has made this many steps.
    pub n_steps: usize,
    /// A checkpoint every so many steps, and at the end; 0 for none but that.
    pub save_every: usize,
    /// A sheet of samples every so many steps, and at the end; 0 for none at all.
    pub sheet_every: usize,
    /// How many samples a sheet has; they always start from the same noise.
    pub sheet_size: usize,
    /// How a sheet is sampled.
    pub sheet: Settings,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A step of training.
    Step(Progress),
    /// A checkpoint is due: the bytes from which the run goes on exactly.
    Checkpoint(Vec<u8>),
    /// A step on the way to a sheet of samples.
    Sampling {
        /// Steps of the chain made.
        step: usize,
        /// Steps of the chain in all.
        n_steps: usize,
    },
    /// A sheet of samples: of pictures their colour values, one after the other, each `[channels, size, size]`; of captions their token
    /// ids, each `[length]`.
    Sheet(Vec<u32>),
}

/// Why a run cannot go on. What it has learned so far is kept, and can be saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The step failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The checkpoint cannot be made.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The sheet cannot be made.
    #[error(transparent)]
    Sheet(#[from] Error),
    /// A caption cannot be read or written.
    #[error(transparent)]
    Text(#[from] TextError),
}

/// A training run under way.
pub struct Run<C: NetworkConfig = UNetConfig> {
    trainer: Trainer<C>,
    plan: Plan,
    device: Device,
    is_save_due: bool,
    is_sheet_due: bool,
    /// A sheet under way.
    sheet: Option<<C::Network as Network>::Sheet>,
}

impl<C: NetworkConfig> Run<C> {
    /// Goes on with a trainer on the device it lives on.
    pub fn new(trainer: Trainer<C>, plan: Plan, device: &Device) -> Result<Self, Error> {
        plan.sheet.validate()?;
        let device = device.clone().inner();
        Ok(Self { trainer, plan, device, is_save_due: false, is_sheet_due: false, sheet: None })
    }

    /// The trainer, for its settings, its averaged network, and to save it at any time.
    #[must_use]
    pub fn trainer(&self) -> &Trainer<C> {
        &self.trainer
    }

    /// Does the next piece of work; `None` when the run is done.
    pub async fn next(&mut self, data: &mut <C::Network as Network>::Data) -> Result<Option<Event>, RunError> {
        if self.is_save_due {
            self.is_save_due = false;
            return Ok(Some(Event::Checkpoint(checkpoint::save_trainer(&self.trainer).await?)));
        }
        if self.is_sheet_due {
            self.is_sheet_due = false;
            let Plan { sheet, sheet_size, .. } = self.plan;
            self.sheet = Some(self.trainer.averaged().begin_sheet(data, sheet, sheet_size, &self.device)?);
        }
        if let Some(sheet) = &mut self.sheet {
            return Ok(Some(match C::Network::continue_sheet(sheet).await? {
                SheetStep::Going { step, n_steps } => Event::Sampling { step, n_steps },
                SheetStep::Done(symbols) => {
                    self.sheet = None;
                    Event::Sheet(symbols)
                }
            }));
        }
        if self.trainer.n_steps() >= self.plan.n_steps {
            return Ok(None);
        }
        // Which examples depends on the seed and the step only, so that a resumed run sees the same.
        let batch = C::Network::read(self.trainer.config(), data, &mut self.trainer.rng().fork(1))?;
        let progress = self.trainer.step(&batch).await?;
        let step = progress.n_steps;
        let is_last = step == self.plan.n_steps;
        let is_due = |every: usize| every > 0 && (is_last || step.is_multiple_of(every));
        self.is_save_due = is_last || is_due(self.plan.save_every);
        self.is_sheet_due = is_due(self.plan.sheet_every);
        Ok(Some(Event::Step(progress)))
    }
}
