//! The engine's half of `bench/speed.sh`: is asked on the standard input how long work takes, and answers, one line of JSON each.
//!
//! A driver asks this program and others in turns, so that all of them see the same noise of the machine. All that is random descends from
//! seeds that the others know too.

use std::{
    error::Error,
    io::{BufRead as _, Write as _},
    ops::ControlFlow,
    path::PathBuf,
    time::Instant,
};

use bit_diffusion::{
    checkpoint,
    demo::Demo,
    device::Opened,
    engine::{ChainRequest, Command, Engine, Event, ModelId, Slot},
    model::{Captioner, CaptionerConfig, Condition, Denoiser, Method, UNet, UNetConfig},
    rng::Rng,
    sampler::{Chain, Settings, State},
    self_cond::SelfCond,
    train::{Batch, CaptionBatch, Kind, Network, NetworkConfig, TrainConfig, Trainer},
};
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;
use serde_json::{Value, json};

/// The same as the desktop program's.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The seed of initial noise.
const NOISE: u64 = 1;
/// The seed of pictures to caption.
const PICTURES: u64 = 2;
/// The seed of what is learned from.
const LESSON: u64 = 3;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A question.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ask {
    /// Takes up a demo model.
    Load { model: String },
    /// Takes up a fresh network.
    Make { kind: Kind, config: Value },
    /// How long a chain takes; with `only`, how long its first steps do.
    Chain {
        batch: usize,
        n_steps: usize,
        only: Option<usize>,
        self_cond: SelfCond,
        repeat: usize,
        /// Where the last estimate goes, as raw numbers.
        out: Option<PathBuf>,
    },
    /// Begins a training run; its weights go to a file.
    Begin { batch: usize, self_cond_share: f64, out: Option<PathBuf> },
    /// How long a step of training takes.
    Train { repeat: usize },
    /// How much memory the steps of a kept chain take.
    Keep { batch: usize, n_steps: usize },
}

fn main() -> Result<()> {
    let mut subject = None;
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?)? {
            Ask::Load { model } => {
                let demo: Demo = model.parse()?;
                let (taken, answer) = load(demo)?;
                subject = Some(taken);
                answer
            }
            Ask::Make { kind, config } => {
                subject = Some(make(kind, config)?);
                json!({})
            }
            Ask::Keep { batch, n_steps } => keep(batch, n_steps)?,
            ask => match subject.as_mut().ok_or("nothing to work with: load or make a network first")? {
                Subject::Pictures(subject) => subject.answer(ask)?,
                Subject::Captions(subject) => subject.answer(ask)?,
            },
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

enum Subject {
    Pictures(Box<Bench<UNetConfig>>),
    Captions(Box<Bench<CaptionerConfig>>),
}

/// A network, and a training run of such a one.
struct Bench<C: NetworkConfig> {
    network: C::Network,
    config: TrainConfig<C>,
    run: Option<(Trainer<C>, <C::Network as Network>::Batch)>,
}

fn load(demo: Demo) -> Result<(Subject, Value)> {
    let (bytes, device) = (demo.bytes(), Device::flex());
    Ok(match checkpoint::kind(bytes)? {
        Kind::Pictures => {
            let config = checkpoint::inspect(bytes)?.config;
            let network = checkpoint::load_network(bytes, &device)?;
            let answer = json!({ "config": config, "parameters": network.parameters() });
            (Subject::Pictures(Box::new(Bench { network, config, run: None })), answer)
        }
        Kind::Captions => {
            let config = checkpoint::inspect_captioner(bytes)?.config;
            let network = checkpoint::load_captioner(bytes, &device)?;
            let answer = json!({ "config": config, "parameters": network.parameters() });
            (Subject::Captions(Box::new(Bench { network, config, run: None })), answer)
        }
    })
}

fn make(kind: Kind, config: Value) -> Result<Subject> {
    Ok(match kind {
        Kind::Pictures => {
            let config: UNetConfig = serde_json::from_value(config)?;
            let network = config.init(0, &Device::flex())?;
            Subject::Pictures(Box::new(Bench { network, config: TrainConfig::new(config), run: None }))
        }
        Kind::Captions => {
            let config: CaptionerConfig = serde_json::from_value(config)?;
            let network = config.init(0, &Device::flex())?;
            Subject::Captions(Box::new(Bench { network, config: TrainConfig::new(config), run: None }))
        }
    })
}

/// What pictures and captions do in their own ways.
trait Work: NetworkConfig {
    /// Runs a chain, or its first steps; the seconds and the last estimate.
    fn chain(network: &Self::Network, batch: usize, settings: Settings, only: Option<usize>)
    -> Result<(f64, Vec<f32>)>;
    /// Examples to learn from.
    fn lesson(&self, batch: usize) -> Result<<Self::Network as Network>::Batch>;
}

impl<C: Work> Bench<C> {
    fn answer(&mut self, ask: Ask) -> Result<Value> {
        match ask {
            Ask::Chain { batch, n_steps, only, self_cond, repeat, out } => {
                let settings = Settings { n_steps, self_cond, ..Settings::default() };
                let mut seconds = 0.0;
                for _ in 0..repeat {
                    let (taken, x_pred) = C::chain(&self.network, batch, settings, only)?;
                    seconds += taken;
                    if let Some(path) = &out {
                        std::fs::write(path, x_pred.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
                    }
                }
                Ok(json!({ "seconds": seconds / repeat as f64 }))
            }
            Ask::Begin { batch, self_cond_share, out } => {
                let config = TrainConfig {
                    batch_size: batch,
                    micro_batch_size: batch,
                    self_cond_share,
                    // So that the others need not draw what hides and mirrors.
                    class_dropout: 0.0,
                    flips: false,
                    ..self.config.clone()
                };
                let trainer = Trainer::new(config, &Device::flex())?;
                if let Some(path) = out {
                    std::fs::write(path, pollster::block_on(checkpoint::save_trainer(&trainer))?)?;
                }
                let lesson = self.config.network.lesson(batch)?;
                self.run = Some((trainer, lesson));
                Ok(json!({}))
            }
            Ask::Train { repeat } => {
                let (trainer, lesson) = self.run.as_mut().ok_or("no run has begun")?;
                let mut last = None;
                let start = Instant::now();
                for _ in 0..repeat {
                    last = Some(pollster::block_on(trainer.step(lesson))?);
                }
                let seconds = start.elapsed().as_secs_f64() / repeat as f64;
                let (loss, norm) = last.map_or((0.0, 0.0), |progress| (progress.loss, progress.gradient_norm));
                Ok(json!({ "seconds": seconds, "loss": loss, "gradient_norm": norm }))
            }
            Ask::Load { .. } | Ask::Make { .. } | Ask::Keep { .. } => unreachable!("answered before"),
        }
    }
}

/// Steps from the noise that all contenders know.
fn run<const D: usize>(
    denoiser: &dyn Denoiser<D>,
    shape: [usize; D],
    condition: Condition,
    settings: Settings,
    only: Option<usize>,
) -> Result<Vec<f32>> {
    let noise = noise(shape);
    let mut chain = Chain::new(settings, condition, State::new(noise, NOISE))?;
    let mut left = only.unwrap_or(usize::MAX);
    let x_pred = chain.run(denoiser, |_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(x_pred.into_data().try_to_vec().map_err(|error| format!("{error:?}"))?)
}

/// Initial noise; drawn once, because no contender's generator is measured here.
fn noise<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    use std::sync::Mutex;
    static DRAWN: Mutex<Vec<f32>> = Mutex::new(Vec::new());
    let n = shape.iter().product();
    let mut drawn = DRAWN.lock().expect("nobody panics while holding it");
    if drawn.len() != n {
        *drawn = Rng::new(NOISE).normals(n);
    }
    Tensor::from_data(TensorData::new(drawn.clone(), shape), &Device::flex())
}

/// Whole numbers below `limit`.
fn symbols(n: usize, limit: usize) -> Vec<u32> {
    let mut rng = Rng::new(LESSON);
    (0..n).map(|_| (rng.uniform() * limit as f64) as u32).collect()
}

impl Work for UNetConfig {
    fn chain(network: &UNet, batch: usize, settings: Settings, only: Option<usize>) -> Result<(f64, Vec<f32>)> {
        let condition = match network.config().n_classes {
            0 => Condition::None,
            n => Condition::Classes((0..batch).map(|i| Some(i % n)).collect()),
        };
        noise(network.state_shape(batch));
        let start = Instant::now();
        let x_pred = run(network, network.state_shape(batch), condition, settings, only)?;
        Ok((start.elapsed().as_secs_f64(), x_pred))
    }

    fn lesson(&self, batch: usize) -> Result<Batch> {
        let classes = if self.n_classes > 0 { (0..batch).map(|i| i % self.n_classes).collect() } else { Vec::new() };
        Ok(Batch { pixels: symbols(batch * self.channels * self.size * self.size, self.alphabet), classes })
    }
}

impl Work for CaptionerConfig {
    fn chain(network: &Captioner, batch: usize, settings: Settings, only: Option<usize>) -> Result<(f64, Vec<f32>)> {
        let [channels, height, width] = network.config().eye.input_shape();
        let values = Rng::new(PICTURES).normals(batch * channels * height * width);
        let pictures = Tensor::from_data(TensorData::new(values, [batch, channels, height, width]), &Device::flex());
        noise(network.state_shape(batch));
        // A chain looks at its pictures once; that is part of the chain and of no step.
        let mut start = Instant::now();
        let condition = network.prepare(Condition::picture(network.look(pictures)?));
        if only.is_some() {
            start = Instant::now();
        }
        let x_pred = run(network, network.state_shape(batch), condition, settings, only)?;
        Ok((start.elapsed().as_secs_f64(), x_pred))
    }

    fn lesson(&self, batch: usize) -> Result<CaptionBatch> {
        if self.method != Method::BitDiffusion {
            return Err("an autoregressive captioner has no chains".into());
        }
        let inputs = Rng::new(PICTURES).normals(batch * self.eye.input_shape().iter().product::<usize>());
        Ok(CaptionBatch {
            inputs,
            taught: Vec::new(),
            tokens: symbols(batch * self.length, self.vocabulary.n_tokens()),
        })
    }
}

/// What the engine says that a kept chain of the default model takes, and what the process has grown by.
fn keep(batch: usize, n_steps: usize) -> Result<Value> {
    let mut engine = Engine::new(Opened { device: Device::flex(), description: "CPU".to_owned(), shared: None });
    let mut chain = |n_steps: usize| {
        let settings = Settings { n_steps, ..Settings::default() };
        let request = ChainRequest { model: ModelId::default(), settings, n: batch, ..ChainRequest::default() };
        engine.handle(Command::Chain { slot: Slot(0), request });
        let mut used = 0;
        while let Some(event) = pollster::block_on(engine.work()) {
            if let Event::Memory(memory) = event {
                used = memory.used;
            }
        }
        used
    };
    // The first chain takes up the model and warms the allocator.
    let before = chain(2);
    let resident_before = resident()?;
    let after = chain(n_steps);
    Ok(json!({ "used": after - before, "resident": resident()?.saturating_sub(resident_before) }))
}

/// Bytes of memory that this process has, on Linux.
fn resident() -> Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split_whitespace().nth(1).ok_or("no resident pages")?.parse()?;
    Ok(pages * 4096)
}
