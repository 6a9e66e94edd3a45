//! What a network predicts, how that becomes an estimate of the data, and the loss it is trained with.

use burn::tensor::{
    Tensor, TensorData,
    activation::{log_sigmoid, log_softmax, sigmoid, softmax},
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, check_number};

/// What the network's output stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Prediction {
    /// The clean data x₀: the paper's choice for analog bits.
    #[default]
    X0,
    /// The noise ε.
    Eps,
}

impl Prediction {
    /// Every prediction.
    pub const ALL: [Self; 2] = [Self::X0, Self::Eps];

    /// The prediction's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::X0 => "data x₀",
            Self::Eps => "noise ε",
        }
    }
}

/// How the output is compared with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Loss {
    /// The squared difference, eq. 2.
    #[default]
    L2,
    /// Each bit as a yes-or-no question: −log σ(x₀·f), appendix B.2.
    SigmoidCrossEntropy,
    /// Each one-hot symbol as a choice of one in K: −x₀·log softmax(f), appendix B.3.
    SoftmaxCrossEntropy,
}

impl Loss {
    /// Every loss.
    pub const ALL: [Self; 3] = [Self::L2, Self::SigmoidCrossEntropy, Self::SoftmaxCrossEntropy];

    /// The loss's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::L2 => "squared error ℓ₂",
            Self::SigmoidCrossEntropy => "sigmoid cross-entropy",
            Self::SoftmaxCrossEntropy => "softmax cross-entropy",
        }
    }
}

/// The contract between a network's raw output and everybody else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// What the output stands for.
    pub prediction: Prediction,
    /// How it is trained.
    pub loss: Loss,
    /// The paper's b: the data lie within ±`scale`, and estimates are clipped to it.
    pub scale: f64,
    /// How many numbers one symbol takes (K for one-hot); only the softmax loss needs it.
    pub bits_per_symbol: usize,
}

impl Default for Objective {
    /// x₀ by ℓ₂ on ±1: the paper's main setting.
    fn default() -> Self {
        Self { prediction: Prediction::X0, loss: Loss::L2, scale: 1.0, bits_per_symbol: 1 }
    }
}

impl Objective {
    /// Checks that the parts fit together.
    pub fn validate(&self) -> Result<(), Error> {
        check_number("scale b", self.scale, |b| (1e-3..=1e3).contains(&b), "a number from 0.001 to 1000")?;
        if self.prediction == Prediction::Eps && self.loss != Loss::L2 {
            return Err(Error::argument(
                "loss",
                self.loss.label(),
                "the squared error when noise is predicted: noise is not made of bits",
            ));
        }
        if self.loss == Loss::SoftmaxCrossEntropy && self.bits_per_symbol < 2 {
            return Err(Error::argument(
                "bits per symbol",
                self.bits_per_symbol,
                "K, at least 2, for the softmax cross-entropy",
            ));
        }
        Ok(())
    }

    /// The estimate x̃₀ that a raw output stands for, not yet clipped.
    ///
    /// The output itself, or for ε-prediction `(x_t − √(1−γ)·f)/√γ`, for the sigmoid loss `(2σ(f) − 1)·b`, for the softmax
    /// loss `(2·softmax(f) − 1)·b`.
    ///
    /// # Shapes
    /// - `output`, `x_t`: `[b, c, …]`; `gamma`: b numbers
    #[must_use]
    pub fn estimate<const D: usize>(&self, output: Tensor<D>, x_t: Tensor<D>, gamma: &[f64]) -> Tensor<D> {
        match (self.prediction, self.loss) {
            (Prediction::Eps, _) => x_0_from_eps(output, x_t, gamma),
            (Prediction::X0, Loss::L2) => output,
            (Prediction::X0, Loss::SigmoidCrossEntropy) => self.bit_of_probability(sigmoid(output)),
            (Prediction::X0, Loss::SoftmaxCrossEntropy) => {
                let shape = output.dims();
                let probabilities = softmax(self.by_symbol(output), 1);
                self.bit_of_probability(probabilities.reshape(shape))
            }
        }
    }

    /// The loss of a raw output, averaged over all elements.
    ///
    /// # Shapes
    /// - `output`, `x_0`, `eps`: `[b, c, …]`; result: `[1]`
    #[must_use]
    pub fn loss<const D: usize>(&self, output: Tensor<D>, x_0: Tensor<D>, eps: Tensor<D>) -> Tensor<1> {
        self.losses(output, x_0, eps).mean()
    }

    /// The share of each element in [`Self::loss`], which is their mean.
    ///
    /// # Shapes
    /// - `output`, `x_0`, `eps` and result: `[b, c, …]`
    #[must_use]
    pub fn losses<const D: usize>(&self, output: Tensor<D>, x_0: Tensor<D>, eps: Tensor<D>) -> Tensor<D> {
        match (self.prediction, self.loss) {
            (Prediction::Eps, _) => (output - eps).square(),
            (Prediction::X0, Loss::L2) => (output - x_0).square(),
            // The paper's text leaves out the minus sign.
            (Prediction::X0, Loss::SigmoidCrossEntropy) => log_sigmoid(x_0.div_scalar(self.scale) * output).neg(),
            (Prediction::X0, Loss::SoftmaxCrossEntropy) => {
                // x₀ from ±b to {0, 1}; the mean runs over symbols, of which each has K numbers.
                let shape = output.dims();
                let one_hot = self.by_symbol(x_0).div_scalar(2.0 * self.scale).add_scalar(0.5);
                let log_probabilities = log_softmax(self.by_symbol(output), 1);
                (one_hot * log_probabilities).mul_scalar(-(self.bits_per_symbol as f64)).reshape(shape)
            }
        }
    }

    /// A probability of the high value, as an analog bit.
    fn bit_of_probability<const D: usize>(&self, probability: Tensor<D>) -> Tensor<D> {
        probability.mul_scalar(2.0 * self.scale).sub_scalar(self.scale)
    }

    /// `[b, c·K, …]` → `[b·c, K, rest]`.
    fn by_symbol<const D: usize>(&self, bits: Tensor<D>) -> Tensor<3> {
        let shape = bits.dims();
        let k = self.bits_per_symbol;
        assert!(shape[1].is_multiple_of(k), "{shape:?} does not hold whole symbols of {k} along dimension 1");
        bits.reshape([shape[0] * shape[1] / k, k, shape[2..].iter().product()])
    }
}

/// Mixes data with noise: `x_t = √γ·x₀ + √(1−γ)·ε`, eq. 1.
///
/// # Shapes
/// - `x_0`, `eps`: `[b, …]`; `gamma`: b numbers
#[must_use]
pub fn corrupt<const D: usize>(x_0: Tensor<D>, eps: Tensor<D>, gamma: &[f64]) -> Tensor<D> {
    let signal = per_example(gamma, f64::sqrt, &x_0);
    let noise = per_example(gamma, |gamma| (1.0 - gamma).sqrt(), &x_0);
    x_0 * signal + eps * noise
}

/// The data that noise `eps` in `x_t` implies: `x₀ = (x_t − √(1−γ)·ε)/√γ`.
#[must_use]
pub fn x_0_from_eps<const D: usize>(eps: Tensor<D>, x_t: Tensor<D>, gamma: &[f64]) -> Tensor<D> {
    let a = per_example(gamma, |gamma| gamma.sqrt().recip(), &x_t);
    let b = per_example(gamma, |gamma| ((1.0 - gamma) / gamma).sqrt(), &x_t);
    x_t * a - eps * b
}

/// The noise that data `x_0` in `x_t` imply: `ε = (x_t − √γ·x₀)/√(1−γ)`.
#[must_use]
pub fn eps_from_x_0<const D: usize>(x_0: Tensor<D>, x_t: Tensor<D>, gamma: &[f64]) -> Tensor<D> {
    let a = per_example(gamma, |gamma| (1.0 - gamma).sqrt().recip(), &x_t);
    let b = per_example(gamma, |gamma| (gamma / (1.0 - gamma)).sqrt(), &x_t);
    x_t * a - x_0 * b
}

/// A coefficient for each example, worked out in f64 and shaped `[b, 1, …]`, on the device of `like`.
pub(crate) fn per_example<const D: usize>(
    gamma: &[f64],
    coefficient: impl Fn(f64) -> f64,
    like: &Tensor<D>,
) -> Tensor<D> {
    assert_eq!(gamma.len(), like.dims()[0], "one noise level for each example");
    let mut shape = [1; D];
    shape[0] = gamma.len();
    let values: Vec<f32> = gamma.iter().map(|&gamma| coefficient(gamma) as f32).collect();
    Tensor::from_data(TensorData::new(values, shape), &like.device())
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn tensor(values: &[f32]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), [1, values.len()]), &Device::flex())
    }

    fn close<const D: usize>(a: Tensor<D>, b: &[f32]) -> bool {
        let a = a.into_data().try_to_vec::<f32>().unwrap();
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn noise_and_data_convert_both_ways() {
        let (x_0, eps, gamma) = (tensor(&[1.0, -1.0]), tensor(&[0.3, 2.0]), [0.36]);
        let x_t = corrupt(x_0.clone(), eps.clone(), &gamma);
        assert!(close(x_t.clone(), &[0.6 + 0.24, -0.6 + 1.6]));
        assert!(close(x_0_from_eps(eps, x_t.clone(), &gamma), &[1.0, -1.0]));
        assert!(close(eps_from_x_0(x_0, x_t, &gamma), &[0.3, 2.0]));
    }

    #[test]
    fn sigmoid_cross_entropy_by_hand() {
        let objective = Objective { loss: Loss::SigmoidCrossEntropy, scale: 2.0, ..Objective::default() };
        // x₀ = +b with logit 0 costs ln 2; x₀ = −b with logit 30 costs 30.
        let loss = objective.loss(tensor(&[0.0, 30.0]), tensor(&[2.0, -2.0]), tensor(&[0.0, 0.0]));
        assert!(close(loss, &[0.5 * std::f32::consts::LN_2 + 15.0]));
        let estimate = objective.estimate(tensor(&[0.0, 30.0]), tensor(&[0.0, 0.0]), &[0.5]);
        assert!(close(estimate, &[0.0, 2.0]));
    }

    #[test]
    fn softmax_cross_entropy_by_hand() {
        let objective = Objective { loss: Loss::SoftmaxCrossEntropy, bits_per_symbol: 2, ..Objective::default() };
        // Two symbols of K = 2. Logits (0, 0) for class 0 cost ln 2; logits (0, 30) for class 1 cost nothing.
        let output = tensor(&[0.0, 0.0, 0.0, 30.0]);
        let x_0 = tensor(&[1.0, -1.0, -1.0, 1.0]);
        let loss = objective.loss(output.clone(), x_0, tensor(&[0.0; 4]));
        assert!(close(loss, &[std::f32::consts::LN_2 / 2.0]));
        let estimate = objective.estimate(output, tensor(&[0.0; 4]), &[0.5]);
        assert!(close(estimate, &[0.0, 0.0, -1.0, 1.0]));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let noise_as_bits =
            Objective { prediction: Prediction::Eps, loss: Loss::SigmoidCrossEntropy, ..Objective::default() };
        let softmax_of_one = Objective { loss: Loss::SoftmaxCrossEntropy, ..Objective::default() };
        let no_scale = Objective { scale: f64::NAN, ..Objective::default() };
        for objective in [noise_as_bits, softmax_of_one, no_scale] {
            assert!(objective.validate().is_err(), "{objective:?}");
        }
    }
}
