//! Samplers: the reverse chain from noise to data.
//!
//! A [`Sampler`] turns two times into the [`plan()`] of one step, pure f64 coefficients. A [`Chain`] owns the state, runs
//! the steps and shows each to an observer. A [`State`] can be kept and resumed with other [`Settings`]: that is how a
//! chain is branched.
//!
//! Deliberately absent: networks (any [`crate::model::Denoiser`] will do) and pictures.

mod chain;
mod plan;
mod single;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use chain::{Chain, State, Step};
pub use plan::{Stage, plan};
pub(crate) use single::{Piece, SingleChain, n_at_once};

use crate::{Error, error::check_number, schedule::Schedule, self_cond::SelfCond};

/// The rule that takes a state to an earlier time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Sampler {
    /// Deterministic (Song et al. 2020; Algorithm 4).
    #[default]
    Ddim,
    /// With fresh noise at every step (Ho et al. 2020; Algorithm 4).
    Ddpm,
    /// DPM-Solver of order 1, which is DDIM by another road.
    DpmSolver1,
    /// DPM-Solver of order 2: two evaluations a step.
    DpmSolver2,
    /// DPM-Solver of order 3: three evaluations a step.
    DpmSolver3,
    /// DPM-Solver of order 2 that reuses the estimate of the step before: one evaluation a step.
    DpmSolverMultistep2,
}

impl Sampler {
    /// Every sampler.
    pub const ALL: [Self; 6] =
        [Self::Ddim, Self::Ddpm, Self::DpmSolver1, Self::DpmSolver2, Self::DpmSolver3, Self::DpmSolverMultistep2];

    /// The sampler's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ddim => "DDIM",
            Self::Ddpm => "DDPM",
            Self::DpmSolver1 => "DPM-Solver-1",
            Self::DpmSolver2 => "DPM-Solver-2",
            Self::DpmSolver3 => "DPM-Solver-3",
            Self::DpmSolverMultistep2 => "DPM-Solver-2M",
        }
    }
}

/// A sampler by its [`Sampler::label`], in capital or small letters.
impl FromStr for Sampler {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|sampler| sampler.label().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let labels = Self::ALL.map(|sampler| sampler.label().to_ascii_lowercase());
            Error::argument("sampler", text, format!("one of {}", labels.join(", ")))
        })
    }
}

/// Everything that decides how noise becomes a sample, short of the denoiser and the seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How many steps from t = 1 to t = 0.
    pub n_steps: usize,
    /// The time difference, in steps: how much further each state is taken than the clock says (Algorithm 2). 0 is none.
    pub td: f64,
    /// The rule of one step.
    pub sampler: Sampler,
    /// What the network is told of its earlier estimate.
    pub self_cond: SelfCond,
    /// Classifier-free guidance towards the class asked for: 1 is none, 0 ignores the class.
    pub guidance: f64,
    /// Time → noise level. It may differ from the one used in training: a network sees γ only.
    pub schedule: Schedule,
}

impl Default for Settings {
    /// 100 DDIM steps with the previous estimate, no time difference and no guidance.
    fn default() -> Self {
        Self {
            n_steps: 100,
            td: 0.0,
            sampler: Sampler::Ddim,
            self_cond: SelfCond::Previous,
            guidance: 1.0,
            schedule: Schedule::default(),
        }
    }
}

impl Settings {
    /// The largest number of steps: far more than has ever helped, and little enough to count on.
    pub const MAX_STEPS: usize = 1_000_000;

    /// Checks every number.
    pub fn validate(&self) -> Result<(), Error> {
        if !(1..=Self::MAX_STEPS).contains(&self.n_steps) {
            return Err(Error::argument("steps", self.n_steps, format!("from 1 to {}", Self::MAX_STEPS)));
        }
        check_number("time difference td", self.td, |td| td >= 0.0, "a number of steps, 0 or more")?;
        check_number("guidance", self.guidance, |w| (-100.0..=100.0).contains(&w), "a number from -100 to 100")?;
        self.self_cond.validate()?;
        self.schedule.validate()
    }

    /// The clock time at which step `position` starts, and the time it takes the state to (Algorithm 2).
    ///
    /// `t_now = 1 − step/steps`, `t_next = max(1 − (step + 1 + td)/steps, 0)`. The position is a whole number unless the
    /// chain was branched from one with another number of steps.
    #[must_use]
    pub fn times(&self, position: f64) -> (f64, f64) {
        let n_steps = self.n_steps as f64;
        let t_now = 1.0 - position / n_steps;
        let t_next = (1.0 - (position + 1.0 + self.td) / n_steps).max(0.0);
        (t_now, t_next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samplers_go_by_their_names() {
        for sampler in Sampler::ALL {
            assert_eq!(sampler.label().parse(), Ok(sampler));
            assert_eq!(sampler.label().to_lowercase().parse(), Ok(sampler));
        }
        let error = "euler".parse::<Sampler>().unwrap_err().to_string();
        assert!(error.contains("dpm-solver-2m"), "{error}");
    }
}
