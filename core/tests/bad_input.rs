//! Numbers and shapes that make no sense: a typed error that names the argument, its value and what is allowed; never a panic.

use std::ops::ControlFlow;

use bit_diffusion::{
    Error,
    bits::{Codec, Encoding},
    model::{Bernoulli, Condition, Denoiser, ExactDenoiser},
    objective::Objective,
    rng::Rng,
    sampler::{Chain, Sampler, Settings, State},
    schedule::Schedule,
    self_cond::SelfCond,
    train::Draw,
};
use burn::tensor::{Device, Tensor};
use proptest::prelude::*;

fn state(shape: [usize; 2]) -> State<2> {
    State::from_seed(shape, 1, &Device::flex())
}

fn start(settings: Settings) -> Result<Chain<2>, Error> {
    Chain::new(settings, Condition::None, state([2, 3]))
}

/// The message names the argument and shows its value.
#[track_caller]
fn assert_names<T>(result: Result<T, Error>, argument: &str, value: &str) {
    let Err(error) = result else {
        panic!("{argument} = {value} was accepted");
    };
    let message = error.to_string();
    assert!(message.contains(argument) && message.contains(value), "{message}");
    assert!(message.contains("must "), "the cure is missing: {message}");
}

#[test]
fn alphabets() {
    for encoding in Encoding::ALL {
        assert_names(Codec::new(encoding, 0, 1.0), "alphabet size K", "0");
        assert_names(Codec::new(encoding, 1, 1.0), "alphabet size K", "1");
        assert_names(Codec::new(encoding, usize::MAX, 1.0), "alphabet size K", &usize::MAX.to_string());
        assert_names(Codec::new(encoding, 4, f64::NAN), "scale b", "NaN");
        assert_names(Codec::new(encoding, 4, -1.0), "scale b", "-1");
        let codec = Codec::new(encoding, 4, 1.0).unwrap();
        assert_names(codec.encode(&[0, 4]), "symbol", "4");
        assert_names(codec.encode_tensor(&[0, 9], [1, 2], &Device::flex()), "symbol", "9");
        assert_names(codec.encode_tensor(&[0, 1], [1, 3], &Device::flex()), "symbols", "[1, 3]");
        if codec.bits_per_symbol() > 1 {
            assert_names(codec.decode(&[0.0; 5]), "analog bits", "[5]");
            assert_names(codec.decode_tensor(Tensor::<2>::zeros([1, 5], &Device::flex())), "analog bits", "[1, 5]");
        }
        assert_names(codec.expected_bits(Tensor::<2>::zeros([1, 5], &Device::flex())), "logits", "[1, 5]");
    }
}

#[test]
fn settings() {
    let plain = Settings::default();
    assert_names(start(Settings { n_steps: 0, ..plain }), "steps", "0");
    assert_names(start(Settings { td: -0.5, ..plain }), "td", "-0.5");
    assert_names(start(Settings { td: f64::NAN, ..plain }), "td", "NaN");
    assert_names(start(Settings { td: f64::INFINITY, ..plain }), "td", "inf");
    assert_names(start(Settings { guidance: f64::NAN, ..plain }), "guidance", "NaN");
    for momentum in [-0.1, 1.0, f64::NAN] {
        let self_cond = SelfCond::Momentum { momentum };
        assert_names(start(Settings { self_cond, ..plain }), "momentum", &momentum.to_string());
    }
    let self_cond = SelfCond::SelfGuidance { weight: f64::INFINITY };
    assert_names(start(Settings { self_cond, ..plain }), "self-guidance weight", "inf");
    let schedule = Schedule::Cosine { ns: f64::NAN, ds: 0.1 };
    assert_names(start(Settings { schedule, ..plain }), "schedule ns", "NaN");
}

#[test]
fn resumed_states() {
    let denoiser = ExactDenoiser::new(Tensor::<2>::ones([1, 3], &Device::flex()), 1.0).unwrap();
    let resume = |state| Chain::new(Settings::default(), Condition::None, state);
    // Of another picture size than the denoiser's.
    assert_names(resume(state([2, 4])).unwrap().step(&denoiser), "state", "[2, 4]");
    assert_names(resume(state([0, 3])).unwrap().step(&denoiser), "state", "[0, 3]");
    // Put together from two chains.
    let mut mixed = state([2, 3]);
    mixed.memory = state([1, 3]).memory;
    assert_names(resume(mixed), "last estimate", "[1, 3]");
    for position in [-1.0, 2.0, f64::NAN] {
        assert_names(resume(State { position, ..state([2, 3]) }), "position", &position.to_string());
    }
    assert_names(resume(State { n_steps: 0, ..state([2, 3]) }), "position", "0 of 0");
}

#[test]
fn conditions() {
    let points = Tensor::<2>::ones([2, 3], &Device::flex());
    let plain = ExactDenoiser::new(points, 1.0).unwrap();
    assert_names(plain.clone().with_classes(vec![0]), "classes", "[1]");
    assert_names(plain.clone().with_trust(f64::NAN), "trust", "NaN");
    let two = Condition::Classes(vec![Some(0), Some(7)]);
    assert_names(Chain::new(Settings::default(), two.clone(), state([3, 3])), "classes", "[2]");
    assert_names(plain.accepts([2, 3], &two), "class", "given");
    let with_classes = plain.with_classes(vec![0, 1]).unwrap();
    assert_names(with_classes.accepts([2, 3], &two), "class", "7");
    assert_names(ExactDenoiser::new(Tensor::<2>::ones([0, 3], &Device::flex()), 1.0), "data points", "[0, 3]");
    assert_names(Bernoulli::new(1.0), "probability p", "1");
    assert_names(Bernoulli::new(f64::NAN), "probability p", "NaN");
    assert_names(Bernoulli::new(0.5).unwrap().accepts([2, 2], &Condition::None), "state", "[2, 2]");
}

#[test]
fn training() {
    let x_0 = Tensor::<2>::ones([2, 3], &Device::flex());
    for share in [-0.1, 1.5, f64::NAN] {
        let draw = Draw::new(&x_0, &Schedule::default(), share, &mut Rng::new(1));
        assert_names(draw, "self-conditioning share", &share.to_string());
    }
    let denoiser = ExactDenoiser::new(x_0.clone(), 1.0).unwrap();
    let mut draw = Draw::new(&x_0, &Schedule::default(), 0.5, &mut Rng::new(1)).unwrap();
    let loss = |draw: &Draw<2>| bit_diffusion::train::loss(&denoiser, x_0.clone(), &Condition::None, draw, None);
    draw.n_self_cond = 3;
    assert_names(loss(&draw), "self-conditioned examples", "3");
    draw.gamma.pop();
    assert_names(loss(&draw), "noise levels", "[1]");
    draw.eps = Tensor::zeros([1, 3], &Device::flex());
    assert_names(loss(&draw), "training noise", "[1, 3]");
    assert_names(Objective { scale: 0.0, ..Objective::default() }.validate(), "scale b", "0");
}

fn any_self_cond() -> impl Strategy<Value = SelfCond> {
    prop_oneof![
        Just(SelfCond::Off),
        Just(SelfCond::Previous),
        any::<f64>().prop_map(|momentum| SelfCond::Momentum { momentum }),
        (-200.0..200.0).prop_map(|weight| SelfCond::SelfGuidance { weight }),
    ]
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        (any::<f64>(), any::<f64>()).prop_map(|(ns, ds)| Schedule::Cosine { ns, ds }),
        (0.0..0.01, 0.0..0.02).prop_map(|(ns, ds)| Schedule::Cosine { ns, ds }),
        (-0.5..1.5, -0.5..1.5, 0.0..4.0).prop_map(|(start, end, tau)| Schedule::CosineRange { start, end, tau }),
        (-20.0..20.0, -20.0..20.0, 0.0..25.0).prop_map(|(start, end, tau)| Schedule::Sigmoid { start, end, tau }),
        Just(Schedule::Linear),
    ]
}

proptest! {
    /// Whatever the numbers: an error or a finite sample, never a panic.
    #[test]
    fn any_settings_give_an_error_or_a_sample(
        n_steps in 0_usize..6,
        td in prop_oneof![any::<f64>(), 0.0..10.0],
        sampler in prop::sample::select(Sampler::ALL.to_vec()),
        self_cond in any_self_cond(),
        guidance in prop_oneof![any::<f64>(), 0.0..5.0],
        schedule in any_schedule(),
        position in prop_oneof![Just(0.0), any::<f64>(), 0.0..1.0],
    ) {
        let settings = Settings { n_steps, td, sampler, self_cond, guidance, schedule };
        let points = Tensor::<2>::from_floats([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]], &Device::flex());
        let denoiser = ExactDenoiser::new(points, 1.0).unwrap().with_classes(vec![0, 1]).unwrap();
        let condition = Condition::Classes(vec![Some(0), None]);
        let state = State { position, ..state([2, 3]) };
        if let Ok(mut chain) = Chain::new(settings, condition, state) {
            let x_pred = chain.run(&denoiser, |_| ControlFlow::Continue(())).unwrap();
            let values: Vec<f32> = x_pred.into_data().try_to_vec().unwrap();
            prop_assert!(values.iter().all(|v| v.abs() <= 1.0), "{values:?}");
        }
    }

    /// A schedule that is accepted falls strictly.
    #[test]
    fn an_accepted_schedule_falls(schedule in any_schedule(), a in 0.0..1.0, b in 0.0..1.0) {
        if schedule.validate().is_ok() {
            let (early, late): (f64, f64) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(schedule.gamma(early).is_finite() && schedule.gamma(late).is_finite());
            prop_assert!(schedule.gamma(early) <= 1.0 && schedule.gamma(late) >= 0.0);
            if late - early > 1e-3 {
                prop_assert!(schedule.gamma(early) > schedule.gamma(late), "{schedule:?} at {early} and {late}");
            }
        }
    }
}
