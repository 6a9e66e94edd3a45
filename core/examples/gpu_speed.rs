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

/// Steps that are timed together.
const REPEATS: u32 = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (pictures, rounds) = (number(4)?, number(5)?);
    let (device, setup) = Device::wgpu_options().init_with_setup()?;
    println!("{}, {pictures} pictures, {rounds} rounds", setup.adapter.get_info().name);
    sampling(pictures, rounds, &device)?;
    training(pictures, rounds, &device)
}

/// What a run took: by the clock, and of the processor, which on a software adapter is the card and does not mind what else the machine does.
#[derive(Clone, Copy)]
struct Cost {
    clock: Duration,
    processor: Option<Duration>,
}

/// The processor time of this process, in hundredths of a second; `None` where Linux does not say it.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may hold anything; user and system time are the 12th and 13th numbers after it.
    let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || numbers.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (next()? + next()?)))
}

fn cost(run: &mut dyn FnMut()) -> Cost {
    let (start, processor) = (Instant::now(), processor_time());
    for _ in 0..REPEATS {
        run();
    }
    let processor = processor.zip(processor_time()).map(|(before, after)| after.saturating_sub(before) / REPEATS);
    Cost { clock: start.elapsed() / REPEATS, processor }
}

/// Times both in turn and prints medians, after one run of each that compiles its shaders.
fn compare(what: &str, rounds: usize, mut ours: impl FnMut(), mut stock: impl FnMut()) {
    ours();
    stock();
    let costs: Vec<[Cost; 2]> = (0..rounds).map(|_| [cost(&mut ours), cost(&mut stock)]).collect();
    let clock: Vec<[Duration; 2]> = costs.iter().map(|pair| pair.map(|cost| cost.clock)).collect();
    print(what, "by the clock", &clock);
    let processor: Option<Vec<[Duration; 2]>> =
        costs.iter().map(|[ours, stock]| Some([ours.processor?, stock.processor?])).collect();
    if let Some(times) = processor {
        print(what, "of the processor", &times);
    }
}

fn print(what: &str, how: &str, times: &[[Duration; 2]]) {
    let sorted = |of: &dyn Fn(&[Duration; 2]) -> f64| {
        let mut values: Vec<f64> = times.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let [ours, stock] = [0, 1].map(|which| {
        let values = sorted(&|pair| pair[which].as_secs_f64() * 1e3);
        values[values.len() / 2]
    });
    let ratios = sorted(&|[ours, stock]| stock.as_secs_f64() / ours.as_secs_f64());
    let (least, median, most) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    println!(
        "{what}, {how}: ours {ours:.0} ms, burn's own {stock:.0} ms, {median:.1} times as fast ({least:.1} to {most:.1})"
    );
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
