//! The perfect denoiser of a finite data set, in closed form. No training: an oracle for every sampler.

use burn::tensor::{Tensor, TensorData, activation::softmax};

use super::{Condition, Denoiser, Input};
use crate::{
    Error,
    error::check_number,
    objective::{Objective, Prediction, per_example},
};

/// The best possible denoiser when the data are exactly these points, all equally likely.
///
/// `x̃₀ = Σᵢ wᵢ·xᵢ` with `w = softmax(−‖x_t − √γ·xᵢ‖² / 2(1−γ))`: the mean of the points given the noisy state.
///
/// With [`Self::with_trust`] it also listens to self-conditioning: an earlier estimate x̃₀ counts as a second, noisy look at the
/// data with precision β, which adds `−β‖x̃₀ − xᵢ‖²/2` inside the softmax. On analog bits, where all points have the same norm,
/// x̃₀ = 0 then means "no earlier estimate", just as for a trained network.
#[derive(Debug, Clone)]
pub struct ExactDenoiser<const D: usize> {
    /// `[m, d]`: the points, flattened.
    points: Tensor<2>,
    /// `‖xᵢ‖²`, `[1, m]`.
    squared_norms: Tensor<2>,
    /// The class of each point, if they have one.
    classes: Option<Vec<usize>>,
    /// `[c, …]`, the shape of one point, as the dimensions 1… of a batch.
    point_shape: [usize; D],
    scale: f64,
    trust: f64,
}

impl<const D: usize> ExactDenoiser<D> {
    /// The denoiser of `points`, `[m, c, …]`, whose values lie within ±`scale`.
    pub fn new(points: Tensor<D>, scale: f64) -> Result<Self, Error> {
        let shape = points.dims();
        if shape.contains(&0) {
            return Err(Error::shape("data points", &shape, "at least one point of at least one value"));
        }
        Objective { scale, ..Objective::default() }.validate()?;
        let points = points.reshape([shape[0], shape[1..].iter().product()]);
        Ok(Self {
            squared_norms: points.clone().square().sum_dim(1).transpose(),
            points,
            classes: None,
            point_shape: shape,
            scale,
            trust: 0.0,
        })
    }

    /// The same with a class for each point.
    pub fn with_classes(mut self, classes: Vec<usize>) -> Result<Self, Error> {
        let n_points = self.point_shape[0];
        if classes.len() != n_points {
            return Err(Error::shape("classes", &[classes.len()], format!("one class for each of {n_points} points")));
        }
        self.classes = Some(classes);
        Ok(self)
    }

    /// The same, trusting an earlier estimate with precision `trust` (β; 0 ignores it).
    pub fn with_trust(mut self, trust: f64) -> Result<Self, Error> {
        check_number("trust β", trust, |v| (0.0..=1e3).contains(&v), "a number from 0 to 1000")?;
        self.trust = trust;
        Ok(self)
    }

    /// `[b, m]`: 0 where a point may be shown, a large negative number where its class is not the one asked for.
    fn class_mask(&self, condition: &Condition) -> Option<Tensor<2>> {
        let (Condition::Classes(asked), Some(classes)) = (condition, &self.classes) else {
            return None;
        };
        let mask: Vec<f32> = asked
            .iter()
            .flat_map(|asked| {
                classes.iter().map(move |class| if asked.is_none_or(|a| a == *class) { 0.0 } else { -1e30 })
            })
            .collect();
        Some(Tensor::from_data(TensorData::new(mask, [asked.len(), classes.len()]), &self.points.device()))
    }
}

impl<const D: usize> Denoiser<D> for ExactDenoiser<D> {
    fn forward(&self, input: Input<'_, D>) -> Tensor<D> {
        let Input { x_t, x_pred, gamma, condition } = input;
        let shape = x_t.dims();
        let flat = [shape[0], self.points.dims()[1]];
        let x_t = x_t.reshape(flat);
        // −‖x_t − √γ·xᵢ‖²/2(1−γ) without the term that is the same for every i.
        let to_points = self.points.clone().transpose();
        let seen = per_example(gamma, |gamma| gamma.sqrt() / (1.0 - gamma), &x_t);
        let norms = per_example(gamma, |gamma| gamma / (2.0 * (1.0 - gamma)), &x_t);
        let mut scores = (x_t * seen).matmul(to_points.clone()) - self.squared_norms.clone() * norms;
        if self.trust > 0.0 {
            scores = scores + x_pred.reshape(flat).mul_scalar(self.trust).matmul(to_points)
                - self.squared_norms.clone().mul_scalar(0.5 * self.trust);
        }
        if let Some(mask) = self.class_mask(condition) {
            scores = scores + mask;
        }
        softmax(scores, 1).matmul(self.points.clone()).reshape(shape)
    }

    fn objective(&self) -> Objective {
        Objective { prediction: Prediction::X0, scale: self.scale, ..Objective::default() }
    }

    fn accepts(&self, shape: [usize; D], condition: &Condition) -> Result<(), Error> {
        if shape[0] == 0 || shape[1..] != self.point_shape[1..] {
            let expected = format!("at least one example of shape {:?}", &self.point_shape[1..]);
            return Err(Error::shape("state", &shape, expected));
        }
        let Condition::Classes(asked) = condition else {
            return Ok(());
        };
        let Some(classes) = &self.classes else {
            return Err(Error::argument("class", "given", "left out: these data have no classes"));
        };
        match asked.iter().flatten().find(|asked| !classes.contains(asked)) {
            None => Ok(()),
            Some(asked) => Err(Error::argument("class", asked, "a class that some data point has")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn denoise(denoiser: &ExactDenoiser<2>, x_t: [f32; 2], gamma: f64, condition: &Condition) -> Vec<f32> {
        let x_t = Tensor::<2>::from_floats([x_t], &Device::flex());
        let x_pred = x_t.zeros_like();
        let input = Input { x_t, x_pred, gamma: &[gamma], condition };
        denoiser.estimate(input).into_data().try_to_vec().unwrap()
    }

    #[test]
    fn it_is_the_mean_of_the_points_given_the_state() {
        let points = Tensor::<2>::from_floats([[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0]], &Device::flex());
        let exact = ExactDenoiser::new(points, 1.0).unwrap().with_classes(vec![0, 0, 1]).unwrap();
        // No signal: the mean of all. Almost no noise: the nearest.
        let any = Condition::None;
        let mean = denoise(&exact, [0.5, 0.5], 1e-12, &any);
        assert!((mean[0] + 1.0 / 3.0).abs() < 1e-4 && (mean[1] - 1.0 / 3.0).abs() < 1e-4, "{mean:?}");
        assert_eq!(denoise(&exact, [-0.9, 0.8], 0.9999, &any), [-1.0, 1.0]);
        // One class has one point.
        assert_eq!(denoise(&exact, [0.5, 0.5], 0.5, &Condition::Classes(vec![Some(1)])), [-1.0, 1.0]);
        // Half signal: by hand, e^{x·xᵢ √γ/(1−γ)} with γ = 0.5.
        let at = |score: f32| (score * 0.5_f32.sqrt() / 0.5).exp();
        let (a, b, c) = (at(0.7), at(-0.7), at(0.1));
        let by_hand = [(a - b - c) / (a + b + c), (a - b + c) / (a + b + c)];
        let got = denoise(&exact, [0.3, 0.4], 0.5, &any);
        assert!(got.iter().zip(by_hand).all(|(g, w)| (g - w).abs() < 1e-5), "{got:?} {by_hand:?}");
    }
}
