//! Our shaders against burn's own kernels on the same adapter: one sampling step and one training step of demo models.
//!
//! `cargo run --release --workspace --example gpu_speed -- [examples] [rounds] [models…]`; rounds take turns, and the median counts. Results are
//! compared before anything is timed. burn's own kernels take seconds a step on a software adapter; with 0 rounds they are left out.
//!
//! Where the time goes: `CUBECL_DEBUG_LOG=stdout CUBECL_DEBUG_OPTION=profile` before it makes burn print the time of every kernel.

use std::time::{Duration, Instant};

use bit_diffusion::{
    checkpoint::{inspect, inspect_captioner, kind, load_captioner, load_network},
    demo::Demo,
    device::{DeviceChoice, Opened, open},
    kernels::{linear, with_twins},
    model::{Condition, Denoiser},
    rng::Rng,
    sampler::{Chain, Settings, State},
    train::{Batch, CaptionBatch, Kind, Network, NetworkConfig, TrainConfig, Trainer},
};
use burn::{
    nn::LinearConfig,
    tensor::{Device, Tensor, TensorData},
};

/// Steps of ours that are timed together; of burn's, one takes long enough.
const REPEATS: u32 = 5;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (examples, rounds) = (number(4)?, number(5)?);
    let mut demos: Vec<Demo> = arguments.map(|name| name.parse()).collect::<std::result::Result<_, _>>()?;
    if demos.is_empty() {
        demos = vec![Demo::ShapesUint8, Demo::Cifar10Small, Demo::ShapesCaptions];
    }
    let Opened { device, description, .. } = pollster::block_on(open(&DeviceChoice::Wgpu(None)))?;
    println!("{description}, {examples} examples, {rounds} rounds");
    limits(&device)?;
    for demo in demos {
        println!("{demo}");
        match kind(demo.bytes())? {
            Kind::Pictures => pictures(demo, examples, rounds, &device)?,
            Kind::Captions => captions(demo, examples, rounds, &device)?,
        }
    }
    Ok(())
}

/// What no network can go beyond: how many sums and products a second there are in a large matrix product, and how long the smallest launch takes.
fn limits(device: &Device) -> Result<()> {
    const N_LAUNCHES: u32 = 100;
    let chain = |size: usize, n: u32| -> Result<Duration> {
        let layer = LinearConfig::new(size, size).init(device);
        let run = |n: u32| {
            let mut x = Tensor::<2>::ones([size, size], device);
            for _ in 0..n {
                x = linear(&layer, x);
            }
            values(x)
        };
        run(1)?;
        let start = Instant::now();
        run(n)?;
        Ok(start.elapsed() / n)
    };
    let (large, small) = (chain(1024, 10)?, chain(4, N_LAUNCHES)?);
    println!(
        "at most {:.0} GFLOP/s in a product of 1024³; at least {:.3} ms a launch",
        2.0 * 1024_f64.powi(3) / large.as_secs_f64() / 1e9,
        small.as_secs_f64() * 1e3
    );
    Ok(())
}

fn pictures(demo: Demo, n: usize, rounds: usize, device: &Device) -> Result<()> {
    let network = load_network(demo.bytes(), device)?;
    let n_classes = network.config().n_classes;
    let (classes, condition) = match n_classes {
        0 => (Vec::new(), Condition::None),
        _ => {
            ((0..n).map(|i| i % n_classes).collect(), Condition::Classes((0..n).map(|i| Some(i % n_classes)).collect()))
        }
    };
    sampling(&network, network.state_shape(n), &condition, rounds, device)?;
    let config = inspect(demo.bytes())?.config;
    let n_values = n * config.network.channels * config.network.size * config.network.size;
    let mut rng = Rng::new(2);
    let batch = Batch { pixels: (0..n_values).map(|_| rng.below(256) as u32).collect(), classes };
    training(&config, n, &batch, rounds, device)
}

fn captions(demo: Demo, n: usize, rounds: usize, device: &Device) -> Result<()> {
    let network = load_captioner(demo.bytes(), device)?;
    let config = inspect_captioner(demo.bytes())?.config;
    let [channels, height, width] = config.network.eye.input_shape();
    let inputs = Rng::new(2).normals(n * channels * height * width);
    let pictures = Tensor::from_data(TensorData::new(inputs.clone(), [n, channels, height, width]), device);
    let condition = network.prepare(Condition::picture(network.look(pictures)?));
    sampling(&network, network.state_shape(n), &condition, rounds, device)?;
    let mut rng = Rng::new(3);
    let n_tokens = config.network.vocabulary.n_tokens();
    let tokens = (0..n * config.network.length).map(|_| rng.below(n_tokens) as u32).collect();
    training(&config, n, &CaptionBatch { inputs, taught: Vec::new(), tokens }, rounds, device)
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

fn cost(repeats: u32, run: &mut dyn FnMut()) -> Cost {
    let (start, processor) = (Instant::now(), processor_time());
    for _ in 0..repeats {
        run();
    }
    let processor = processor.zip(processor_time()).map(|(before, after)| after.saturating_sub(before) / repeats);
    Cost { clock: start.elapsed() / repeats, processor }
}

/// Times both in turn and prints medians, after one run of each that compiles its shaders.
fn compare(what: &str, rounds: usize, mut ours: impl FnMut(), mut stock: impl FnMut()) {
    ours();
    if rounds == 0 {
        let cost = cost(REPEATS, &mut ours);
        println!("  {what}: ours {:.1} ms by the clock", cost.clock.as_secs_f64() * 1e3);
        return;
    }
    stock();
    let costs: Vec<[Cost; 2]> = (0..rounds).map(|_| [cost(REPEATS, &mut ours), cost(1, &mut stock)]).collect();
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
        "  {what}, {how}: ours {ours:.1} ms, burn's own {stock:.0} ms, {median:.1} times as fast ({least:.1} to {most:.1})"
    );
}

fn values<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    Ok(tensor.into_data().try_to_vec().map_err(|error| format!("{error:?}"))?)
}

fn sampling<const D: usize>(
    network: &dyn Denoiser<D>,
    shape: [usize; D],
    condition: &Condition,
    rounds: usize,
    device: &Device,
) -> Result<()> {
    let settings = Settings { n_steps: 10, ..Settings::default() };
    let noise = State::from_seed(shape, 1, device);
    let step = || -> Result<Vec<f32>> {
        let mut chain = Chain::new(settings, condition.clone(), noise.clone())?;
        chain.step(network)?;
        values(chain.state().x_t.clone())
    };
    if rounds > 0 {
        let (ours, twin) = (step()?, with_twins(step)?);
        let worst = ours.iter().zip(&twin).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "the results differ by {worst}");
    }
    compare("sampling step", rounds, || drop(step()), || drop(with_twins(step)));
    Ok(())
}

fn training<C: NetworkConfig>(
    config: &TrainConfig<C>,
    n: usize,
    batch: &<C::Network as Network>::Batch,
    rounds: usize,
    device: &Device,
) -> Result<()> {
    let config = TrainConfig { batch_size: n, micro_batch_size: n, ..config.clone() };
    let mut trainers = [Trainer::new(config.clone(), device)?, Trainer::new(config, device)?];
    let [ours, twin] = &mut trainers;
    let step = |trainer: &mut Trainer<C>| pollster::block_on(trainer.step(batch)).map(|progress| progress.loss);
    if rounds > 0 {
        let (a, b) = (step(ours)?, with_twins(|| step(twin))?);
        assert!((a - b).abs() < 1e-3 * b.abs(), "the losses differ: {a} and {b}");
    }
    compare("training step", rounds, || drop(step(ours)), || drop(with_twins(|| step(twin))));
    Ok(())
}
