//! The training loop, one step at a time.

use burn::{
    module::Module as _,
    optim::{Adam, AdamConfig, AdamState, AdaptiveMomentumState, Optimizer as _},
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

use super::{DEFAULT_SELF_COND_SHARE, Draw, loss};
use crate::{
    Error,
    bits::Codec,
    error::check_number,
    model::{Condition, UNet, UNetConfig, parameters},
    rng::Rng,
    schedule::Schedule,
};

/// The label of the stream that initial weights come from; step k draws from stream k + 1.
const WEIGHTS: u64 = 0;

/// Everything that decides a training run, short of the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// The network.
    pub network: UNetConfig,
    /// Time → noise level.
    pub schedule: Schedule,
    /// The learning rate after the warm-up.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises from 0.
    pub n_warmup_steps: usize,
    /// Examples a step.
    pub batch_size: usize,
    /// Examples at a time: a batch is worked through in pieces of this size, which saves memory.
    pub micro_batch_size: usize,
    /// Gradients longer than this, all parameters together, are shortened to it.
    pub max_gradient_norm: f64,
    /// How slowly the averaged weights follow, at most; a young run follows faster.
    pub ema_decay: f64,
    /// The share of examples that train with an estimate of their own.
    pub self_cond_share: f64,
    /// The share of class labels that are hidden, for classifier-free guidance.
    pub class_dropout: f64,
    /// Whether half of the pictures are mirrored, left to right.
    pub flips: bool,
    /// What all randomness descends from.
    pub seed: u64,
}

impl TrainConfig {
    /// The paper's settings for a network: Adam at 1e-4, batches of 128, 10,000 steps of warm-up, an average at 0.9999.
    #[must_use]
    pub fn new(network: UNetConfig) -> Self {
        Self {
            network,
            schedule: Schedule::default(),
            learning_rate: 1e-4,
            n_warmup_steps: 10_000,
            batch_size: 128,
            micro_batch_size: 128,
            max_gradient_norm: 1.0,
            ema_decay: 0.9999,
            self_cond_share: DEFAULT_SELF_COND_SHARE,
            class_dropout: 0.1,
            flips: true,
            seed: 0,
        }
    }

    /// Checks every number.
    pub fn validate(&self) -> Result<(), Error> {
        self.network.validate()?;
        self.schedule.validate()?;
        for (name, value) in [("batch size", self.batch_size), ("micro-batch size", self.micro_batch_size)] {
            if !(1..=1 << 20).contains(&value) {
                return Err(Error::argument(name, value, "from 1 to 1048576"));
            }
        }
        let rate = |v: f64| v > 0.0 && v <= 1.0;
        check_number("learning rate", self.learning_rate, rate, "a number above 0 and at most 1")?;
        check_number("gradient norm", self.max_gradient_norm, |v| v > 0.0, "a number above 0")?;
        check_number("EMA decay", self.ema_decay, |v| (0.0..1.0).contains(&v), "a number from 0 to below 1")?;
        let share = |v: f64| (0.0..=1.0).contains(&v);
        check_number("self-conditioning share", self.self_cond_share, share, "a number from 0 to 1")?;
        check_number("class dropout", self.class_dropout, share, "a number from 0 to 1")
    }

    /// The learning rate of a step, counted from 0: a linear rise, then constant.
    #[must_use]
    pub fn learning_rate_at(&self, step: usize) -> f64 {
        let rise = (step + 1) as f64 / self.n_warmup_steps.max(1) as f64;
        self.learning_rate * rise.min(1.0)
    }

    /// How much of the average is kept at a step, counted from 0: `min(decay, (1 + n)/(10 + n))`.
    #[must_use]
    pub fn ema_decay_at(&self, step: usize) -> f64 {
        self.ema_decay.min((1.0 + step as f64) / (10.0 + step as f64))
    }
}

/// Pictures to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Colour values of all pictures, one after the other, each `[channels, size, size]`.
    pub pixels: Vec<u32>,
    /// The class of each picture; empty if they have none.
    pub classes: Vec<usize>,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// How many steps have been made, this one too.
    pub n_steps: usize,
    /// The loss of the batch, before the step.
    pub loss: f32,
    /// The length of the gradient, before it was shortened.
    pub gradient_norm: f32,
    /// The learning rate of the step.
    pub learning_rate: f64,
}

/// Why a step was not made. The trainer is as it was before.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The pictures or the settings cannot be used.
    #[error(transparent)]
    Input(#[from] Error),
    /// The loss or its gradient is not a number.
    #[error(
        "step {step} gave a loss of {loss} and a gradient of length {gradient_norm}: training has gone astray; go back to the last \
         checkpoint with a lower learning rate or a longer warm-up"
    )]
    NotFinite {
        /// The step that was tried.
        step: usize,
        /// Its loss.
        loss: f32,
        /// The length of its gradient.
        gradient_norm: f32,
    },
}

/// The changing parts of a training run, each a list of flat tensors in the order of the parameters.
pub(crate) struct Parts {
    pub weights: Vec<Tensor<1>>,
    pub ema: Vec<Tensor<1>>,
    /// Adam's mean of the gradients.
    pub first: Vec<Tensor<1>>,
    /// Adam's mean of their squares.
    pub second: Vec<Tensor<1>>,
}

/// A training run: the network, its average, the optimiser, and how far they have come.
pub struct Trainer {
    config: TrainConfig,
    codec: Codec,
    network: UNet,
    /// The averaged weights, in the order of the parameters.
    ema: Vec<Tensor<1>>,
    adam: Adam,
    moments: Vec<Option<AdamState<1>>>,
    n_steps: usize,
    device: Device,
}

impl Trainer {
    /// A fresh run on a device.
    pub fn new(config: TrainConfig, device: &Device) -> Result<Self, Error> {
        config.validate()?;
        let device = device.clone().autodiff();
        let mut network = config.network.init(Rng::new(config.seed).fork(WEIGHTS).next_u64(), &device)?;
        network.layers = network.layers.train();
        let ema = parameters::values(&network.layers);
        Ok(Self {
            codec: config.network.codec()?,
            adam: AdamConfig::new().with_epsilon(1e-8).build(),
            moments: vec![None; ema.len()],
            ema,
            network,
            config,
            n_steps: 0,
            device,
        })
    }

    /// What decides the run.
    #[must_use]
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// Goes on with other settings; the network, the schedule and the seed have to stay what they are.
    pub fn retune(&mut self, config: TrainConfig) -> Result<(), Error> {
        config.validate()?;
        let now = &self.config;
        if (&config.network, config.schedule, config.seed) != (&now.network, now.schedule, now.seed) {
            return Err(Error::argument("network, schedule or seed", "another one", "the same in all of a run"));
        }
        self.config = config;
        Ok(())
    }

    /// How many steps have been made.
    #[must_use]
    pub fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// The randomness of the next step, for those who choose its pictures.
    #[must_use]
    pub fn rng(&self) -> Rng {
        Rng::new(self.config.seed).fork(self.n_steps as u64 + 1)
    }

    /// The network with its averaged weights: the one to sample from.
    #[must_use]
    pub fn averaged(&self) -> UNet {
        let mut network = self.network.clone();
        network.layers = network.layers.valid();
        network.with_parameters(self.ema.clone())
    }

    /// The name and shape of every parameter.
    pub(crate) fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        self.network.parameters()
    }

    /// Everything that changes from step to step.
    pub(crate) fn parts(&self) -> Parts {
        let moment = |of: fn(&AdaptiveMomentumState<1>) -> &Tensor<1>| {
            let stored = self.moments.iter().zip(&self.ema);
            stored
                .map(|(state, like)| state.as_ref().map_or_else(|| like.zeros_like(), |s| of(&s.momentum).clone()))
                .collect()
        };
        Parts {
            weights: parameters::values(&self.network.layers),
            ema: self.ema.clone(),
            first: moment(|momentum| &momentum.moment_1),
            second: moment(|momentum| &momentum.moment_2),
        }
    }

    /// Takes the place of a run that had made `n_steps` steps.
    pub(crate) fn restore(&mut self, n_steps: usize, parts: Parts) {
        self.network.layers = parameters::with_values(self.network.layers.clone(), parts.weights);
        self.ema = parts.ema;
        let state = |(first, second)| {
            // Before the first step there are no moments.
            (n_steps > 0).then(|| AdamState::new(AdaptiveMomentumState::new(n_steps, first, second)))
        };
        self.moments = parts.first.into_iter().zip(parts.second).map(state).collect();
        self.n_steps = n_steps;
    }

    /// Learns from one batch.
    ///
    /// Asynchronous because reading the loss back from a GPU is, in a browser; on the CPU it never waits.
    pub async fn step(&mut self, batch: &Batch) -> Result<Progress, TrainError> {
        let mut rng = self.rng().fork(0);
        let pieces = self.pieces(batch, &mut rng)?;
        if self.config.network.dropout > 0.0 {
            // Dropout is the one thing that draws on the device.
            self.device.seed(rng.next_u64());
        }
        let mut total_loss = Tensor::<1>::zeros([1], &self.device.clone().inner());
        let mut total: Option<Vec<Tensor<1>>> = None;
        for (x_0, condition) in pieces {
            let draw = Draw::new(&x_0, &self.config.schedule, self.config.self_cond_share, &mut rng)?;
            let share = x_0.dims()[0] as f64 / self.config.batch_size as f64;
            let value = loss(&self.network, x_0, &condition, &draw)?.mul_scalar(share);
            let gradients = parameters::gradients(&self.network.layers, &value.backward());
            total_loss = total_loss + value.inner();
            total = Some(match total {
                None => gradients,
                Some(total) => total.into_iter().zip(gradients).map(|(a, b)| a + b).collect(),
            });
        }
        let gradients = total.unwrap_or_default();

        // One readback for both numbers.
        let squares = gradients.iter().map(|gradient| gradient.clone().square().sum());
        let norm = squares.fold(total_loss.zeros_like(), |sum, square| sum + square).sqrt();
        let read = Tensor::cat(vec![total_loss, norm], 0).into_data_async().await;
        let numbers: Vec<f32> = read.ok().and_then(|data| data.try_to_vec().ok()).unwrap_or_default();
        let &[loss, gradient_norm] = numbers.as_slice() else {
            return Err(TrainError::NotFinite { step: self.n_steps, loss: f32::NAN, gradient_norm: f32::NAN });
        };
        if !loss.is_finite() || !gradient_norm.is_finite() {
            return Err(TrainError::NotFinite { step: self.n_steps, loss, gradient_norm });
        }

        let shorten = (self.config.max_gradient_norm / f64::from(gradient_norm)).min(1.0);
        let learning_rate = self.config.learning_rate_at(self.n_steps);
        let decay = self.config.ema_decay_at(self.n_steps);
        let mut values = parameters::values(&self.network.layers);
        for (i, gradient) in gradients.into_iter().enumerate() {
            let moments = self.moments[i].take();
            let (value, moments) =
                self.adam.step(learning_rate, values[i].clone(), gradient.mul_scalar(shorten), moments);
            self.ema[i] = self.ema[i].clone().mul_scalar(decay) + value.clone().mul_scalar(1.0 - decay);
            values[i] = value;
            self.moments[i] = moments;
        }
        self.network.layers = parameters::with_values(self.network.layers.clone(), values);
        self.n_steps += 1;
        Ok(Progress { n_steps: self.n_steps, loss, gradient_norm, learning_rate })
    }

    /// The batch as analog bits, mirrored and with hidden classes as the settings say, in micro-batches.
    fn pieces(&self, batch: &Batch, rng: &mut Rng) -> Result<Vec<(Tensor<4>, Condition)>, Error> {
        let UNetConfig { size, channels, n_classes, .. } = self.config.network;
        let one = channels * size * size;
        let n = self.config.batch_size;
        if batch.pixels.len() != n * one {
            let expected = format!("{n} pictures of {channels} × {size} × {size} values");
            return Err(Error::shape("batch", &[batch.pixels.len()], expected));
        }
        if n_classes > 0 && batch.classes.len() != n {
            return Err(Error::shape("classes", &[batch.classes.len()], format!("one class for each of {n} pictures")));
        }
        let mut pixels = batch.pixels.clone();
        if self.config.flips {
            for picture in pixels.chunks_exact_mut(one) {
                if rng.uniform() < 0.5 {
                    picture.chunks_exact_mut(size).for_each(<[u32]>::reverse);
                }
            }
        }
        let mut classes = Vec::new();
        if n_classes > 0 {
            let hidden = self.config.class_dropout;
            classes = batch.classes.iter().map(|&class| (rng.uniform() >= hidden).then_some(class)).collect();
        }
        let per_piece = self.config.micro_batch_size;
        let pieces = pixels.chunks(per_piece * one).enumerate().map(|(i, pixels)| {
            let count = pixels.len() / one;
            let x_0 = self.codec.encode_tensor(pixels, [count, channels, size, size], &self.device)?;
            let condition = match classes.get(i * per_piece..i * per_piece + count) {
                Some(classes) if n_classes > 0 => Condition::Classes(classes.to_vec()),
                _ => Condition::None,
            };
            Ok((x_0, condition))
        });
        pieces.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_astray_stops_and_stays_as_it_was() {
        let network = UNetConfig {
            size: 4,
            channels: 1,
            alphabet: 2,
            width: 4,
            multipliers: vec![1],
            n_blocks: 1,
            ..UNetConfig::cifar10()
        };
        let config = TrainConfig { batch_size: 2, ..TrainConfig::new(network) };
        let mut trainer = Trainer::new(config, &Device::flex()).unwrap();
        let batch = Batch { pixels: vec![1; 32], classes: Vec::new() };
        pollster::block_on(trainer.step(&batch)).unwrap();

        // A weight that has overflowed.
        let mut values = parameters::values(&trainer.network.layers);
        values[0] = values[0].clone().add_scalar(f32::INFINITY);
        trainer.network.layers = parameters::with_values(trainer.network.layers.clone(), values);
        let average: Vec<f32> = trainer.ema[0].to_data().try_to_vec().unwrap();
        let error = pollster::block_on(trainer.step(&batch)).unwrap_err();
        assert!(matches!(error, TrainError::NotFinite { step: 1, .. }), "{error}");
        assert!(error.to_string().contains("lower learning rate"), "{error}");
        assert_eq!(trainer.n_steps(), 1);
        assert_eq!(trainer.ema[0].to_data().try_to_vec::<f32>().unwrap(), average);
    }
}
