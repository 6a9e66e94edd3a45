//! A chain under way on the perfect denoiser of some scenes, and what has been seen of it.

use std::time::Duration;

use bit_diffusion::{
    Error,
    bits::{Codec, Encoding},
    data::shapes::{SIZE, Scene},
    metrics::bits::N_BINS,
    model::{Condition, ExactDenoiser},
    rng::Rng,
    sampler::{Chain, Settings, State},
};
use burn::tensor::Device;
use egui::ColorImage;
use web_time::Instant;

use crate::pictures::{grid, histogram};

/// How many samples are made at once.
pub(crate) const BATCH: usize = 16;

/// How many scenes the denoiser knows.
const N_SCENES: usize = 64;

/// The limit of the histograms: noise beyond it is rare.
pub(crate) const HISTOGRAM_LIMIT: f64 = 3.0;

/// Everything that decides a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Request {
    pub settings: Settings,
    pub encoding: Encoding,
    /// How far the denoiser trusts its earlier estimate.
    pub trust: f64,
    pub seed: u64,
}

/// One step, as it is shown.
pub(crate) struct Frame {
    pub t_now: f64,
    pub t_next: f64,
    pub noisy: ColorImage,
    pub estimate: ColorImage,
    pub n_off_palette: usize,
    pub noisy_histogram: [f64; N_BINS],
    pub estimate_histogram: [f64; N_BINS],
}

/// A chain, its denoiser, and the frames so far.
pub(crate) struct Run {
    chain: Chain<4>,
    denoiser: ExactDenoiser<4>,
    codec: Codec,
    /// The encoding and the trust that the denoiser was made for.
    knows: (Encoding, f64),
    pub frames: Vec<Frame>,
}

/// The codec of the scenes' pixels and the denoiser that knows them all.
fn perfect_denoiser(encoding: Encoding, trust: f64, device: &Device) -> Result<(Codec, ExactDenoiser<4>), Error> {
    let codec = Codec::new(encoding, 256, 1.0)?;
    let mut rng = Rng::new(0);
    let pixels: Vec<u32> = (0..N_SCENES).flat_map(|_| Scene::random(&mut rng).render()).collect();
    let points = codec.encode_tensor(&pixels, [N_SCENES, 3, SIZE, SIZE], device)?;
    let denoiser = ExactDenoiser::new(points, codec.scale())?.with_trust(trust)?;
    Ok((codec, denoiser))
}

impl Run {
    /// Starts a chain; takes the denoiser over from `old` where it is the same.
    pub fn start(request: &Request, old: Option<&Self>) -> Result<Self, Error> {
        let device = Device::flex();
        let knows = (request.encoding, request.trust);
        let (codec, denoiser) = match old {
            Some(old) if old.knows == knows => (old.codec.clone(), old.denoiser.clone()),
            _ => perfect_denoiser(request.encoding, request.trust, &device)?,
        };
        let shape = [BATCH, 3 * codec.bits_per_symbol(), SIZE, SIZE];
        let state = State::from_seed(shape, request.seed, &device);
        Ok(Self {
            chain: Chain::new(request.settings, Condition::None, state)?,
            denoiser,
            codec,
            knows,
            frames: Vec::new(),
        })
    }

    pub fn is_finished(&self) -> bool {
        self.chain.is_finished()
    }

    pub fn n_steps(&self) -> usize {
        self.chain.settings().n_steps
    }

    pub fn n_evaluations(&self) -> usize {
        self.chain.state().memory.n_evaluations
    }

    /// Makes steps until `budget` is used up: at least one, so that the chain always gets on.
    pub fn advance(&mut self, budget: Duration) -> Result<(), Error> {
        let start = Instant::now();
        while let Some(step) = self.chain.step(&self.denoiser)? {
            let (noisy, _) = grid(step.x_t.clone(), &self.codec);
            let (estimate, n_off_palette) = grid(step.x_pred.clone(), &self.codec);
            self.frames.push(Frame {
                t_now: step.t_now,
                t_next: step.t_next,
                noisy,
                estimate,
                n_off_palette,
                noisy_histogram: histogram(&step.x_t, HISTOGRAM_LIMIT),
                estimate_histogram: histogram(&step.x_pred, HISTOGRAM_LIMIT),
            });
            if start.elapsed() >= budget {
                break;
            }
        }
        Ok(())
    }
}
