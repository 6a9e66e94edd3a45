//! The training loop: it learns, it is deterministic, it averages, and it stops when it goes astray.

use std::ops::ControlFlow;

use bit_diffusion::{
    bits::Encoding,
    model::{Condition, Denoiser, Input, UNet, UNetConfig},
    objective::{Loss, Prediction},
    rng::Rng,
    sampler::{Chain, Settings, State},
    train::{Batch, Progress, TrainConfig, TrainError, Trainer},
};
use burn::tensor::Device;

const SIZE: usize = 8;

fn config() -> TrainConfig {
    let network = UNetConfig {
        size: SIZE,
        channels: 1,
        encoding: Encoding::Gray,
        alphabet: 4,
        width: 16,
        multipliers: vec![1, 2],
        n_blocks: 1,
        attention_sizes: vec![],
        ..UNetConfig::cifar10()
    };
    TrainConfig {
        learning_rate: 2e-3,
        n_warmup_steps: 20,
        batch_size: 8,
        micro_batch_size: 8,
        flips: false,
        seed: 1,
        ..TrainConfig::new(network)
    }
}

fn pictures() -> Batch {
    let mut rng = Rng::new(9);
    Batch { pixels: (0..8 * SIZE * SIZE).map(|_| rng.below(4) as u32).collect(), classes: Vec::new() }
}

fn train(trainer: &mut Trainer, n_steps: usize) -> Vec<Progress> {
    (0..n_steps).map(|_| pollster::block_on(trainer.step(&pictures())).unwrap()).collect()
}

/// What a network makes of the same noise.
fn output(network: &UNet) -> Vec<f32> {
    let x_t = Rng::new(4).normal_tensor(network.state_shape(1), &Device::flex());
    let input = Input { x_pred: x_t.zeros_like(), x_t, gamma: &[0.5], condition: &Condition::None };
    network.forward(input).into_data().try_to_vec().unwrap()
}

#[test]
fn one_batch_is_learned_to_exact_bits() {
    let mut trainer = Trainer::new(config(), &Device::flex()).unwrap();
    let progress = train(&mut trainer, 600);
    println!("loss from {} to {}", progress[0].loss, progress[599].loss);
    // An untrained network predicts 0 for bits of ±1.
    assert!((progress[0].loss - 1.0).abs() < 0.05, "{}", progress[0].loss);

    // Samples are the learned pictures, to the bit.
    let network = trainer.averaged();
    let codec = network.config().codec().unwrap();
    let settings = Settings { n_steps: 50, ..Settings::default() };
    let state = State::from_seed(network.state_shape(16), 2, &Device::flex());
    let mut chain = Chain::new(settings, Condition::None, state).unwrap();
    let x_pred = chain.run(&network, |_| ControlFlow::Continue(())).unwrap();
    let samples: Vec<u32> = codec.decode_tensor(x_pred).unwrap().into_data().iter::<u32>().collect();
    let learned = pictures().pixels;
    for sample in samples.chunks(SIZE * SIZE) {
        assert!(learned.chunks(SIZE * SIZE).any(|picture| picture == sample), "{sample:?} is none of the pictures");
    }
}

#[test]
fn a_seed_gives_one_run() {
    let run = |seed: u64| {
        let mut trainer = Trainer::new(TrainConfig { seed, ..config() }, &Device::flex()).unwrap();
        let progress = train(&mut trainer, 5);
        (progress, output(&trainer.averaged()))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn the_average_follows_the_weights_and_the_rate_warms_up() {
    let mut trainer = Trainer::new(TrainConfig { ema_decay: 0.0, ..config() }, &Device::flex()).unwrap();
    let progress = train(&mut trainer, 3);
    let rates: Vec<f64> = progress.iter().map(|progress| progress.learning_rate).collect();
    assert!(rates.iter().zip([1e-4, 2e-4, 3e-4]).all(|(a, b)| (a - b).abs() < 1e-12), "{rates:?}");
    // With no decay the average is the weights; with some it lags behind.
    let mut lagging = Trainer::new(config(), &Device::flex()).unwrap();
    train(&mut lagging, 3);
    assert_ne!(output(&trainer.averaged()), output(&lagging.averaged()));
    assert!((config().ema_decay_at(0) - 0.1).abs() < 1e-12);
    assert!((config().ema_decay_at(10_000_000) - 0.9999).abs() < 1e-12);
}

#[test]
fn every_objective_and_encoding_learns() {
    for (encoding, prediction, loss) in [
        (Encoding::Uint8, Prediction::Eps, Loss::L2),
        (Encoding::Uint8Rand, Prediction::X0, Loss::SigmoidCrossEntropy),
        (Encoding::OneHot, Prediction::X0, Loss::SoftmaxCrossEntropy),
        (Encoding::OneHot, Prediction::X0, Loss::L2),
        (Encoding::Continuous, Prediction::X0, Loss::L2),
    ] {
        let mut config = config();
        config.network = UNetConfig { encoding, prediction, loss, ..config.network };
        let mut trainer = Trainer::new(config, &Device::flex()).unwrap();
        let progress = train(&mut trainer, 40);
        let mean = |part: &[Progress]| part.iter().map(|progress| progress.loss).sum::<f32>() / part.len() as f32;
        let (first, last) = (mean(&progress[..10]), mean(&progress[30..]));
        assert!(last < 0.9 * first, "{encoding:?} {prediction:?} {loss:?}: from {first} to {last}");
    }
}

#[test]
fn micro_batches_flips_and_classes_work_together() {
    let mut config = config();
    config.network.n_classes = 3;
    config = TrainConfig { micro_batch_size: 3, flips: true, class_dropout: 0.5, ..config };
    let mut trainer = Trainer::new(config, &Device::flex()).unwrap();
    let batch = Batch { classes: (0..8).map(|i| i % 3).collect(), ..pictures() };
    for n_steps in 1..=3 {
        let progress = pollster::block_on(trainer.step(&batch)).unwrap();
        assert_eq!(progress.n_steps, n_steps);
        assert!((0.5..1.5).contains(&progress.loss), "{}", progress.loss);
    }
    // Without classes it says so.
    assert!(matches!(pollster::block_on(trainer.step(&pictures())), Err(TrainError::Input(_))));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let bad = [
        TrainConfig { learning_rate: f64::NAN, ..config() },
        TrainConfig { learning_rate: 0.0, ..config() },
        TrainConfig { batch_size: 0, ..config() },
        TrainConfig { micro_batch_size: 0, ..config() },
        TrainConfig { max_gradient_norm: 0.0, ..config() },
        TrainConfig { ema_decay: 1.0, ..config() },
        TrainConfig { self_cond_share: 2.0, ..config() },
        TrainConfig { class_dropout: -1.0, ..config() },
    ];
    for config in bad {
        assert!(Trainer::new(config.clone(), &Device::flex()).is_err(), "{config:?}");
    }
    let mut trainer = Trainer::new(config(), &Device::flex()).unwrap();
    let short = Batch { pixels: vec![0; 10], classes: Vec::new() };
    assert!(matches!(pollster::block_on(trainer.step(&short)), Err(TrainError::Input(_))));
    let outside = Batch { pixels: vec![4; 8 * SIZE * SIZE], classes: Vec::new() };
    assert!(matches!(pollster::block_on(trainer.step(&outside)), Err(TrainError::Input(_))));
}

#[test]
fn a_run_can_be_retuned_but_not_become_another() {
    let mut trainer = Trainer::new(config(), &Device::flex()).unwrap();
    train(&mut trainer, 1);
    trainer.retune(TrainConfig { learning_rate: 1e-4, n_warmup_steps: 0, ..config() }).unwrap();
    assert!((train(&mut trainer, 1)[0].learning_rate - 1e-4).abs() < 1e-12);
    assert_eq!(trainer.n_steps(), 2);
    let mut wider = config();
    wider.network.width = 32;
    for other in [wider, TrainConfig { seed: 5, ..config() }, TrainConfig { learning_rate: -1.0, ..config() }] {
        assert!(trainer.retune(other).is_err());
    }
    assert!((trainer.config().learning_rate - 1e-4).abs() < 1e-12, "a refused change changes nothing");
}
