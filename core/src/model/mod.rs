//! Denoisers: whatever can guess the clean data from a noisy state.
//!
//! [`Denoiser`] is the one open trait of this crate, the contract between networks and samplers. Samplers know nothing of a
//! network's inside; a denoiser is told the noise level γ and never sees a schedule.
//!
//! [`features`] has networks of another kind, which look at finished pictures.

mod bernoulli;
mod captioner;
mod exact;
pub mod features;
mod layers;
pub(crate) mod parameters;
mod unet;

use burn::tensor::Tensor;

pub use bernoulli::Bernoulli;
pub use captioner::{Captioner, CaptionerConfig, CaptionerLayers, Eye, Method, Padding, View, Writing, Written};
pub use exact::ExactDenoiser;
pub use unet::{Layers, Output, UNet, UNetConfig};

use crate::{Error, objective::Objective};

/// What a sample is asked to show.
#[derive(Debug, Clone, Default)]
pub enum Condition {
    /// Nothing in particular.
    #[default]
    None,
    /// A class for each example of the batch; `None` is the null label, "any class".
    Classes(Vec<Option<usize>>),
    /// A picture for each example of the batch, see [`Self::picture`].
    Picture(Box<View>),
}

impl Condition {
    /// A picture for each example, as tokens `[b, n, width]`: see [`Captioner::look`].
    #[must_use]
    pub fn picture(tokens: Tensor<3>) -> Self {
        Self::Picture(Box::new(View::new(tokens)))
    }

    /// The same number of examples with nothing asked of them: the null label of classifier-free guidance.
    #[must_use]
    pub fn null(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Classes(classes) => Self::Classes(vec![None; classes.len()]),
            Self::Picture(picture) => Self::picture(picture.tokens().zeros_like()),
        }
    }

    /// What is asked of `n` of the examples, from one on.
    #[must_use]
    pub fn narrow(&self, from: usize, n: usize) -> Self {
        match self {
            Self::None => Self::None,
            Self::Classes(classes) => Self::Classes(classes[from..from + n].to_vec()),
            Self::Picture(picture) => Self::Picture(Box::new(picture.map(|tensor| tensor.narrow(0, from, n)))),
        }
    }

    /// What is asked of all examples, `n` times one after the other.
    #[must_use]
    pub fn repeat(&self, n: usize) -> Self {
        match self {
            Self::None => Self::None,
            Self::Classes(classes) => Self::Classes(classes.repeat(n)),
            Self::Picture(picture) => Self::Picture(Box::new(picture.map(|tensor| tensor.repeat_dim(0, n)))),
        }
    }

    /// What is asked of these examples, and then of others of the same kind.
    #[must_use]
    pub fn and(self, others: &Self) -> Self {
        match (self, others) {
            (Self::Classes(classes), Self::Classes(more)) => Self::Classes([classes, more.clone()].concat()),
            (Self::Picture(picture), Self::Picture(more)) => Self::Picture(Box::new(picture.and(more))),
            (Self::None, Self::None) => Self::None,
            (one, other) => panic!("{one:?} and {other:?} are not asked of the same network"),
        }
    }

    /// `Ok` if there is one entry for each of `batch` examples.
    pub fn validate(&self, batch: usize) -> Result<(), Error> {
        match self {
            Self::Classes(classes) if classes.len() != batch => {
                Err(Error::shape("classes", &[classes.len()], format!("one class for each of {batch} examples")))
            }
            Self::Picture(picture) if picture.tokens().dims()[0] != batch => {
                let expected = format!("one picture for each of {batch} examples");
                Err(Error::shape("pictures", &picture.tokens().dims(), expected))
            }
            Self::None | Self::Classes(_) | Self::Picture(_) => Ok(()),
        }
    }
}

/// What a denoiser is given.
#[derive(Debug, Clone)]
pub struct Input<'a, const D: usize> {
    /// The noisy state, `[b, c, …]`.
    pub x_t: Tensor<D>,
    /// Self-conditioning: the denoiser's own earlier estimate, or zeros; `[b, c, …]`.
    pub x_pred: Tensor<D>,
    /// The noise level of each example: 1 is clean, 0 is pure noise.
    pub gamma: &'a [f64],
    /// What the sample is asked to show.
    pub condition: &'a Condition,
}

impl<const D: usize> Input<'_, D> {
    /// Runs `work` on the same input without the gradients that it has.
    fn without_gradients(&self, work: impl FnOnce(Input<'_, D>) -> Tensor<D>) -> Tensor<D> {
        let condition = match self.condition {
            Condition::Picture(picture) if picture.tokens().is_autodiff() => {
                Condition::Picture(Box::new(picture.map(Tensor::inner)))
            }
            condition => condition.clone(),
        };
        let (x_t, x_pred) = (self.x_t.clone().inner(), self.x_pred.clone().inner());
        Tensor::from_inner(work(Input { x_t, x_pred, gamma: self.gamma, condition: &condition }))
    }
}

/// Guesses clean data from a noisy state: the paper's `f(x_t, x̃₀, t)`.
pub trait Denoiser<const D: usize> {
    /// The raw output, of the shape of `x_t`; [`Self::objective`] says what it stands for.
    fn forward(&self, input: Input<'_, D>) -> Tensor<D>;

    /// What the raw output stands for.
    fn objective(&self) -> Objective {
        Objective::default()
    }

    /// The share of each element in the training loss, which is their mean: the raw output compared with the data `x_0`, or with the
    /// noise `eps` in them.
    ///
    /// # Shapes
    /// - `x_0`, `eps` and result: `[b, c, …]`, as `x_t`
    fn losses(&self, input: Input<'_, D>, x_0: Tensor<D>, eps: Tensor<D>) -> Tensor<D> {
        self.objective().losses(self.forward(input), x_0, eps)
    }

    /// The same condition, with all worked out that does not depend on the state: once for a chain, and once for all that a training step asks. Only this
    /// denoiser, as it is now, is to be given it.
    fn prepare(&self, condition: Condition) -> Condition {
        condition
    }

    /// `Ok` if states of this shape and this condition can be denoised.
    fn accepts(&self, shape: [usize; D], condition: &Condition) -> Result<(), Error>;

    /// The estimate x̃₀ of the clean data, not yet clipped.
    fn estimate(&self, input: Input<'_, D>) -> Tensor<D> {
        let (x_t, gamma) = (input.x_t.clone(), input.gamma);
        self.objective().estimate(self.forward(input), x_t, gamma)
    }

    /// The same denoiser without gradients, which need not keep what those would need; `None` where there is none, or where it would estimate
    /// something else.
    fn without_gradients(&self) -> Option<Box<dyn Denoiser<D>>> {
        None
    }

    /// The same estimate without its gradient.
    fn estimate_detached(&self, input: Input<'_, D>) -> Tensor<D> {
        let has_gradients = input.x_t.is_autodiff();
        match has_gradients.then(|| self.without_gradients()).flatten() {
            Some(plain) => input.without_gradients(|input| plain.estimate(input)),
            None => self.estimate(input).detach(),
        }
    }
}
