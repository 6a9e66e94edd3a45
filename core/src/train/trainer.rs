//! The training loop, one step at a time.

use burn::{
    module::Module as _,
    optim::{AdamState, AdaptiveMomentumState},
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

use super::{DEFAULT_SELF_COND_SHARE, Network, NetworkConfig};
use crate::{
    Error,
    error::check_number,
    kernels::{Learner, Learning, on_the_cores, sum_of_squares},
    model::{UNetConfig, parameters},
    pause::pause,
    rng::Rng,
    schedule::Schedule,
};

/// The label of the stream that initial weights come from; step k draws from stream k + 1.
const WEIGHTS: u64 = 0;

/// Everything that decides a training run, short of the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig<C = UNetConfig> {
    /// The network.
    pub network: C,
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
    /// The share of class labels, or of pictures to caption, that are hidden, for classifier-free guidance.
    pub class_dropout: f64,
    /// Whether half of the pictures are mirrored, left to right.
    pub flips: bool,
    /// What all randomness descends from.
    pub seed: u64,
    /// The name of the data; empty where nobody has said it, as in older files. A run says what it learns from, see
    /// [`crate::data::Pictures::name`].
    #[serde(default)]
    pub data: String,
}

impl<C: NetworkConfig> TrainConfig<C> {
    /// The paper's settings for a network: Adam at 1e-4, batches of 128, 10,000 steps of warm-up, an average at 0.9999.
    #[must_use]
    pub fn new(network: C) -> Self {
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
            data: String::new(),
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
    /// The pictures or the settings cannot be used, or the device failed.
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
pub struct Trainer<C: NetworkConfig = UNetConfig> {
    config: TrainConfig<C>,
    network: C::Network,
    /// The averaged weights, in the order of the parameters.
    ema: Vec<Tensor<1>>,
    moments: Vec<Option<AdamState<1>>>,
    n_steps: usize,
    device: Device,
}

impl<C: NetworkConfig> Trainer<C> {
    /// A fresh run on a device.
    pub fn new(config: TrainConfig<C>, device: &Device) -> Result<Self, Error> {
        config.validate()?;
        let device = device.clone().autodiff();
        let network = config.network.init(Rng::new(config.seed).fork(WEIGHTS).next_u64(), &device)?;
        let layers = network.layers().clone().train();
        let ema = parameters::values(&layers);
        Ok(Self {
            network: network.with_layers(layers),
            moments: vec![None; ema.len()],
            ema,
            config,
            n_steps: 0,
            device,
        })
    }

    /// What decides the run.
    #[must_use]
    pub fn config(&self) -> &TrainConfig<C> {
        &self.config
    }

    /// Goes on with other settings; the network, the schedule and the seed have to stay what they are.
    pub fn retune(&mut self, config: TrainConfig<C>) -> Result<(), Error> {
        config.validate()?;
        let now = &self.config;
        if (&config.network, config.schedule, config.seed) != (&now.network, now.schedule, now.seed) {
            return Err(Error::argument("network, schedule or seed", "not that of the run", "what the run began with"));
        }
        self.config = config;
        Ok(())
    }

    /// How many steps have been made.
    #[must_use]
    pub fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// Whether there is an average for every weight. It is not where a step panicked while weights changed: such a trainer is of no use any more.
    pub(crate) fn is_whole(&self) -> bool {
        self.ema.len() == self.parameters().len()
    }

    /// The randomness of the next step, for those who choose its pictures.
    #[must_use]
    pub fn rng(&self) -> Rng {
        Rng::new(self.config.seed).fork(self.n_steps as u64 + 1)
    }

    /// The network with its averaged weights: the one to sample from.
    #[must_use]
    pub fn averaged(&self) -> C::Network {
        let layers = parameters::with_values(self.network.layers().valid(), self.ema.clone());
        self.network.clone().with_layers(layers)
    }

    /// The name and shape of every parameter.
    pub(crate) fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        parameters::names(self.network.layers())
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
            weights: parameters::values(self.network.layers()),
            ema: self.ema.clone(),
            first: moment(|momentum| &momentum.moment_1),
            second: moment(|momentum| &momentum.moment_2),
        }
    }

    /// Takes the place of a run that had made `n_steps` steps.
    pub(crate) fn restore(&mut self, n_steps: usize, parts: Parts) {
        self.put_in(parts.weights);
        self.ema = parts.ema;
        let state = |(first, second)| {
            // Before the first step there are no moments.
            (n_steps > 0).then(|| AdamState::new(AdaptiveMomentumState::new(n_steps, first, second)))
        };
        self.moments = parts.first.into_iter().zip(parts.second).map(state).collect();
        self.n_steps = n_steps;
    }

    /// Gives the network other weights.
    fn put_in(&mut self, values: Vec<Tensor<1>>) {
        let layers = parameters::with_values(self.network.layers().clone(), values);
        self.network = self.network.clone().with_layers(layers);
    }

    /// Learns from one batch.
    ///
    /// Asynchronous because reading the loss back from a GPU is, in a browser; on the CPU it never waits.
    pub async fn step(&mut self, batch: &<C::Network as Network>::Batch) -> Result<Progress, TrainError> {
        let mut rng = self.rng().fork(0);
        let pieces = self.network.pieces(&self.config, batch, &mut rng, &self.device)?;
        if self.config.network.dropout() > 0.0 {
            // Dropout is the one thing that draws on the device.
            self.device.seed(rng.next_u64());
        }
        let mut total_loss = Tensor::<1>::zeros([1], &self.device.clone().inner());
        let mut total: Option<Vec<Tensor<1>>> = None;
        for (count, piece) in pieces {
            let share = count as f64 / self.config.batch_size as f64;
            let (network, config) = (&self.network, &self.config);
            let (value, gradients) = on_the_cores(&self.device, || {
                let value = network.loss(config, piece, &mut rng)?.mul_scalar(share);
                let gradients = parameters::gradients(network.layers(), &value.backward());
                Ok::<_, Error>((value.inner(), gradients))
            })?;
            total_loss = total_loss + value;
            total = Some(match total {
                None => gradients,
                Some(total) => total.into_iter().zip(gradients).map(|(a, b)| a + b).collect(),
            });
            pause().await;
        }
        let gradients = total.unwrap_or_default();

        // One readback for both numbers.
        let norm = sum_of_squares(&gradients, &total_loss.device()).sqrt();
        let read = Tensor::cat(vec![total_loss, norm], 0).into_data_async().await.map_err(Error::readback)?;
        let numbers: Vec<f32> = read.try_to_vec().map_err(Error::readback)?;
        let [loss, gradient_norm] = [numbers[0], numbers[1]];
        if !loss.is_finite() || !gradient_norm.is_finite() {
            return Err(TrainError::NotFinite { step: self.n_steps, loss, gradient_norm });
        }

        let shorten = (self.config.max_gradient_norm / f64::from(gradient_norm)).min(1.0);
        let learning_rate = self.config.learning_rate_at(self.n_steps);
        let decay = self.config.ema_decay_at(self.n_steps);
        let learning = Learning { rate: learning_rate, shorten, decay };
        let values = parameters::values(self.network.layers());
        let learners = values.into_iter().zip(self.moments.drain(..)).zip(self.ema.drain(..));
        let learners: Vec<_> =
            learners.map(|((value, moments), average)| Learner { value, moments, average }).collect();
        let learned: Vec<Learner> = on_the_cores(&self.device, || {
            learners.into_iter().zip(gradients).map(|(learner, gradient)| learning.step(learner, gradient)).collect()
        });
        let mut values = Vec::new();
        for Learner { value, moments, average } in learned {
            values.push(value);
            self.moments.push(moments);
            self.ema.push(average);
        }
        self.put_in(values);
        self.n_steps += 1;
        Ok(Progress { n_steps: self.n_steps, loss, gradient_norm, learning_rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Batch;

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
        let mut values = parameters::values(trainer.network.layers());
        values[0] = values[0].clone().add_scalar(f32::INFINITY);
        trainer.put_in(values);
        let average: Vec<f32> = trainer.ema[0].to_data().try_to_vec().unwrap();
        let error = pollster::block_on(trainer.step(&batch)).unwrap_err();
        assert!(matches!(error, TrainError::NotFinite { step: 1, .. }), "{error}");
        assert!(error.to_string().contains("lower learning rate"), "{error}");
        assert_eq!(trainer.n_steps(), 1);
        assert!(trainer.is_whole());
        assert_eq!(trainer.ema[0].to_data().try_to_vec::<f32>().unwrap(), average);
    }
}
