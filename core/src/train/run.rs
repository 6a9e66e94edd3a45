//! A training run as a stream of events: steps, checkpoints that are due, sheets of samples.
//!
//! Each call of [`Run::next`] does one piece of work, at most one training step or one step of a chain, and says what came of it, so
//! that a window or a page can draw in between and a program can stop at any time. Deliberately absent: files and clocks.

use burn::tensor::Device;

use super::{Batch, Progress, TrainError, Trainer};
use crate::{
    Error,
    checkpoint::{self, CheckpointError},
    data::{DataError, Pictures},
    model::{Condition, UNet},
    sampler::{Chain, Settings, State},
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
    /// A sheet of samples: colour values, picture after picture, each `[channels, size, size]`.
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
    /// The settings of the sheet cannot be used.
    #[error(transparent)]
    Sheet(#[from] Error),
}

/// A training run under way.
pub struct Run {
    trainer: Trainer,
    plan: Plan,
    device: Device,
    is_save_due: bool,
    is_sheet_due: bool,
    /// A sheet under way.
    sheet: Option<(UNet, Chain<4>)>,
}

impl Run {
    /// Goes on with a trainer on the device it lives on.
    pub fn new(trainer: Trainer, plan: Plan, device: &Device) -> Result<Self, Error> {
        plan.sheet.validate()?;
        let device = device.clone().inner();
        Ok(Self { trainer, plan, device, is_save_due: false, is_sheet_due: false, sheet: None })
    }

    /// The trainer, for its settings, its averaged network, and to save it at any time.
    #[must_use]
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Does the next piece of work; `None` when the run is done.
    pub async fn next(&mut self, pictures: &mut dyn Pictures) -> Result<Option<Event>, RunError> {
        if self.is_save_due {
            self.is_save_due = false;
            return Ok(Some(Event::Checkpoint(checkpoint::save_trainer(&self.trainer).await?)));
        }
        if self.is_sheet_due {
            self.is_sheet_due = false;
            self.sheet = Some(self.begin_sheet()?);
        }
        if let Some((network, chain)) = &mut self.sheet {
            chain.step(network)?;
            let (step, n_steps) = (chain.state().step, chain.settings().n_steps);
            if !chain.is_finished() {
                return Ok(Some(Event::Sampling { step, n_steps }));
            }
            let bits = chain.state().memory.x_pred.clone();
            let symbols = network.config().codec()?.decode_tensor(bits)?;
            self.sheet = None;
            let data = symbols.into_data_async().await;
            let data = data.map_err(|error| CheckpointError::Readback(format!("{error:?}")))?;
            return Ok(Some(Event::Sheet(data.iter::<u32>().collect())));
        }
        if self.trainer.n_steps() >= self.plan.n_steps {
            return Ok(None);
        }
        let batch = next_batch(&self.trainer, pictures)?;
        let progress = self.trainer.step(&batch).await?;
        let step = progress.n_steps;
        let is_last = step == self.plan.n_steps;
        let is_due = |every: usize| every > 0 && (is_last || step.is_multiple_of(every));
        self.is_save_due = is_last || is_due(self.plan.save_every);
        self.is_sheet_due = is_due(self.plan.sheet_every);
        Ok(Some(Event::Step(progress)))
    }

    fn begin_sheet(&self) -> Result<(UNet, Chain<4>), Error> {
        let network = self.trainer.averaged();
        let (n, n_classes) = (self.plan.sheet_size, network.config().n_classes);
        let condition = match n_classes {
            0 => Condition::None,
            _ => Condition::Classes((0..n).map(|i| Some(i % n_classes)).collect()),
        };
        let state = State::from_seed(network.state_shape(n), 0, &self.device);
        Ok((network, Chain::new(self.plan.sheet, condition, state)?))
    }
}

/// The pictures of the next step. Which ones depends on the seed and the step only, so that a resumed run sees the same.
fn next_batch(trainer: &Trainer, pictures: &mut dyn Pictures) -> Result<Batch, DataError> {
    let config = trainer.config();
    let mut rng = trainer.rng().fork(1);
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
