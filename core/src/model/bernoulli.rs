//! The paper's one-dimensional toy (appendix D): a single bit, modelled as a real number.

use burn::tensor::Tensor;
use libm::{erf, log, tanh};

use super::{Condition, Denoiser, Input};
use crate::{Error, bisect::bisect, error::check_number, objective::per_example};

/// One analog bit: x₀ = 1 with probability p, else −1. Everything about it is known in closed form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bernoulli {
    p: f64,
}

impl Bernoulli {
    /// The bit that is 1 with probability `p`.
    pub fn new(p: f64) -> Result<Self, Error> {
        check_number("probability p", p, |p| p > 0.0 && p < 1.0, "a number above 0 and below 1")?;
        Ok(Self { p })
    }

    /// The probability of a 1.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.p
    }

    /// The best estimate of the bit given its noisy value: `E[x₀ | x_t] = tanh(√γ·x_t/(1−γ) + ½ ln(p/(1−p)))`.
    #[must_use]
    pub fn denoise(&self, x_t: f64, gamma: f64) -> f64 {
        tanh(gamma.sqrt() * x_t / (1.0 - gamma) + 0.5 * log(self.p / (1.0 - self.p)))
    }

    /// The density of the noisy value at noise level `gamma`: two Gaussians around ±√γ.
    #[must_use]
    pub fn density(&self, x_t: f64, gamma: f64) -> f64 {
        let (centre, spread) = (gamma.sqrt(), (1.0 - gamma).sqrt());
        let bell = |z: f64| (-0.5 * z * z).exp() / (spread * std::f64::consts::TAU.sqrt());
        self.p * bell((x_t - centre) / spread) + (1.0 - self.p) * bell((x_t + centre) / spread)
    }

    /// The probability that the noisy value is at most `x_t`.
    #[must_use]
    pub fn cumulative(&self, x_t: f64, gamma: f64) -> f64 {
        let (centre, spread) = (gamma.sqrt(), (1.0 - gamma).sqrt());
        self.p * normal_cumulative((x_t - centre) / spread)
            + (1.0 - self.p) * normal_cumulative((x_t + centre) / spread)
    }

    /// Where the exact deterministic sampler carries a noise value: the noise→data map of the paper's figure.
    ///
    /// In one dimension the probability-flow equation, which DDIM follows, keeps the order of all values, so it keeps each
    /// one's quantile: the result is the value at `gamma` that has the quantile which `noise` has at `gamma_noise`.
    #[must_use]
    pub fn transport(&self, noise: f64, gamma_noise: f64, gamma: f64) -> f64 {
        let quantile = self.cumulative(noise, gamma_noise);
        bisect(-40.0, 40.0, |x| self.cumulative(x, gamma) < quantile)
    }

    /// The noise value that parts the bits: below it noise becomes −1, above it +1. Its normal probability is 1 − p.
    #[must_use]
    pub fn divide(&self) -> f64 {
        bisect(-40.0, 40.0, |x| normal_cumulative(x) < 1.0 - self.p)
    }
}

/// The standard normal distribution function.
fn normal_cumulative(z: f64) -> f64 {
    0.5 * (1.0 + erf(z / std::f64::consts::SQRT_2))
}

/// States are `[b, 1]`.
impl Denoiser<2> for Bernoulli {
    fn forward(&self, input: Input<'_, 2>) -> Tensor<2> {
        let slope = per_example(input.gamma, |gamma| gamma.sqrt() / (1.0 - gamma), &input.x_t);
        (input.x_t * slope + 0.5 * log(self.p / (1.0 - self.p))).tanh()
    }

    fn accepts(&self, shape: [usize; 2], condition: &Condition) -> Result<(), Error> {
        if shape[0] == 0 || shape[1] != 1 {
            return Err(Error::shape("state", &shape, "[b, 1], one bit for each example"));
        }
        match condition {
            Condition::None => Ok(()),
            Condition::Classes(_) | Condition::Picture(_) => {
                Err(Error::argument("condition", "given", "left out: a bit has neither classes nor pictures"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_from_the_density() {
        // Tweedie: E[x₀|x_t]·√γ = x_t + (1−γ)·d/dx ln density.
        let bit = Bernoulli::new(0.7).unwrap();
        for gamma in [0.1, 0.5, 0.9] {
            for x in [-1.5, -0.2, 0.0, 0.8] {
                let step = 1e-5;
                let slope = (bit.density(x + step, gamma).ln() - bit.density(x - step, gamma).ln()) / (2.0 * step);
                let tweedie = (x + (1.0 - gamma) * slope) / f64::sqrt(gamma);
                assert!((tweedie - bit.denoise(x, gamma)).abs() < 1e-6, "γ {gamma} x {x}");
            }
        }
    }

    #[test]
    fn transport_divides_the_noise_in_the_right_place() {
        let bit = Bernoulli::new(0.7).unwrap();
        assert!((normal_cumulative(bit.divide()) - 0.3).abs() < 1e-12);
        let end = |noise| bit.transport(noise, 1e-12, 1.0 - 1e-7);
        assert!((end(bit.divide() - 0.01) + 1.0).abs() < 0.01);
        assert!((end(bit.divide() + 0.01) - 1.0).abs() < 0.01);
    }
}
