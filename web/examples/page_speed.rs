//! The engine's half of `bench/browser.sh`: a network in a page, which is asked to sample. The page holds the watch.
//!
//! It is compiled with the flags and the profile of the studio's page, and has the same noise and pictures as `core/examples/speed.rs`.
//! On any other platform than a browser this example is empty.
#![cfg(target_arch = "wasm32")]

#[path = "../src/constructors.rs"]
mod constructors;

use std::{error::Error, ops::ControlFlow};

use bit_diffusion::{
    checkpoint,
    device::{self, DeviceChoice, Opened},
    kernels::with_twins,
    model::{Captioner, Condition, Denoiser, UNet},
    rng::Rng,
    sampler::{Chain, Settings, State},
    self_cond::SelfCond,
    train::Kind,
};
use wasm_bindgen::{JsError, prelude::wasm_bindgen};

/// The seed of initial noise.
const NOISE: u64 = 1;
/// The seed of pictures to caption.
const PICTURES: u64 = 2;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A network on a device, and what its chains begin with.
#[wasm_bindgen]
pub struct Subject {
    opened: Opened,
    is_stock: bool,
    network: Network,
}

enum Network {
    Pictures(UNet, Option<Start<4>>),
    Captions(Captioner, Option<Start<3>>),
}

/// What a chain begins with.
#[derive(Clone)]
struct Start<const D: usize> {
    state: State<D>,
    condition: Condition,
}

#[wasm_bindgen]
impl Subject {
    /// Takes up a network from its file, on `cpu` or `webgpu`; with burn's own kernels in place of ours, if it `is_stock`.
    pub async fn load(bytes: Vec<u8>, on: String, is_stock: bool) -> std::result::Result<Subject, JsError> {
        Self::new(&bytes, &on, is_stock).await.map_err(words)
    }

    /// Draws the noise, and looks at the pictures, of chains of `batch` examples: no part of a step.
    pub fn prepare(&mut self, batch: usize) -> std::result::Result<(), JsError> {
        self.begin(batch).map_err(words)
    }

    /// The first `only` steps of a DDIM chain of `n_steps`; the last estimate.
    pub async fn chain(&self, n_steps: usize, only: usize) -> std::result::Result<Vec<f32>, JsError> {
        let settings = Settings { n_steps, self_cond: SelfCond::Previous, ..Settings::default() };
        let x_pred = match &self.network {
            Network::Pictures(network, start) => self.run(network, start.clone(), settings, only).await,
            Network::Captions(network, start) => self.run(network, start.clone(), settings, only).await,
        };
        x_pred.map_err(words)
    }
}

impl Subject {
    async fn new(bytes: &[u8], on: &str, is_stock: bool) -> Result<Self> {
        let choice = if on == "webgpu" { DeviceChoice::Wgpu(None) } else { DeviceChoice::Cpu };
        let opened = device::open(&choice).await?;
        let network = match checkpoint::kind(bytes)? {
            Kind::Pictures => Network::Pictures(checkpoint::load_network(bytes, &opened.device)?, None),
            Kind::Captions => Network::Captions(checkpoint::load_captioner(bytes, &opened.device)?, None),
        };
        Ok(Self { opened, is_stock, network })
    }

    fn begin(&mut self, batch: usize) -> Result<()> {
        let device = &self.opened.device;
        match &mut self.network {
            Network::Pictures(network, start) => {
                let condition = match network.config().n_classes {
                    0 => Condition::None,
                    n => Condition::Classes((0..batch).map(|i| Some(i % n)).collect()),
                };
                let noise = Rng::new(NOISE).normal_tensor(network.state_shape(batch), device);
                *start = Some(Start { state: State::new(noise, NOISE), condition });
            }
            Network::Captions(network, start) => {
                let [channels, height, width] = network.config().eye.input_shape();
                let pictures = Rng::new(PICTURES).normal_tensor([batch, channels, height, width], device);
                let condition = network.prepare(Condition::picture(network.look(pictures)?));
                let noise = Rng::new(NOISE).normal_tensor(network.state_shape(batch), device);
                *start = Some(Start { state: State::new(noise, NOISE), condition });
            }
        }
        Ok(())
    }

    async fn run<const D: usize>(
        &self,
        denoiser: &dyn Denoiser<D>,
        start: Option<Start<D>>,
        settings: Settings,
        only: usize,
    ) -> Result<Vec<f32>> {
        let Start { state, condition } = start.ok_or("a chain has to be prepared first")?;
        let mut chain = Chain::new(settings, condition, state)?;
        let mut left = only;
        let mut run = || {
            chain.run(denoiser, |_| {
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        };
        let x_pred = if self.is_stock { with_twins(run) } else { run() }?;
        let data = x_pred.into_data_async().await.map_err(|error| format!("{error:?}"))?;
        Ok(data.try_to_vec().map_err(|error| format!("{error:?}"))?)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn words(error: Box<dyn Error>) -> JsError {
    JsError::new(&error.to_string())
}
