//! The engine against an independent NumPy reference, `golden/reference.py`, whose results are in `golden/golden.json`.
//!
//! Tolerances: the reference is in f64, the engine's tensors are in f32 with a relative rounding of 6e-8 an operation. A step is a
//! handful of operations, so 1e-6 would do; a chain of 8 steps carries its rounding through a softmax whose slope reaches some
//! tens, and 1e-5 (absolute; all values are within ±5) leaves room for that and for little else.

use std::{collections::HashMap, ops::ControlFlow};

use bit_diffusion::{
    bits::{Codec, Encoding, hamming},
    model::{Condition, ExactDenoiser},
    rng::Rng,
    sampler::{Chain, Sampler, Settings, State, plan},
    schedule::Schedule,
    self_cond::SelfCond,
};
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    bits: HashMap<String, GoldenBits>,
    one_hot: OneHot,
    continuous: Vec<f32>,
    permutations: HashMap<usize, Vec<u32>>,
    grid: Vec<f64>,
    schedules: HashMap<String, Vec<f64>>,
    noise: Noise,
    data: Data,
    steps: Vec<OneStep>,
    chains: Vec<GoldenChain>,
}

#[derive(Deserialize)]
struct GoldenBits {
    codes: Vec<u32>,
    bits: Vec<String>,
    hamming_means: Vec<f64>,
    hamming_correlation: f64,
}

/// For each value, which of the 256 numbers is high, and how many are.
#[derive(Deserialize)]
struct OneHot {
    hot: Vec<usize>,
    rows: Vec<usize>,
}

#[derive(Deserialize)]
struct Noise {
    seed: u64,
    values: Vec<f32>,
    plain: Vec<f32>,
    z: Vec<f32>,
}

#[derive(Deserialize)]
struct Data {
    symbols: Vec<u32>,
    classes: Vec<usize>,
    trust: f64,
    n_steps: usize,
    batch: usize,
}

#[derive(Deserialize)]
struct OneStep {
    schedule: String,
    t_now: f64,
    t_next: f64,
    x_next: HashMap<String, Vec<f32>>,
}

#[derive(Deserialize)]
struct GoldenChain {
    sampler: Sampler,
    self_cond: String,
    parameter: f64,
    td: f64,
    guidance: f64,
    classes: Option<Vec<Option<usize>>>,
    x_half: Vec<f32>,
    x_t: Vec<f32>,
    x_pred: Vec<f32>,
    n_evaluations: usize,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/golden.json")).expect("reference.py writes what this test reads")
}

fn encoding(name: &str) -> Encoding {
    Encoding::ALL.into_iter().find(|encoding| format!("{encoding:?}") == name).unwrap()
}

fn schedule(name: &str) -> Schedule {
    Schedule::ALL.into_iter().find(|schedule| format!("{schedule:?}").split(' ').next() == Some(name)).unwrap()
}

fn values<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().try_to_vec().unwrap()
}

#[track_caller]
fn assert_close(got: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance, "{what}: element {i} is {g}, the reference has {e}");
    }
}

#[test]
fn codes_of_all_pixel_values() {
    let golden = golden();
    assert_eq!(golden.bits.len(), 3);
    for (name, expected) in &golden.bits {
        let codec = Codec::pixels(encoding(name));
        assert_eq!(codec.codes(), expected.codes, "{name}");
        for (value, bits) in expected.bits.iter().enumerate() {
            let encoded: String =
                codec.encode(&[value as u32]).unwrap().iter().map(|&bit| if bit > 0.0 { '1' } else { '0' }).collect();
            assert_eq!(&encoded, bits, "{name} of {value}");
        }
        let means: Vec<f64> = hamming::by_difference(&codec).map(|at| at.mean).collect();
        assert_eq!(means.len(), 255);
        assert!(means.iter().zip(&expected.hamming_means).all(|(a, b)| (a - b).abs() < 1e-8), "{name}");
        let correlation = hamming::correlation(&codec).unwrap();
        assert!((correlation - expected.hamming_correlation).abs() < 1e-9, "{name}: {correlation}");
    }
}

#[test]
fn encodings_that_are_no_code() {
    let golden = golden();
    let (one_hot, continuous) = (Codec::pixels(Encoding::OneHot), Codec::pixels(Encoding::Continuous));
    assert_eq!((golden.one_hot.hot.len(), golden.continuous.len()), (256, 256));
    for value in 0..256 {
        let bits = one_hot.encode(&[value as u32]).unwrap();
        assert_eq!(bits.iter().position(|&bit| bit > 0.0), Some(golden.one_hot.hot[value]));
        assert_eq!(bits.iter().filter(|&&bit| bit > 0.0).count(), golden.one_hot.rows[value]);
        assert!(bits.iter().all(|bit| (bit.abs() - 1.0).abs() < f32::EPSILON));
        assert_close(
            &continuous.encode(&[value as u32]).unwrap(),
            &golden.continuous[value..=value],
            1e-7,
            "continuous",
        );
    }
}

#[test]
fn permutations_are_numpy_s() {
    for (alphabet, expected) in golden().permutations {
        let codec = Codec::new(Encoding::Uint8Rand, alphabet, 1.0).unwrap();
        assert_eq!(codec.codes()[..expected.len()], expected, "K = {alphabet}");
    }
}

#[test]
fn gamma_on_a_grid() {
    let golden = golden();
    assert_eq!(golden.schedules.len(), Schedule::ALL.len());
    for (name, expected) in &golden.schedules {
        for (&t, &expected) in golden.grid.iter().zip(expected) {
            let gamma = schedule(name).gamma(t);
            // Both f64; the libraries' cosines may differ in their last bit.
            assert!((gamma - expected).abs() <= 1e-14, "{name} at {t}: {gamma} against {expected}");
        }
    }
}

#[test]
fn noise_of_a_seed() {
    let noise = golden().noise;
    // Rounded to f32 on both sides, written with 9 digits.
    let drawn = Rng::new(noise.seed).fork(0).normals(noise.values.len());
    assert_close(&drawn, &noise.values, 1e-7, "initial noise");
    assert_close(&Rng::new(8).normals(noise.plain.len()), &noise.plain, 1e-7, "plain stream");
}

#[test]
fn every_sampler_step() {
    let golden = golden();
    let (x_t, z) = (&golden.noise.values, &golden.noise.z);
    let x_pred: Vec<f64> = golden.noise.plain.iter().map(|&v| f64::from(v).clamp(-1.0, 1.0)).collect();
    assert_eq!(golden.steps.len(), 12);
    for step in &golden.steps {
        for sampler in Sampler::ALL {
            let t_before = step.t_now + 0.1;
            let previous = (t_before <= 1.0).then_some(t_before);
            let stages = plan(sampler, &schedule(&step.schedule), step.t_now, step.t_next, previous);
            // The reference's network knows only the time: x_pred·cos(t).
            let times: Vec<f64> = stages.iter().map(|stage| stage.t).collect();
            let last = stages.last().unwrap();
            let x_next: Vec<f32> = (0..x_t.len())
                .map(|i| {
                    let estimates: f64 = last.estimates.iter().zip(&times).map(|(c, t)| c * x_pred[i] * t.cos()).sum();
                    let before = last.previous * x_pred[i] * t_before.cos();
                    (last.x_t * f64::from(x_t[i]) + before + estimates + last.noise * f64::from(z[i])) as f32
                })
                .collect();
            let expected = &step.x_next[&format!("{sampler:?}")];
            // The stage times come from a bisection on both sides.
            assert_close(&x_next, expected, 2e-6, &format!("{sampler:?} {} {}", step.schedule, step.t_now));
        }
    }
}

#[test]
fn whole_chains() {
    let golden = golden();
    let device = Device::flex();
    let codec = Codec::new(Encoding::Uint8, 4, 1.0).unwrap();
    let Data { symbols, classes, trust, n_steps, batch } = &golden.data;
    let points = codec.encode_tensor(symbols, [classes.len(), 4], &device).unwrap();
    let denoiser = ExactDenoiser::new(points, 1.0)
        .and_then(|denoiser| denoiser.with_classes(classes.clone()))
        .and_then(|denoiser| denoiser.with_trust(*trust))
        .unwrap();
    let noise = Tensor::<2>::from_data(TensorData::new(golden.noise.values.clone(), [*batch, 8]), &device);
    assert_eq!(golden.chains.len(), 6 * 4 * 5 + 2);
    for chain in &golden.chains {
        let self_cond = match chain.self_cond.as_str() {
            "Off" => SelfCond::Off,
            "Previous" => SelfCond::Previous,
            "Momentum" => SelfCond::Momentum { momentum: chain.parameter },
            "SelfGuidance" => SelfCond::SelfGuidance { weight: chain.parameter },
            other => panic!("reference.py has no strategy {other}"),
        };
        let settings = Settings {
            n_steps: *n_steps,
            td: chain.td,
            sampler: chain.sampler,
            self_cond,
            guidance: chain.guidance,
            schedule: Schedule::default(),
        };
        let condition = chain.classes.clone().map_or(Condition::None, Condition::Classes);
        let what = format!("{:?} {self_cond:?} td {}", chain.sampler, chain.td);
        let mut half = Vec::new();
        let mut run = Chain::new(settings, condition, State::new(noise.clone(), golden.noise.seed)).unwrap();
        let x_pred = run
            .run(&denoiser, |step| {
                if step.step + 1 == n_steps / 2 {
                    half = values(&step.next.x_t);
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(run.state().memory.n_evaluations, chain.n_evaluations, "{what}");
        assert_close(&half, &chain.x_half, 1e-5, &format!("{what}, half way"));
        assert_close(&values(&run.state().x_t), &chain.x_t, 1e-5, &format!("{what}, state"));
        assert_close(&values(&x_pred), &chain.x_pred, 1e-5, &format!("{what}, estimate"));
    }
}
