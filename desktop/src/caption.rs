//! `bit-diffusion caption`: what pictures show, in words, and the captions that an evaluation scores.

use std::{
    fmt::Write as _,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    checkpoint::{self, Header},
    data::{
        CaptionedPictures as _, CaptionedShapes,
        caption::Caption,
        folder::read_square,
        shapes::{self, Scene},
    },
    demo::Demo,
    device,
    model::{
        Captioner, CaptionerConfig, Condition, Eye, Method, Writing,
        features::{EncoderConfig, ImageEncoder},
    },
    sampler::{Chain, Settings, State},
    text::Tokenizer,
};
use burn::tensor::{Device, Tensor};
use serde::Serialize;

use crate::{
    captions,
    cli::{CaptionArguments, CaptionDataArguments},
    files::{self, MODEL},
    output::print,
};

/// How captions are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) enum How {
    /// By bit diffusion, from the noise of a seed.
    Bits {
        /// How noise becomes captions.
        settings: Settings,
        /// What the noise descends from.
        seed: u64,
    },
    /// One token after the other.
    Tokens {
        /// How many captions are kept in mind.
        beam: usize,
    },
}

/// A captioner from a file, ready to be used.
pub(crate) struct Opened {
    pub header: Header<CaptionerConfig>,
    pub captioner: Captioner,
    pub tokenizer: Tokenizer,
}

/// Captions, and what they took.
pub(crate) struct Made {
    pub captions: Vec<String>,
    /// Runs of the network.
    pub n_evaluations: usize,
}

impl Opened {
    /// Opens a captioner by its path or name.
    pub fn open(path: &Path, arguments: &CaptionDataArguments, device: &Device) -> Result<Self> {
        let bytes = files::read_model(path, MODEL)?;
        let header = checkpoint::inspect_captioner(&bytes).with_context(|| files::in_file(path))?;
        let tokenizer = captions::tokenizer(&header.config.network.vocabulary, arguments)?;
        let captioner = checkpoint::load_captioner(&bytes, device).with_context(|| files::in_file(path))?;
        Ok(Self { header, captioner, tokenizer })
    }

    /// Captions of pictures, as [`Captioner::look`] sees them.
    pub fn write(&self, pictures: &Tensor<3>, how: How) -> Result<Made> {
        let device = pictures.device();
        let (rows, n_evaluations) = match how {
            How::Bits { settings, seed } => {
                let state = State::from_seed(self.captioner.state_shape(pictures.dims()[0]), seed, &device);
                let mut chain = Chain::new(settings, Condition::picture(pictures.clone()), state)?;
                let bits = chain.run(&self.captioner, |_| ControlFlow::Continue(()))?;
                let ids: Vec<u32> = self.captioner.codec().decode_tensor(bits)?.into_data().iter::<u32>().collect();
                let rows: Vec<Vec<u32>> =
                    ids.chunks_exact(self.header.config.network.length).map(<[u32]>::to_vec).collect();
                (rows, chain.state().memory.n_evaluations)
            }
            How::Tokens { beam } => {
                let mut writing = Writing::new(&self.captioner, pictures, beam)?;
                while !writing.is_finished() {
                    pollster::block_on(writing.step())?;
                }
                (writing.captions().into_iter().map(|written| written.tokens).collect(), writing.n_tokens())
            }
        };
        let captions = rows.iter().map(|ids| self.tokenizer.decode(ids)).collect::<Result<_, _>>()?;
        Ok(Made { captions, n_evaluations })
    }

    /// How this captioner makes captions, with these settings for bit diffusion.
    pub fn how(&self, settings: Settings, seed: u64, beam: usize) -> How {
        match self.header.config.network.method {
            Method::BitDiffusion => How::Bits { settings, seed },
            Method::Autoregressive => How::Tokens { beam },
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    model: String,
    device: &'a str,
    model_steps: usize,
    how: How,
    evaluations: usize,
    seconds: f64,
    captions: Vec<Line>,
}

/// A picture and its caption.
#[derive(Serialize)]
struct Line {
    picture: String,
    caption: String,
    /// Whether it is true of the picture; only of scenes of shapes.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_true: Option<bool>,
}

/// Captions as the flags say.
pub(crate) fn run(arguments: &CaptionArguments) -> Result<()> {
    let model = if arguments.autoregressive { baseline(&arguments.model) } else { arguments.model.clone() };
    let opened_device = pollster::block_on(device::open(&arguments.device))?;
    eprintln!("device: {}", opened_device.description);
    let opened = Opened::open(&model, &arguments.captions, &opened_device.device)?;
    let config = &opened.header.config;
    if arguments.autoregressive && config.network.method != Method::Autoregressive {
        bail!("this captioner works by bit diffusion; leave --autoregressive out, or give an autoregressive one");
    }
    let settings = Settings {
        n_steps: arguments.steps,
        td: arguments.td,
        sampler: arguments.sampler,
        self_cond: arguments.self_cond,
        schedule: config.schedule,
        ..Settings::default()
    };
    settings.validate()?;
    let encoder = encoder(arguments, &config.network.eye, &opened_device.device)?;
    let size = if let Eye::Convolutions { size, .. } = config.network.eye { size } else { EncoderConfig::PICTURE_SIZE };
    let (names, pixels) = pictures(arguments, size)?;

    let started = Instant::now();
    let looked = match &encoder {
        Some(encoder) => opened.captioner.look_through(encoder, &pixels, &opened_device.device)?,
        None => opened.captioner.look_at_pixels(&pixels, &opened_device.device)?,
    };
    let how = opened.how(settings, arguments.seed, arguments.beam);
    let made = opened.write(&looked, how)?;
    let seconds = started.elapsed().as_secs_f64();

    let is_shapes = config.data == shapes::NAME;
    let per_picture = pixels.len() / names.len();
    let lines = names.into_iter().zip(made.captions).zip(pixels.chunks_exact(per_picture));
    let lines = lines.map(|((picture, caption), pixels)| {
        let is_true = if is_shapes { is_true(&caption, pixels) } else { None };
        Line { picture, caption, is_true }
    });
    let lines: Vec<Line> = lines.collect();
    if arguments.json {
        let report = Report {
            model: model.display().to_string(),
            device: &opened_device.description,
            model_steps: opened.header.n_steps,
            how,
            evaluations: made.n_evaluations,
            seconds,
            captions: lines,
        };
        return print(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    let mut out = String::new();
    for Line { picture, caption, is_true } in &lines {
        let verdict = match is_true {
            Some(true) => " (true)",
            Some(false) => " (not true)",
            None => "",
        };
        writeln!(out, "{picture}: {caption}{verdict}")?;
    }
    writeln!(out, "{} runs of the network, {seconds:.2} s", made.n_evaluations)?;
    print(&out)
}

/// What a captioner looks through, if it does not look itself.
fn encoder(arguments: &CaptionArguments, eye: &Eye, device: &Device) -> Result<Option<ImageEncoder>> {
    let Eye::Features { name, .. } = eye else { return Ok(None) };
    let Some(path) = &arguments.encoder else {
        bail!(
            "this captioner looks through {name}; give its weights with --encoder FILE (bench/features_to_safetensors.py makes it)"
        );
    };
    let Some(config) = eye.encoder() else {
        bail!("this captioner looks through {name}, which is not known here; it can be scored with `eval --features`");
    };
    let bytes = fs::read(path).with_context(|| format!("cannot read the encoder {}", path.display()))?;
    Ok(Some(ImageEncoder::load(&bytes, config, device).with_context(|| files::in_file(path))?))
}

/// Whether a caption is true of a picture, if that is a scene of shapes.
pub(crate) fn is_true(caption: &str, pixels: &[u8]) -> Option<bool> {
    let symbols: Vec<u32> = pixels.iter().map(|&value| u32::from(value)).collect();
    let scene = Scene::parse(&symbols)?;
    Some(caption.parse::<Caption>().is_ok_and(|caption| caption.is_true_of(&scene)))
}

/// The names and the pixels of the pictures, each `[3, size, size]`.
fn pictures(arguments: &CaptionArguments, size: usize) -> Result<(Vec<String>, Vec<u8>)> {
    let (mut names, mut pixels) = (Vec::new(), Vec::new());
    if let Some(n) = arguments.scenes {
        if size != shapes::SIZE || n == 0 {
            bail!("--scenes must be at least 1, and for a captioner of {} × {} pixels", shapes::SIZE, shapes::SIZE);
        }
        let mut scenes = CaptionedShapes::test(arguments.seed);
        for index in 0..n {
            names.push(format!("scene {index}"));
            pixels.extend(scenes.read(index)?.pixels);
        }
    }
    for path in &arguments.images {
        let name = path.display().to_string();
        let bytes = fs::read(path).with_context(|| format!("cannot read {name}"))?;
        pixels.extend(read_square(&bytes, size, &name)?);
        names.push(name);
    }
    Ok((names, pixels))
}

/// The autoregressive model that belongs to one that comes with the program.
fn baseline(model: &Path) -> PathBuf {
    let name = model.to_str().unwrap_or_default();
    let demo: Option<Demo> = format!("{name}-ar").parse().ok();
    if model.exists() || demo.is_none() { model.to_owned() } else { format!("{name}-ar").into() }
}
