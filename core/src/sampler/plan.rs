//! The rules of one step, as numbers.
//!
//! Every sampler here is linear in what it sees. A step that starts at state `x` is a list of stages; stage k evaluates
//! the denoiser at its own time, giving x̃₀⁽ᵏ⁾, and moves on to
//! `x_t·x + previous·(x̃₀ of the step before) + Σⱼ estimates[j]·x̃₀⁽ʲ⁾ + noise·z`.
//! The coefficients are worked out in f64: near the ends of the schedule f32 would lose them.

use super::Sampler;
use crate::schedule::{Schedule, lambda};

/// One evaluation of the denoiser and the move after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The clock time that the network is told.
    pub t: f64,
    /// The coefficient of the state at the start of the step.
    pub x_t: f64,
    /// The coefficient of the last estimate of the step before; 0 but for the multistep rule.
    pub previous: f64,
    /// The coefficients of the estimates of this step's stages, this one's last.
    pub estimates: Vec<f64>,
    /// The coefficient of fresh standard normal noise.
    pub noise: f64,
}

/// The plan of the step from `t_now` to `t_next`.
///
/// `t_previous` is the time at which the last estimate of the step before was made, if there is one.
#[must_use]
pub fn plan(sampler: Sampler, schedule: &Schedule, t_now: f64, t_next: f64, t_previous: Option<f64>) -> Vec<Stage> {
    let (now, next) = (Level::at(schedule, t_now), Level::at(schedule, t_next));
    match sampler {
        Sampler::Ddim => vec![ddim(&now, &next)],
        Sampler::Ddpm => vec![ddpm(&now, &next)],
        Sampler::DpmSolver1 => vec![dpm_solver_1(&now, &next)],
        Sampler::DpmSolver2 => dpm_solver_2(schedule, &now, &next),
        Sampler::DpmSolver3 => dpm_solver_3(schedule, &now, &next),
        // The first step has nothing to reuse. After a branch the old estimate may even be of an earlier time.
        Sampler::DpmSolverMultistep2 => vec![match t_previous.map(|t| Level::at(schedule, t)) {
            Some(previous) if previous.lambda < now.lambda => dpm_solver_multistep_2(&previous, &now, &next),
            _ => dpm_solver_1(&now, &next),
        }],
    }
}

/// A noise level and what follows from it.
struct Level {
    t: f64,
    gamma: f64,
    /// √γ, the share of the data.
    alpha: f64,
    /// √(1−γ), the share of the noise.
    sigma: f64,
    /// ln(α/σ), the clock of DPM-Solver.
    lambda: f64,
}

impl Level {
    fn at(schedule: &Schedule, t: f64) -> Self {
        let gamma = schedule.gamma(t);
        Self { t, gamma, alpha: gamma.sqrt(), sigma: (1.0 - gamma).sqrt(), lambda: lambda(gamma) }
    }

    /// The level a `share` of the way from `self` to `other` on the clock of DPM-Solver.
    fn towards(&self, other: &Self, share: f64, schedule: &Schedule) -> Self {
        Self::at(schedule, schedule.time_at_lambda(self.lambda + share * (other.lambda - self.lambda)))
    }
}

/// DDIM, Algorithm 4: `x_next = √γ_next·x̃₀ + √(1−γ_next)·ε̃` with `ε̃ = (x_t − √γ_now·x̃₀)/√(1−γ_now)`.
fn ddim(now: &Level, next: &Level) -> Stage {
    let x_t = next.sigma / now.sigma;
    Stage { t: now.t, x_t, previous: 0.0, estimates: vec![next.alpha - now.alpha * x_t], noise: 0.0 }
}

/// DDPM, Algorithm 4: `x_next = (x_t − (1−α)/√(1−γ_now)·ε̃)/√α + √(1−α)·z` with `α = γ_now/γ_next`.
fn ddpm(now: &Level, next: &Level) -> Stage {
    // The quotient in log space, cut to 0…1, as the authors do.
    let alpha = (now.gamma.ln() - next.gamma.ln()).exp().clamp(0.0, 1.0);
    // With ε̃ put in, the brackets nearly cancel at t = 1; these forms do not.
    Stage {
        t: now.t,
        x_t: (alpha - now.gamma) / ((1.0 - now.gamma) * alpha.sqrt()),
        previous: 0.0,
        estimates: vec![now.alpha / alpha.sqrt() * (1.0 - alpha) / (1.0 - now.gamma)],
        noise: (1.0 - alpha).sqrt(),
    }
}

// DPM-Solver. Deviation: the paper cites the first DPM-Solver (Lu et al. 2022), which integrates the noise prediction; these are
// the same orders for the data prediction, of the same authors' DPM-Solver++. Order 1 is DDIM either way, but bits are clipped and
// γ(1) is 6e-9: in noise form the first step then multiplies by 1/√γ(1) ≈ 10⁴ what f32 has already rounded.

/// Order 1: `x_next = σ_next/σ_now·x − α_next·(e^{−h} − 1)·x̃₀`, `h = λ_next − λ_now`.
fn dpm_solver_1(now: &Level, next: &Level) -> Stage {
    let h = next.lambda - now.lambda;
    Stage {
        t: now.t,
        x_t: next.sigma / now.sigma,
        previous: 0.0,
        estimates: vec![-next.alpha * (-h).exp_m1()],
        noise: 0.0,
    }
}

/// Order 2: a half step of order 1, and then a whole one with the estimate made there.
fn dpm_solver_2(schedule: &Schedule, now: &Level, next: &Level) -> Vec<Stage> {
    const R: f64 = 0.5;
    let middle = now.towards(next, R, schedule);
    let whole = -next.alpha * (-(next.lambda - now.lambda)).exp_m1();
    let correction = whole / (2.0 * R);
    vec![
        dpm_solver_1(now, &middle),
        Stage {
            t: middle.t,
            x_t: next.sigma / now.sigma,
            previous: 0.0,
            estimates: vec![whole - correction, correction],
            noise: 0.0,
        },
    ]
}

/// Order 3: stages at a third and two thirds of the way.
fn dpm_solver_3(schedule: &Schedule, now: &Level, next: &Level) -> Vec<Stage> {
    const R1: f64 = 1.0 / 3.0;
    const R2: f64 = 2.0 / 3.0;
    let h = next.lambda - now.lambda;
    let (first, second) = (now.towards(next, R1, schedule), now.towards(next, R2, schedule));
    // φ₂ of a stretch, (e^{−h} − 1)/h + 1; where that is a difference of two equal numbers, its series.
    let phi_2 = |h: f64| if h < 1e-5 { h / 2.0 - h * h / 6.0 } else { (-h).exp_m1() / h + 1.0 };
    let second_whole = -second.alpha * (-R2 * h).exp_m1();
    let second_correction = R2 / R1 * second.alpha * phi_2(R2 * h);
    let whole = -next.alpha * (-h).exp_m1();
    let correction = next.alpha * phi_2(h) / R2;
    vec![
        dpm_solver_1(now, &first),
        Stage {
            t: first.t,
            x_t: second.sigma / now.sigma,
            previous: 0.0,
            estimates: vec![second_whole - second_correction, second_correction],
            noise: 0.0,
        },
        Stage {
            t: second.t,
            x_t: next.sigma / now.sigma,
            previous: 0.0,
            estimates: vec![whole - correction, 0.0, correction],
            noise: 0.0,
        },
    ]
}

/// Order 2 by extrapolating from the estimate of the step before.
fn dpm_solver_multistep_2(previous: &Level, now: &Level, next: &Level) -> Stage {
    let h = next.lambda - now.lambda;
    let ratio = (now.lambda - previous.lambda) / h;
    let whole = -next.alpha * (-h).exp_m1();
    let correction = whole / (2.0 * ratio);
    Stage {
        t: now.t,
        x_t: next.sigma / now.sigma,
        previous: -correction,
        estimates: vec![whole + correction],
        noise: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_1_is_ddim() {
        for schedule in Schedule::ALL {
            for (t_now, t_next) in [(1.0, 0.95), (0.6, 0.1), (0.05, 0.0)] {
                let ddim = plan(Sampler::Ddim, &schedule, t_now, t_next, None).remove(0);
                let dpm = plan(Sampler::DpmSolver1, &schedule, t_now, t_next, None).remove(0);
                assert!((ddim.x_t - dpm.x_t).abs() < 1e-12);
                assert!((ddim.estimates[0] - dpm.estimates[0]).abs() < 1e-9, "{schedule:?} {t_now}");
            }
        }
    }

    #[test]
    fn every_rule_keeps_a_state_that_is_already_known() {
        // If the estimate never changes, all deterministic rules are exact, and so all agree.
        for schedule in Schedule::ALL {
            for (t_now, t_next) in [(1.0, 0.95), (0.6, 0.1), (0.05, 0.0)] {
                let exact = plan(Sampler::Ddim, &schedule, t_now, t_next, None).remove(0);
                for sampler in [Sampler::DpmSolver2, Sampler::DpmSolver3, Sampler::DpmSolverMultistep2] {
                    let last = plan(sampler, &schedule, t_now, t_next, Some(t_now + 0.05)).pop().unwrap();
                    let total = last.previous + last.estimates.iter().sum::<f64>();
                    assert!((last.x_t - exact.x_t).abs() < 1e-12, "{sampler:?}");
                    assert!((total - exact.estimates[0]).abs() < 1e-9, "{sampler:?} {schedule:?} {t_now}");
                }
            }
        }
    }

    #[test]
    fn steps_too_small_for_the_schedule_stand_still() {
        // So flat at t = 1 that a millionth of the way changes γ by nothing at all.
        let flat = Schedule::CosineRange { start: 0.0, end: 1.0, tau: 3.0 };
        flat.validate().unwrap();
        for sampler in Sampler::ALL {
            for stage in plan(sampler, &flat, 1.0, 1.0 - 1e-6, None) {
                assert!((stage.x_t - 1.0).abs() < 1e-9, "{sampler:?}: {stage:?}");
                assert!(stage.estimates.iter().all(|c| c.abs() < 1e-9), "{sampler:?}: {stage:?}");
            }
        }
    }

    #[test]
    fn ddpm_keeps_the_marginal_variance_of_pure_noise() {
        // For data at 0 the state stays Gaussian: variance 1−γ before must give variance 1−γ after.
        let schedule = Schedule::default();
        for (t_now, t_next) in [(1.0, 0.99), (0.5, 0.49)] {
            let step = plan(Sampler::Ddpm, &schedule, t_now, t_next, None).remove(0);
            let before = 1.0 - schedule.gamma(t_now);
            let after = step.x_t.powi(2) * before + step.noise.powi(2);
            // Algorithm 4 uses the larger of the two usual variances, so a little too much, the less the smaller the step.
            let expected = 1.0 - schedule.gamma(t_next);
            assert!(after >= expected - 1e-9 && after < expected + 0.05, "{t_now}: {after} against {expected}");
        }
    }
}
