//! Self-conditioning: what the denoiser is told of its own earlier estimate, while sampling.
//!
//! Deliberately absent: the training side (one estimate, no gradient), which is in [`crate::train`].

use std::{fmt, str::FromStr};

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    error::check_number,
    kernels::mix,
    model::{Condition, Denoiser, Input},
};

/// The strategy: where the x̃₀ that the network sees comes from.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub enum SelfCond {
    /// None: the network always sees zeros.
    Off,
    /// The estimate of the step before (Algorithm 2).
    #[default]
    Previous,
    /// A moving average of all earlier estimates (Algorithm 5).
    Momentum {
        /// The share of the old average that is kept, from 0 (the same as `Previous`) to below 1.
        momentum: f64,
    },
    /// An estimate of this same step, made first without self-conditioning; the two are extrapolated (Algorithm 6).
    SelfGuidance {
        /// 1 uses the second estimate as it is; the paper likes 3 to 5. Costs a second evaluation.
        weight: f64,
    },
}

impl SelfCond {
    /// Every strategy, with the paper's usual parameter.
    pub const ALL: [Self; 4] =
        [Self::Off, Self::Previous, Self::Momentum { momentum: 0.5 }, Self::SelfGuidance { weight: 3.0 }];

    /// The strategy's name.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Previous => "previous estimate",
            Self::Momentum { .. } => "momentum estimate",
            Self::SelfGuidance { .. } => "self-guidance",
        }
    }

    /// Checks the parameter.
    pub fn validate(&self) -> Result<(), Error> {
        match *self {
            Self::Off | Self::Previous => Ok(()),
            Self::Momentum { momentum } => {
                check_number("momentum", momentum, |m| (0.0..1.0).contains(&m), "a number from 0 to below 1")
            }
            Self::SelfGuidance { weight } => check_number(
                "self-guidance weight",
                weight,
                |w| (-100.0..=100.0).contains(&w),
                "a number from -100 to 100",
            ),
        }
    }
}

/// The strategy as a person types it: `off`, `previous`, `momentum=0.5`, `guide=3`.
impl fmt::Display for SelfCond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Previous => f.write_str("previous"),
            Self::Momentum { momentum } => write!(f, "momentum={momentum}"),
            Self::SelfGuidance { weight } => write!(f, "guide={weight}"),
        }
    }
}

impl FromStr for SelfCond {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::argument("self-conditioning", text, "off, previous, momentum=NUMBER or guide=NUMBER");
        let parsed = match text.split_once('=') {
            None if text == "off" => Self::Off,
            None if text == "previous" => Self::Previous,
            Some(("momentum", number)) => Self::Momentum { momentum: number.parse().map_err(|_| wrong())? },
            Some(("guide", number)) => Self::SelfGuidance { weight: number.parse().map_err(|_| wrong())? },
            _ => return Err(wrong()),
        };
        parsed.validate()?;
        Ok(parsed)
    }
}

/// What a chain remembers of its earlier estimates.
#[derive(Debug, Clone)]
pub struct Memory<const D: usize> {
    /// The last estimate x̃₀, clipped; zeros before the first.
    pub x_pred: Tensor<D>,
    /// The moving average of the estimates before the last; zeros at first. Only `Momentum` reads it.
    pub x_accu: Tensor<D>,
    /// How many estimates the network has made of each example. Class guidance makes two in one run.
    pub n_evaluations: usize,
}

impl<const D: usize> Memory<D> {
    /// The memory before the first estimate of states like `x_t`.
    #[must_use]
    pub fn new(x_t: &Tensor<D>) -> Self {
        Self { x_pred: x_t.zeros_like(), x_accu: x_t.zeros_like(), n_evaluations: 0 }
    }
}

/// Estimates x̃₀ from states at one noise level, by one strategy and with classifier-free guidance.
pub(crate) struct Estimator<'a, const D: usize> {
    pub denoiser: &'a dyn Denoiser<D>,
    pub self_cond: SelfCond,
    /// See [`asked`].
    pub asked: &'a Condition,
    /// Classifier-free guidance: 1 is none.
    pub guidance: f64,
}

/// What the denoiser is asked in one run: the condition and, with guidance, nothing in particular before it, both in one batch.
pub(crate) fn asked(condition: &Condition, guidance: f64) -> Condition {
    if is_guided(condition, guidance) { condition.null().and(condition) } else { condition.clone() }
}

fn is_guided(condition: &Condition, guidance: f64) -> bool {
    #[expect(clippy::float_cmp, reason = "exactly 1 is how a person says: no guidance")]
    let is_asked_for = guidance != 1.0;
    is_asked_for && !matches!(condition, Condition::None)
}

impl<const D: usize> Estimator<'_, D> {
    /// The estimate x̃₀ of `x_t`, not yet clipped. The step clips it, and `memory` is to hold it then.
    ///
    /// Deviation: the paper's listings clip x̃₀ inside the step only; the authors' code, and this, clip what the network is shown of
    /// it too. Data lie within ±scale, so a guess beyond that tells the network nothing.
    pub fn estimate(&self, x_t: &Tensor<D>, gamma: f64, memory: &mut Memory<D>) -> Tensor<D> {
        match self.self_cond {
            SelfCond::Off => self.guided(x_t, &x_t.zeros_like(), gamma, memory),
            SelfCond::Previous => self.guided(x_t, &memory.x_pred.clone(), gamma, memory),
            SelfCond::Momentum { momentum } => {
                memory.x_accu = mix((momentum, memory.x_accu.clone()), (1.0 - momentum, memory.x_pred.clone()));
                self.guided(x_t, &memory.x_accu.clone(), gamma, memory)
            }
            SelfCond::SelfGuidance { weight } => {
                let without = self.guided(x_t, &x_t.zeros_like(), gamma, memory);
                let with = self.guided(x_t, &self.clip(without.clone()), gamma, memory);
                extrapolate(without, with, weight)
            }
        }
    }

    /// Classifier-free guidance: `w·f(x_t, class) + (1 − w)·f(x_t, no class)`, both in one batch.
    fn guided(&self, x_t: &Tensor<D>, x_pred: &Tensor<D>, gamma: f64, memory: &mut Memory<D>) -> Tensor<D> {
        let n = x_t.dims()[0];
        let condition = self.asked;
        if !is_guided(condition, self.guidance) {
            memory.n_evaluations += 1;
            let (x_t, x_pred) = (x_t.clone(), x_pred.clone());
            return self.denoiser.estimate(Input { x_t, x_pred, gamma: &vec![gamma; n], condition });
        }
        memory.n_evaluations += 2;
        let [x_t, x_pred] = [x_t, x_pred].map(|tensor| Tensor::cat(vec![tensor.clone(), tensor.clone()], 0));
        let made = self.denoiser.estimate(Input { x_t, x_pred, gamma: &vec![gamma; 2 * n], condition });
        extrapolate(made.clone().narrow(0, 0, n), made.narrow(0, n, n), self.guidance)
    }

    fn clip(&self, x_pred: Tensor<D>) -> Tensor<D> {
        let scale = self.denoiser.objective().scale;
        x_pred.clamp(-scale, scale)
    }
}

/// `weight·with + (1 − weight)·without`.
fn extrapolate<const D: usize>(without: Tensor<D>, with: Tensor<D>, weight: f64) -> Tensor<D> {
    mix((weight, with), (1.0 - weight, without))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{UNetConfig, parameters},
        rng::Rng,
    };
    use burn::tensor::Device;

    #[test]
    fn a_strategy_is_written_one_way() {
        for self_cond in SelfCond::ALL {
            assert_eq!(self_cond.to_string().parse(), Ok(self_cond));
        }
        for text in ["", "on", "momentum", "momentum=x", "guide=", "Previous", "previous=1"] {
            let error = text.parse::<SelfCond>().unwrap_err().to_string();
            assert!(error.contains("guide=NUMBER"), "{text}: {error}");
        }
        assert!("momentum=1.5".parse::<SelfCond>().unwrap_err().to_string().contains("below 1"));
    }

    /// Both evaluations of class guidance in one batch against the twin, one after the other.
    #[test]
    fn guidance_in_one_batch_is_that_of_two_runs() {
        let device = Device::flex();
        let config = UNetConfig {
            size: 8,
            width: 8,
            multipliers: vec![1, 2],
            n_blocks: 1,
            n_classes: 3,
            ..UNetConfig::cifar10()
        };
        let mut network = UNetConfig { head_dim: 8, attention_sizes: vec![4], ..config }.init(1, &device).unwrap();
        // Fresh networks are almost nothing.
        let values = parameters::values(&network.layers);
        let draw = |(i, value): (usize, &Tensor<1>)| Rng::new(i as u64).normal_tensor(value.dims(), &device);
        let values = values.iter().enumerate().map(draw).map(|value| value.mul_scalar(0.2)).collect();
        network.layers = parameters::with_values(network.layers.clone(), values);
        let shape = network.state_shape(2);
        let [x_t, x_pred] = [1, 2].map(|seed| Rng::new(seed).normal_tensor(shape, &device));
        let condition = Condition::Classes(vec![Some(2), None]);
        let asked = asked(&condition, 2.5);
        let estimator = Estimator { denoiser: &network, self_cond: SelfCond::Previous, asked: &asked, guidance: 2.5 };
        let mut memory = Memory { x_pred: x_pred.clone(), ..Memory::new(&x_t) };
        let both = estimator.estimate(&x_t, 0.3, &mut memory);
        assert_eq!(memory.n_evaluations, 2);

        let run = |condition: &Condition| {
            network.estimate(Input { x_t: x_t.clone(), x_pred: x_pred.clone(), gamma: &[0.3; 2], condition })
        };
        let twin = run(&condition).mul_scalar(2.5) - run(&condition.null()).mul_scalar(1.5);
        let [both, twin]: [Vec<f32>; 2] = [both, twin].map(|tensor| tensor.into_data().try_to_vec().unwrap());
        assert!(twin.iter().any(|value| value.abs() > 0.1), "there is something to compare");
        for (a, b) in both.iter().zip(&twin) {
            assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} and {b}");
        }
    }
}
