//! Our shaders against burn's own kernels on the same adapter: one sampling step and one training step of the demo model.
//!
//! `cargo run --release --workspace --example gpu_speed -- [pictures] [rounds]`; rounds take turns, and the median counts. Results are compared
//! before anything is timed. burn's own kernels take seconds a step on a software adapter.

use std::time::{Duration, Instant};

use bit_diffusion::{
    checkpoint::load_network,
    demo::Demo,
    experiment::Preset,
    kernels::with_twins,
    model::Condition,
    rng::Rng,
    sampler::{Chain, Settings, State},
    train::{Batch, TrainConfig, Trainer},
};
use burn::tensor::{Device, Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (pictures, rounds) = (number(4)?, number(5)?);
    let (device, setup) = Device::wgpu_options().init_with_setup()?;
    println!("{}, {pictures} pictures, {rounds} rounds", setup.adapter.get_info().name);
    sampling(pictures, rounds, &device)?;
    training(pictures, rounds, &device)
}

/// Times both in turn and prints medians. The first time of each, with the compilation of its shaders, is printed apart.
fn compare(what: &str, rounds: usize, mut ours: impl FnMut(), mut stock: impl FnMut()) {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let first = [time(&mut ours), time(&mut stock)];
    let times: Vec<[Duration; 2]> = (0..rounds).map(|_| [time(&mut ours), time(&mut stock)]).collect();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let of = |which: usize| median(times.iter().map(|pair| pair[which].as_secs_f64() * 1e3).collect());
    let ratios: Vec<f64> = times.iter().map(|[ours, stock]| stock.as_secs_f64() / ours.as_secs_f64()).collect();
    let (least, most) =
        (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max));
    println!("{what}: ours {:.1} ms, burn's own {:.1} ms (first {:.0?} and {:.0?})", of(0), of(1), first[0], first[1]);
    println!("{what}: {:.1} times as fast ({least:.1} to {most:.1})", median(ratios));
}

fn values<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    Ok(tensor.into_data().try_to_vec().map_err(|error| format!("{error:?}"))?)
}

fn sampling(pictures: usize, rounds: usize, device: &Device) -> Result<(), Box<dyn std::error::Error>> {
    let network = load_network(Demo::ShapesUint8.bytes(), device)?;
    let settings = Settings { n_steps: 10, ..Settings::default() };
    let start = || State::from_seed(network.state_shape(pictures), 1, device);
    let step = || -> Result<Vec<f32>, Box<dyn std::error::Error>> {
        let mut chain = Chain::new(settings, Condition::None, start())?;
        chain.step(&network)?;
        values(chain.state().x_t.clone())
    };
    let (ours, twin) = (step()?, with_twins(step)?);
    let worst = ours.iter().zip(&twin).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-4, "the results differ by {worst}");
    compare("sampling step", rounds, || drop(step()), || drop(with_twins(step)));
    Ok(())
}

fn training(pictures: usize, rounds: usize, device: &Device) -> Result<(), Box<dyn std::error::Error>> {
    let preset = Preset::ShapesUint8.config();
    let config = TrainConfig { batch_size: pictures, micro_batch_size: pictures, ..preset };
    let n_values = pictures * config.network.channels * config.network.size * config.network.size;
    let mut rng = Rng::new(2);
    let batch = Batch { pixels: (0..n_values).map(|_| rng.below(256) as u32).collect(), classes: Vec::new() };
    let mut trainers = [Trainer::new(config.clone(), device)?, Trainer::new(config, device)?];
    let [ours, twin] = &mut trainers;
    let step = |trainer: &mut Trainer| pollster::block_on(trainer.step(&batch)).map(|progress| progress.loss);
    let (a, b) = (step(ours)?, with_twins(|| step(twin))?);
    assert!((a - b).abs() < 1e-3 * b.abs(), "the losses differ: {a} and {b}");
    compare("training step", rounds, || drop(step(ours)), || drop(with_twins(|| step(twin))));
    Ok(())
}
