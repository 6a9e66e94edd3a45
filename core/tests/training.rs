//! The training loss of Algorithm 1: its value by hand, and no gradient through the self-conditioning estimate.

use bit_diffusion::{
    Error,
    model::{Condition, Denoiser, Input},
    objective::{Objective, Prediction, corrupt},
    rng::Rng,
    schedule::Schedule,
    train::{Draw, loss},
};
use burn::tensor::{Device, Tensor, TensorData};

/// The smallest network there is: `f(x_t, x̃₀) = w·x_t + v·x̃₀`.
struct Linear {
    w: Tensor<1>,
    v: Tensor<1>,
    prediction: Prediction,
}

impl Linear {
    fn new(w: f32, v: f32, device: &Device) -> Self {
        let parameter = |value: f32| Tensor::<1>::from_floats([value], device);
        Self { w: parameter(w), v: parameter(v), prediction: Prediction::X0 }
    }
}

impl Denoiser<2> for Linear {
    fn forward(&self, input: Input<'_, 2>) -> Tensor<2> {
        input.x_t * self.w.clone().unsqueeze() + input.x_pred * self.v.clone().unsqueeze()
    }
    fn objective(&self) -> Objective {
        Objective { prediction: self.prediction, ..Objective::default() }
    }
    fn accepts(&self, _: [usize; 2], _: &Condition) -> Result<(), Error> {
        Ok(())
    }
}

const SHAPE: [usize; 2] = [4, 3];
const GAMMA: [f64; 4] = [0.9, 0.5, 0.2, 0.7];

fn data() -> (Vec<f32>, Vec<f32>) {
    let x_0 = Rng::new(1).normals(12).iter().map(|v| v.signum()).collect();
    (x_0, Rng::new(2).normals(12))
}

fn tensor(values: &[f32], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), SHAPE), device)
}

/// The loss in f64, with the estimates made by (`w_estimate`, v) and the prediction by (w, v).
fn loss_by_hand(w: f64, w_estimate: f64, v: f64, n_self_cond: usize, prediction: Prediction) -> f64 {
    let (x_0, eps) = data();
    let mut sum = 0.0;
    for i in 0..12 {
        let gamma: f64 = GAMMA[i / 3];
        let (x_0, eps) = (f64::from(x_0[i]), f64::from(eps[i]));
        let x_t = gamma.sqrt() * x_0 + (1.0 - gamma).sqrt() * eps;
        let output = w_estimate * x_t;
        let estimate = match prediction {
            Prediction::X0 => output,
            Prediction::Eps => (x_t - (1.0 - gamma).sqrt() * output) / gamma.sqrt(),
        };
        let x_pred = if i / 3 < n_self_cond { estimate.clamp(-1.0, 1.0) } else { 0.0 };
        let target = if prediction == Prediction::X0 { x_0 } else { eps };
        sum += (w * x_t + v * x_pred - target).powi(2);
    }
    sum / 12.0
}

fn draw(device: &Device, n_self_cond: usize) -> Draw<2> {
    Draw { eps: tensor(&data().1, device), gamma: GAMMA.to_vec(), n_self_cond }
}

#[test]
fn the_loss_by_hand() {
    let device = Device::flex();
    for prediction in Prediction::ALL {
        for n_self_cond in [0, 2, 4] {
            let net = Linear { prediction, ..Linear::new(0.4, 0.3, &device) };
            let x_0 = tensor(&data().0, &device);
            let value: f32 =
                loss(&net, x_0, &Condition::None, &draw(&device, n_self_cond), None).unwrap().into_scalar();
            let expected = loss_by_hand(0.4, 0.4, 0.3, n_self_cond, prediction);
            assert!((f64::from(value) - expected).abs() < 1e-6, "{prediction:?} {n_self_cond}: {value} {expected}");
        }
    }
}

#[test]
fn no_gradient_through_the_estimate() {
    let device = Device::flex().autodiff();
    let mut net = Linear::new(0.4, 0.3, &device);
    net.w = net.w.require_grad();
    let x_0 = tensor(&data().0, &device);
    let value = loss(&net, x_0, &Condition::None, &draw(&device, 4), None).unwrap();
    let gradient: f32 = net.w.grad(&value.backward()).expect("w is used").into_scalar();

    // Finite differences, the estimate held still; and, for comparison, the estimate moving along.
    let (h, n) = (1e-5, 4);
    let at = |w, w_estimate| loss_by_hand(w, w_estimate, 0.3, n, Prediction::X0);
    let held = (at(0.4 + h, 0.4) - at(0.4 - h, 0.4)) / (2.0 * h);
    let moving = (at(0.4 + h, 0.4 + h) - at(0.4 - h, 0.4 - h)) / (2.0 * h);
    assert!((f64::from(gradient) - held).abs() < 1e-5, "{gradient} against {held}");
    assert!((held - moving).abs() > 1e-2, "the two must differ, or this test shows nothing: {held} {moving}");
}

#[test]
fn draws_follow_the_seed_and_the_share() {
    let device = Device::flex();
    let x_0 = tensor(&data().0, &device);
    let schedule = Schedule::default();
    let draw = |share, seed| Draw::new(&x_0, &schedule, share, &mut Rng::new(seed)).unwrap();
    assert_eq!(draw(0.5, 3).gamma, draw(0.5, 3).gamma);
    assert_ne!(draw(0.5, 3).gamma, draw(0.5, 4).gamma);
    for seed in 0..20 {
        assert_eq!(draw(0.0, seed).n_self_cond, 0);
        assert_eq!(draw(0.5, seed).n_self_cond, 2);
        assert_eq!(draw(1.0, seed).n_self_cond, 4);
    }
    // 0.3 of 4 examples is 1.2: mostly 1, now and then 2.
    let total: usize = (0..1000).map(|seed| draw(0.3, seed).n_self_cond).sum();
    assert!((1100..1300).contains(&total), "{total}");
}

#[test]
fn corrupting_keeps_each_example_s_own_noise_level() {
    let device = Device::flex();
    let x_t = corrupt(Tensor::<2>::ones([2, 2], &device), Tensor::zeros([2, 2], &device), &[0.25, 1.0]);
    assert_eq!(x_t.into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5, 1.0, 1.0]);
}
