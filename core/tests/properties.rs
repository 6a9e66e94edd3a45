//! What must hold of the method whatever the numbers: round trips, limits, and equivalences between its parts.

use std::ops::ControlFlow;

use bit_diffusion::{
    bits::{Codec, Encoding, hamming},
    model::{Bernoulli, Condition, Denoiser, ExactDenoiser, Input},
    rng::Rng,
    sampler::{Chain, Sampler, Settings, State, plan},
    schedule::Schedule,
    self_cond::SelfCond,
};
use burn::tensor::{Device, Tensor, TensorData};

fn values<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().try_to_vec().unwrap()
}

/// A data set of `n` random points of 12 bits, and its denoiser.
fn exact(n: usize, trust: f64) -> (Tensor<2>, ExactDenoiser<2>) {
    let mut rng = Rng::new(11);
    let codec = Codec::new(Encoding::Gray, 8, 1.0).unwrap();
    let symbols: Vec<u32> = (0..4 * n).map(|_| rng.below(8) as u32).collect();
    let points = codec.encode_tensor(&symbols, [n, 4], &Device::flex()).unwrap();
    let denoiser = ExactDenoiser::new(points.clone(), 1.0).unwrap().with_trust(trust).unwrap();
    (points, denoiser)
}

fn start(batch: usize) -> State<2> {
    State::from_seed([batch, 12], 5, &Device::flex())
}

/// The state and the estimate at the end of a chain.
fn run(denoiser: &ExactDenoiser<2>, settings: Settings, state: State<2>) -> (Vec<f32>, Vec<f32>) {
    let mut chain = Chain::new(settings, Condition::None, state).unwrap();
    let x_pred = chain.run(denoiser, |_| ControlFlow::Continue(())).unwrap();
    (values(&chain.state().x_t), values(&x_pred))
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn codes_round_trip_for_every_alphabet() {
    for alphabet in (2..=300).chain([32_000]) {
        for encoding in [Encoding::Uint8, Encoding::Gray, Encoding::Uint8Rand, Encoding::OneHot, Encoding::Continuous] {
            let codec = Codec::new(encoding, alphabet, 1.0).unwrap();
            let n = codec.bits_per_symbol();
            let expected_n = match encoding {
                Encoding::OneHot => alphabet,
                Encoding::Continuous => 1,
                _ => (alphabet as f64).log2().ceil() as usize,
            };
            assert_eq!(n, expected_n, "{encoding:?} of {alphabet}");
            // One-hot of 32,000 symbols is 10⁹ numbers; a few of them will do.
            let step = if encoding == Encoding::OneHot { alphabet / 50 + 1 } else { 1 };
            let symbols: Vec<u32> = (0..alphabet as u32).step_by(step).collect();
            assert_eq!(codec.decode(&codec.encode(&symbols).unwrap()).unwrap(), symbols, "{encoding:?} of {alphabet}");
            if encoding == Encoding::Gray {
                let neighbours = hamming::by_difference(&codec).next().unwrap();
                assert_eq!((neighbours.min, neighbours.max), (1, 1), "Gray of {alphabet}");
            }
            // Whatever the bits, codes outside the alphabet too: tensors decode as slices do, and within the alphabet.
            let noise: Vec<f32> = Rng::new(6).normals(20 * n);
            let decoded = codec.decode(&noise).unwrap();
            assert!(decoded.iter().all(|&symbol| (symbol as usize) < alphabet), "{encoding:?} of {alphabet}");
            let bits = Tensor::<2>::from_data(TensorData::new(noise, [20, n]), &Device::flex());
            let on_tensor: Vec<u32> = codec.decode_tensor(bits).unwrap().into_data().iter::<u32>().collect();
            assert_eq!(on_tensor, decoded, "{encoding:?} of {alphabet}");
        }
    }
}

#[test]
fn ddim_with_the_exact_denoiser_lands_on_data_points() {
    let (points, denoiser) = exact(20, 0.0);
    let points: Vec<Vec<f32>> = values(&points).chunks(12).map(<[f32]>::to_vec).collect();
    let (_, samples) = run(&denoiser, Settings::default(), start(64));
    let mut seen = std::collections::HashSet::new();
    for sample in samples.chunks(12) {
        let nearest = points.iter().position(|point| distance(point, sample) < 1e-3);
        seen.insert(nearest.unwrap_or_else(|| panic!("{sample:?} is not a data point")));
    }
    assert!(seen.len() > 10, "64 samples show only {} of 20 points", seen.len());
}

#[test]
fn td_of_zero_is_the_plain_chain_bit_for_bit() {
    // The plain chain, by hand: symmetric times, the last estimate fed back, one DDIM step after the other.
    let (_, denoiser) = exact(20, 0.2);
    let schedule = Schedule::default();
    let mut x_t = start(4).x_t;
    let mut x_pred = x_t.zeros_like();
    for step in 0..10 {
        let (t_now, t_next) = (1.0 - f64::from(step) / 10.0, 1.0 - f64::from(step + 1) / 10.0);
        let gamma = vec![schedule.gamma(t_now); 4];
        let input = Input { x_t: x_t.clone(), x_pred, gamma: &gamma, condition: &Condition::None };
        x_pred = denoiser.estimate(input).clamp(-1.0, 1.0);
        let stage = plan(Sampler::Ddim, &schedule, t_now, t_next, None).remove(0);
        x_t = x_t.mul_scalar(stage.x_t) + x_pred.clone().mul_scalar(stage.estimates[0]);
    }
    let settings = Settings { n_steps: 10, td: 0.0, ..Settings::default() };
    assert_eq!(run(&denoiser, settings, start(4)), (values(&x_t), values(&x_pred)));
}

#[test]
fn td_saturates_at_one_less_than_the_steps() {
    let (_, denoiser) = exact(20, 0.2);
    for sampler in [Sampler::Ddim, Sampler::DpmSolver2, Sampler::DpmSolver3, Sampler::DpmSolverMultistep2] {
        let with = |td| run(&denoiser, Settings { n_steps: 5, td, sampler, ..Settings::default() }, start(4));
        assert_eq!(with(4.0), with(5.0), "{sampler:?}");
        assert_eq!(with(4.0), with(1e300), "{sampler:?}");
        assert_ne!(with(4.0), with(3.0), "{sampler:?}");
    }
}

#[test]
fn dpm_solver_of_order_1_equals_ddim() {
    let (_, denoiser) = exact(20, 0.2);
    let with = |sampler, td| run(&denoiser, Settings { n_steps: 20, sampler, td, ..Settings::default() }, start(8));
    for td in [0.0, 0.7, 3.0] {
        let (ddim, dpm) = (with(Sampler::Ddim, td), with(Sampler::DpmSolver1, td));
        // The same coefficients by another formula, so f32 rounding only.
        assert!(distance(&ddim.0, &dpm.0) < 1e-4 && distance(&ddim.1, &dpm.1) < 1e-4, "td {td}");
    }
}

#[test]
fn dpm_solver_at_20_evaluations_is_nearer_to_the_solution_than_ddim() {
    // One analog bit, many noises at once, all with 20 evaluations for the whole way (order 3: 18). The states are compared
    // where the clocks of all solvers meet, and the bits at the end, where the noises near the divide tell them apart.
    let bit = Bernoulli::new(0.3).unwrap();
    let noise = State::from_seed([4096, 1], 3, &Device::flex());
    let solve = |sampler, n_steps, stop: f64| {
        let settings = Settings { n_steps, sampler, self_cond: SelfCond::Off, ..Settings::default() };
        let mut chain = Chain::new(settings, Condition::None, noise.clone()).unwrap();
        let mut state = Vec::new();
        let x_pred = chain
            .run(&bit, |step| {
                state = values(&step.next.x_t);
                assert!(step.t_next > stop - 1e-9, "{stop} is not on the grid of {n_steps} steps");
                if step.t_next <= stop + 1e-9 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        if stop == 0.0 {
            assert!((18..=20).contains(&chain.state().memory.n_evaluations) || n_steps == 1000);
            values(&x_pred)
        } else {
            state
        }
    };
    for (sampler, n_steps, stops) in [
        (Sampler::DpmSolver2, 10, &[0.7, 0.5, 0.3, 0.0][..]),
        (Sampler::DpmSolver3, 6, &[0.5, 0.0]),
        (Sampler::DpmSolverMultistep2, 20, &[0.7, 0.5, 0.3, 0.0]),
    ] {
        for &stop in stops {
            let reference = solve(Sampler::Ddim, 1000, stop);
            let (ddim, dpm) = (solve(Sampler::Ddim, 20, stop), solve(sampler, n_steps, stop));
            let (ddim, dpm) = (distance(&ddim, &reference), distance(&dpm, &reference));
            println!("{sampler:?} at t = {stop}: {dpm:.3} from the solution, DDIM {ddim:.3}");
            assert!(dpm < ddim, "{sampler:?} at t = {stop}: {dpm} against {ddim}");
        }
    }
}

#[test]
fn momentum_zero_equals_the_previous_estimate() {
    let (_, denoiser) = exact(20, 0.2);
    let with = |self_cond| run(&denoiser, Settings { n_steps: 20, self_cond, ..Settings::default() }, start(8));
    assert_eq!(with(SelfCond::Momentum { momentum: 0.0 }), with(SelfCond::Previous));
    assert_ne!(with(SelfCond::Momentum { momentum: 0.5 }), with(SelfCond::Previous));
    assert_ne!(with(SelfCond::Off), with(SelfCond::Previous));
}

#[test]
fn self_guidance_of_weight_1_equals_the_same_step_estimate() {
    /// Estimates twice at every step, the second time seeing the first.
    struct SameStep(ExactDenoiser<2>);
    impl Denoiser<2> for SameStep {
        fn forward(&self, mut input: Input<'_, 2>) -> Tensor<2> {
            input.x_pred = self.0.estimate(Input { x_pred: input.x_t.zeros_like(), ..input.clone() });
            self.0.estimate(input)
        }
        fn accepts(&self, shape: [usize; 2], condition: &Condition) -> Result<(), bit_diffusion::Error> {
            self.0.accepts(shape, condition)
        }
    }
    let (_, denoiser) = exact(20, 0.2);
    let guided = Settings { n_steps: 20, self_cond: SelfCond::SelfGuidance { weight: 1.0 }, ..Settings::default() };
    let mut by_hand = Chain::new(Settings { self_cond: SelfCond::Off, ..guided }, Condition::None, start(8)).unwrap();
    let expected = by_hand.run(&SameStep(denoiser.clone()), |_| ControlFlow::Continue(())).unwrap();
    let (_, got) = run(&denoiser, guided, start(8));
    assert_eq!(got, values(&expected));
    assert_ne!(got, run(&denoiser, Settings { self_cond: SelfCond::Off, ..guided }, start(8)).1);
}

#[test]
fn a_kept_state_resumes_exactly_and_branches() {
    let (_, denoiser) = exact(20, 0.2);
    for sampler in Sampler::ALL {
        let self_cond = SelfCond::Momentum { momentum: 0.3 };
        let settings = Settings { n_steps: 10, td: 0.5, sampler, self_cond, ..Settings::default() };
        let mut kept = None;
        let mut chain = Chain::new(settings, Condition::None, start(4)).unwrap();
        chain
            .run(&denoiser, |step| {
                if step.step == 3 {
                    kept = Some(step.next.clone());
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        let kept = kept.unwrap();
        assert_eq!(kept.step, 4, "breaking off stops the chain");
        let resumed = run(&denoiser, settings, kept.clone());
        assert_eq!(resumed, run(&denoiser, settings, start(4)), "{sampler:?}");
        // Another td, sampler, strategy and number of steps, from the same state.
        let other = Settings { n_steps: 7, td: 0.0, self_cond: SelfCond::Off, ..settings };
        let mut branch = Chain::new(other, Condition::None, kept).unwrap();
        let mut times = Vec::new();
        let mut middle = None;
        branch
            .run(&denoiser, |step| {
                times.push(step.t_now);
                if times.len() == 2 {
                    middle = Some(step.next.clone());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!((times[0] - 0.6).abs() < 1e-12, "the clock goes on where it was: {times:?}");
        assert_eq!(times.len(), 5, "0.6 of 7 steps are left: {times:?}");
        assert_ne!(values(&branch.state().x_t), resumed.0, "{sampler:?}");
        // A state of the branch, between the steps of its own grid, resumes exactly too.
        let mut again = Chain::new(other, Condition::None, middle.unwrap()).unwrap();
        again.run(&denoiser, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(values(&again.state().x_t), values(&branch.state().x_t), "{sampler:?}");
    }
}

#[test]
fn evaluations_are_counted() {
    let (_, denoiser) = exact(6, 0.2);
    let classes = denoiser.with_classes(vec![0, 0, 0, 1, 1, 1]).unwrap();
    let count = |sampler, self_cond, condition: Condition, guidance| {
        let settings = Settings { n_steps: 5, sampler, self_cond, guidance, ..Settings::default() };
        let mut chain = Chain::new(settings, condition, start(2)).unwrap();
        chain.run(&classes, |_| ControlFlow::Continue(())).unwrap();
        chain.state().memory.n_evaluations
    };
    let asked = || Condition::Classes(vec![Some(1), None]);
    let guide = SelfCond::SelfGuidance { weight: 3.0 };
    assert_eq!(count(Sampler::Ddim, SelfCond::Previous, Condition::None, 2.0), 5);
    assert_eq!(count(Sampler::Ddim, SelfCond::Previous, asked(), 1.0), 5);
    assert_eq!(count(Sampler::Ddim, SelfCond::Previous, asked(), 2.0), 10);
    assert_eq!(count(Sampler::Ddim, guide, asked(), 2.0), 20);
    assert_eq!(count(Sampler::DpmSolver2, SelfCond::Off, Condition::None, 1.0), 10);
    assert_eq!(count(Sampler::DpmSolver3, guide, Condition::None, 1.0), 30);
    assert_eq!(count(Sampler::DpmSolverMultistep2, SelfCond::Off, Condition::None, 1.0), 5);
}

#[test]
fn classes_are_shown_when_asked_for() {
    let (points, denoiser) = exact(20, 0.0);
    let classes: Vec<usize> = (0..20).map(|i| i % 4).collect();
    let denoiser = denoiser.with_classes(classes.clone()).unwrap();
    let points: Vec<Vec<f32>> = values(&points).chunks(12).map(<[f32]>::to_vec).collect();
    for guidance in [1.0, 2.0] {
        let asked: Vec<Option<usize>> = (0..16).map(|i| Some(i % 4)).collect();
        let settings = Settings { guidance, ..Settings::default() };
        let mut chain = Chain::new(settings, Condition::Classes(asked.clone()), start(16)).unwrap();
        let samples = values(&chain.run(&denoiser, |_| ControlFlow::Continue(())).unwrap());
        for (sample, asked) in samples.chunks(12).zip(asked) {
            let shown = points.iter().position(|point| distance(point, sample) < 1e-3).unwrap();
            assert_eq!(Some(classes[shown]), asked, "guidance {guidance}");
        }
    }
}

#[test]
fn ddim_follows_the_exact_map_of_one_bit() {
    // The probability flow keeps quantiles; 1000 DDIM steps must follow it, and part the noise at the right place.
    let schedule = Schedule::default();
    for p in [0.5, 0.7] {
        let bit = Bernoulli::new(p).unwrap();
        let noise = State::from_seed([512, 1], 1, &Device::flex());
        let start = values(&noise.x_t);
        let settings = Settings { n_steps: 1000, self_cond: SelfCond::Off, ..Settings::default() };
        let mut chain = Chain::new(settings, Condition::None, noise).unwrap();
        let mut worst = 0.0_f64;
        let ends = chain
            .run(&bit, |step| {
                if step.step % 100 == 99 && step.t_next > 0.05 {
                    for (&x, &noise) in values(&step.next.x_t).iter().zip(&start) {
                        let exact = bit.transport(f64::from(noise), schedule.gamma(1.0), schedule.gamma(step.t_next));
                        worst = worst.max((f64::from(x) - exact).abs());
                    }
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        println!("p = {p}: worst distance from the exact path {worst:.4}");
        // First-order steps of 1/1000 through slopes of a few units.
        assert!(worst < 0.05, "p = {p}: {worst}");
        for (end, noise) in values(&ends).iter().zip(&start) {
            // Within 0.02 of the divide, 1000 steps may still decide otherwise.
            if (f64::from(*noise) - bit.divide()).abs() > 0.02 {
                assert_eq!(*end > 0.0, f64::from(*noise) > bit.divide(), "p = {p}, noise {noise}");
            }
        }
    }
}

#[test]
fn ddpm_draws_bits_with_their_probability() {
    let bit = Bernoulli::new(0.7).unwrap();
    let n = 4000;
    let noise = State::from_seed([n, 1], 2, &Device::flex());
    let settings = Settings { n_steps: 100, sampler: Sampler::Ddpm, ..Settings::default() };
    let mut chain = Chain::new(settings, Condition::None, noise).unwrap();
    let ends = values(&chain.run(&bit, |_| ControlFlow::Continue(())).unwrap());
    let share = ends.iter().filter(|&&end| end > 0.0).count() as f64 / n as f64;
    // Four standard errors of a share of 0.7 among 4000, and the error of 100 steps.
    assert!((share - 0.7).abs() < 4.0 * (0.21 / n as f64).sqrt() + 0.01, "{share}");
}
