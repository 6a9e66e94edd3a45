//! The loop of Algorithm 2: owns the state, runs the steps, shows each to an observer.

use std::ops::ControlFlow;

use burn::tensor::{Device, Tensor};

use super::{Settings, plan};
use crate::{
    Error,
    kernels::finish_step,
    model::{Condition, Denoiser},
    rng::Rng,
    self_cond::{Estimator, Memory, asked},
};

/// The stream of the initial noise; step k of a chain draws from stream k + 1.
const INITIAL_NOISE: u64 = 0;

/// Everything a chain needs to go on: keep one, and it can be resumed, with other settings too.
#[derive(Debug, Clone)]
pub struct State<const D: usize> {
    /// The noisy state, `[b, c, …]`.
    pub x_t: Tensor<D>,
    /// The estimates so far.
    pub memory: Memory<D>,
    /// The clock time of the last estimate; `None` before the first.
    pub t_pred: Option<f64>,
    /// How far the chain has come, in steps of `n_steps`.
    pub position: f64,
    /// The number of steps that `position` counts in.
    pub n_steps: usize,
    /// How many steps have been made since the noise.
    pub step: usize,
    /// The seed that all noise of the chain descends from.
    pub seed: u64,
}

impl<const D: usize> State<D> {
    /// The start of a chain: noise `x_t`, of which `seed` decides what noise later steps add.
    #[must_use]
    pub fn new(x_t: Tensor<D>, seed: u64) -> Self {
        Self { memory: Memory::new(&x_t), x_t, t_pred: None, position: 0.0, n_steps: 1, step: 0, seed }
    }

    /// The start of a chain from the noise that belongs to a seed.
    #[must_use]
    pub fn from_seed(shape: [usize; D], seed: u64, device: &Device) -> Self {
        Self::new(Rng::new(seed).fork(INITIAL_NOISE).normal_tensor(shape, device), seed)
    }

    fn validate(&self) -> Result<(), Error> {
        let shape = self.x_t.dims();
        for (name, tensor) in [
            ("last estimate of the state", &self.memory.x_pred),
            ("average estimate of the state", &self.memory.x_accu),
        ] {
            if tensor.dims() != shape {
                return Err(Error::shape(name, &tensor.dims(), format!("the shape of the state, {shape:?}")));
            }
        }
        let end = self.n_steps as f64;
        if self.n_steps == 0 || !(0.0..=end).contains(&self.position) {
            return Err(Error::argument(
                "position of the state",
                format!("{} of {} steps", self.position, self.n_steps),
                "between 0 and a number of steps that is at least 1",
            ));
        }
        Ok(())
    }
}

/// What an observer sees of one step.
#[derive(Debug, Clone)]
pub struct Step<const D: usize> {
    /// Which step since the noise, from 0.
    pub step: usize,
    /// The clock: the time that the network was told.
    pub t_now: f64,
    /// The time that the step took the state to.
    pub t_next: f64,
    /// The state that the step started from.
    pub x_t: Tensor<D>,
    /// The last estimate x̃₀ of the step, clipped.
    pub x_pred: Tensor<D>,
    /// The state after the step, from which the chain can be resumed.
    pub next: State<D>,
}

/// A reverse chain under way.
#[derive(Debug, Clone)]
pub struct Chain<const D: usize> {
    settings: Settings,
    condition: Condition,
    /// What the denoiser is asked in each of its runs, prepared for all of them; `None` before the first.
    asked: Option<Condition>,
    state: State<D>,
}

impl<const D: usize> Chain<D> {
    /// A chain that goes on from `state` with `settings`, which need not be those that led there.
    ///
    /// With another number of steps it goes on from the same clock time; its last step is then a shorter one if the two
    /// numbers do not divide.
    pub fn new(settings: Settings, condition: Condition, mut state: State<D>) -> Result<Self, Error> {
        settings.validate()?;
        state.validate()?;
        condition.validate(state.x_t.dims()[0])?;
        // Only where it changes, so that the same number of steps resumes exactly.
        if state.n_steps != settings.n_steps {
            state.position = state.position * settings.n_steps as f64 / state.n_steps as f64;
            state.n_steps = settings.n_steps;
        }
        Ok(Self { settings, condition, asked: None, state })
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The state that the next step starts from.
    #[must_use]
    pub fn state(&self) -> &State<D> {
        &self.state
    }

    /// Whether the clock has reached 0.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        // A branched chain may end a rounding error before the last step; a step that short is none.
        self.state.position >= self.settings.n_steps as f64 - 1e-9
    }

    /// Works out what is the same at every step.
    pub(super) fn prepare(&mut self, denoiser: &dyn Denoiser<D>) -> Result<(), Error> {
        if self.asked.is_none() {
            denoiser.accepts(self.state.x_t.dims(), &self.condition)?;
            self.asked = Some(denoiser.prepare(asked(&self.condition, self.settings.guidance)));
        }
        Ok(())
    }

    /// Makes one step; `None` if the chain is finished. All steps of a chain are made by the same denoiser.
    pub fn step(&mut self, denoiser: &dyn Denoiser<D>) -> Result<Option<Step<D>>, Error> {
        if self.is_finished() {
            return Ok(None);
        }
        self.prepare(denoiser)?;
        let shape = self.state.x_t.dims();
        let Settings { sampler, self_cond, guidance, schedule, .. } = self.settings;
        let asked = self.asked.as_ref().expect("it has been prepared");
        let estimator = Estimator { denoiser, self_cond, asked, guidance };

        let scale = denoiser.objective().scale;
        let (t_now, t_next) = self.settings.times(self.state.position);
        let x_t = self.state.x_t.clone();
        let previous = self.state.memory.x_pred.clone();
        let mut estimates = Vec::new();
        let mut point = x_t.clone();
        for stage in plan(sampler, &schedule, t_now, t_next, self.state.t_pred) {
            let estimate = estimator.estimate(&point, schedule.gamma(stage.t), &mut self.state.memory);
            self.state.t_pred = Some(stage.t);
            let (&own, earlier) = stage.estimates.split_last().expect("the last estimate is the stage's own");
            let terms = earlier.iter().copied().zip(estimates.iter().cloned());
            let terms = terms.chain([(stage.previous, previous.clone())]);
            let mut others: Vec<_> = terms.filter(|(coefficient, _)| *coefficient != 0.0).collect();
            if stage.noise > 0.0 {
                let mut rng = Rng::new(self.state.seed).fork(self.state.step as u64 + 1);
                others.push((stage.noise, rng.normal_tensor(shape, &x_t.device())));
            }
            let [x_pred, next] = finish_step(estimate, scale, own, (stage.x_t, x_t.clone()), others);
            self.state.memory.x_pred = x_pred.clone();
            estimates.push(x_pred);
            point = next;
        }

        let step = self.state.step;
        self.state.x_t = point;
        self.state.position += 1.0;
        self.state.step += 1;
        if self.is_finished() {
            self.state.position = self.settings.n_steps as f64;
        }
        Ok(Some(Step { step, t_now, t_next, x_t, x_pred: self.state.memory.x_pred.clone(), next: self.state.clone() }))
    }

    /// Runs to the end, or until `observer` breaks off; the result is the last clipped estimate x̃₀.
    pub fn run(
        &mut self,
        denoiser: &dyn Denoiser<D>,
        mut observer: impl FnMut(&Step<D>) -> ControlFlow<()>,
    ) -> Result<Tensor<D>, Error> {
        while let Some(step) = self.step(denoiser)? {
            if observer(&step).is_break() {
                break;
            }
        }
        Ok(self.state.memory.x_pred.clone())
    }
}
