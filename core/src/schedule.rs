//! Schedules: how much of the data, γ, is left at each time t between 0 (data) and 1 (noise).
//!
//! Everything here is f64 on the CPU: γ(1) is near 6e-9 and 1 − γ(0) near 1e-7, beyond what f32 can tell apart from the
//! ends. Networks never see a schedule, only γ.

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};

use crate::{
    bisect::bisect,
    error::{Error, check_number},
};

/// How far γ of the extra schedules stays away from 0 and 1, so that every division by √γ or √(1−γ) is finite.
const MARGIN: f64 = 1e-9;

/// The noise schedule: γ falls strictly from almost 1 at t = 0 to almost 0 at t = 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Schedule {
    /// The paper's default, Algorithm 4: `γ(t) = cos²((t + ns)/(1 + ds) · π/2)`.
    Cosine {
        /// Keeps γ(0) below 1.
        ns: f64,
        /// Keeps γ(1) above 0.
        ds: f64,
    },
    /// A stretch of the cosine from `start` to `end`, raised to 2`tau` and rescaled to 0…1.
    CosineRange {
        /// Where on the cosine t = 0 lies, in quarter turns from 0 to 1.
        start: f64,
        /// Where on the cosine t = 1 lies, in quarter turns from 0 to 1.
        end: f64,
        /// Half the power that the cosine is raised to.
        tau: f64,
    },
    /// A stretch of the sigmoid from `start`/`tau` to `end`/`tau`, rescaled to 0…1.
    Sigmoid {
        /// Where on the sigmoid t = 0 lies.
        start: f64,
        /// Where on the sigmoid t = 1 lies.
        end: f64,
        /// Temperature: larger is nearer to linear.
        tau: f64,
    },
    /// `γ(t) = 1 − t`.
    Linear,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Cosine { ns: 0.0002, ds: 0.00025 }
    }
}

impl Schedule {
    /// Every kind of schedule, with its usual parameters.
    pub const ALL: [Self; 4] = [
        Self::Cosine { ns: 0.0002, ds: 0.00025 },
        Self::CosineRange { start: 0.2, end: 1.0, tau: 1.0 },
        Self::Sigmoid { start: -3.0, end: 3.0, tau: 1.0 },
        Self::Linear,
    ];

    /// The schedule's name.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Cosine { .. } => "cosine",
            Self::CosineRange { .. } => "cosine range",
            Self::Sigmoid { .. } => "sigmoid",
            Self::Linear => "linear",
        }
    }

    /// Checks that γ is finite and strictly decreasing with these parameters.
    pub fn validate(&self) -> Result<(), Error> {
        match *self {
            Self::Cosine { ns, ds } => {
                check_number("schedule ns", ns, |ns| (1e-6..=0.1).contains(&ns), "a number from 1e-6 to 0.1")?;
                check_number(
                    "schedule ds",
                    ds,
                    |ds| ds - ns >= 1e-6 && ds <= 0.2,
                    "at least 1e-6 above ns and at most 0.2",
                )
            }
            Self::CosineRange { start, end, tau } => {
                check_number("schedule start", start, |v| (0.0..1.0).contains(&v), "a number from 0 to below 1")?;
                check_number(
                    "schedule end",
                    end,
                    |v| v - start >= 0.01 && v <= 1.0,
                    "at least 0.01 above start and at most 1",
                )?;
                // A higher power is so flat near t = 1 that γ no longer falls there, to the precision of f64.
                check_number("schedule tau", tau, |v| (0.05..=3.0).contains(&v), "a number from 0.05 to 3")
            }
            Self::Sigmoid { start, end, tau } => {
                check_number("schedule tau", tau, |v| (0.05..=20.0).contains(&v), "a number from 0.05 to 20")?;
                // Beyond ±15 the sigmoid is flat.
                let inside = |v: f64| (v / tau).abs() <= 15.0;
                check_number("schedule start", start, inside, "at most 15 tau away from 0")?;
                check_number(
                    "schedule end",
                    end,
                    |v| v - start >= 0.01 * tau && inside(v),
                    "at least 0.01 tau above start and at most 15 tau away from 0",
                )
            }
            Self::Linear => Ok(()),
        }
    }

    /// The share of the data's variance at time `t`: the noise level that a network is told.
    ///
    /// Chen et al. 2023, Algorithm 4. `t` outside 0…1 is taken as the nearer end.
    #[must_use]
    pub fn gamma(&self, t: f64) -> f64 {
        let t = t.clamp(0.0, 1.0);
        match *self {
            Self::Cosine { ns, ds } => ((t + ns) / (1.0 + ds) * FRAC_PI_2).cos().powi(2),
            Self::CosineRange { start, end, tau } => {
                rescaled(t, |t| (((end - start) * t + start) * FRAC_PI_2).cos().max(0.0).powf(2.0 * tau))
            }
            Self::Sigmoid { start, end, tau } => {
                rescaled(t, |t| 1.0 / (1.0 + (((end - start) * t + start) / tau).exp()))
            }
            Self::Linear => rescaled(t, |t| 1.0 - t),
        }
    }

    /// Half the logarithm of the signal-to-noise ratio, `λ = ½ ln(γ/(1−γ))`: DPM-Solver's clock.
    #[must_use]
    pub fn lambda(&self, t: f64) -> f64 {
        lambda(self.gamma(t))
    }

    /// The time at which [`Self::lambda`] has a value, by bisection; the nearer end if it never has.
    #[must_use]
    pub fn time_at_lambda(&self, lambda: f64) -> f64 {
        bisect(0.0, 1.0, |t| self.lambda(t) > lambda)
    }
}

/// Half the logarithm of the signal-to-noise ratio at noise level `gamma`.
#[must_use]
pub fn lambda(gamma: f64) -> f64 {
    0.5 * (gamma.ln() - (-gamma).ln_1p())
}

/// Shifts and scales a falling curve so that it runs from 1 − margin to margin.
fn rescaled(t: f64, curve: impl Fn(f64) -> f64) -> f64 {
    let (first, last) = (curve(0.0), curve(1.0));
    // Deviation: the authors clip at 1e-9, which leaves γ flat (and 1 − γ zero) at the ends; a margin keeps it strict.
    MARGIN + (1.0 - 2.0 * MARGIN) * (curve(t) - last) / (first - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_falls_strictly_between_its_ends() {
        for schedule in Schedule::ALL {
            schedule.validate().unwrap();
            let values: Vec<f64> = (0..=1000).map(|i| schedule.gamma(f64::from(i) / 1000.0)).collect();
            assert!(values.windows(2).all(|pair| pair[0] > pair[1]), "{schedule:?}");
            assert!(values[0] < 1.0 && values[0] > 1.0 - 1e-6, "{schedule:?}: {}", values[0]);
            assert!(values[1000] > 0.0 && values[1000] < 1e-6, "{schedule:?}: {}", values[1000]);
        }
    }

    #[test]
    fn the_paper_ends() {
        let schedule = Schedule::default();
        assert!((schedule.gamma(1.0) / 6.17e-9 - 1.0).abs() < 1e-2, "{}", schedule.gamma(1.0));
        assert!(((1.0 - schedule.gamma(0.0)) / 9.87e-8 - 1.0).abs() < 1e-2);
    }

    #[test]
    fn time_at_lambda_undoes_lambda() {
        for schedule in Schedule::ALL {
            for t in [0.001, 0.1, 0.5, 0.9, 0.999] {
                let back = schedule.time_at_lambda(schedule.lambda(t));
                assert!((back - t).abs() < 1e-9, "{schedule:?} at {t}: {back}");
            }
        }
    }

    #[test]
    fn parameters_that_would_not_fall_are_refused() {
        let bad = [
            Schedule::Cosine { ns: 0.0, ds: 0.1 },
            Schedule::Cosine { ns: f64::NAN, ds: 0.001 },
            Schedule::Cosine { ns: 0.001, ds: 0.001 },
            Schedule::Cosine { ns: 1e-9, ds: 0.001 },
            Schedule::CosineRange { start: 0.0, end: 1e-9, tau: 1.0 },
            Schedule::Sigmoid { start: 0.0, end: 1e-300, tau: 1.0 },
            Schedule::CosineRange { start: 0.5, end: 0.5, tau: 1.0 },
            Schedule::CosineRange { start: 0.0, end: 1.0, tau: 0.0 },
            Schedule::Sigmoid { start: 3.0, end: -3.0, tau: 1.0 },
            Schedule::Sigmoid { start: -3.0, end: f64::INFINITY, tau: 1.0 },
        ];
        for schedule in bad {
            assert!(schedule.validate().is_err(), "{schedule:?}");
        }
    }
}
