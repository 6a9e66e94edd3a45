//! The command line: every command and flag, and what they mean.
//!
//! Deliberately absent: what the commands do.

use std::path::PathBuf;

use bit_diffusion::{
    checkpoint::Precision,
    device::DeviceChoice,
    model::features::{EncoderConfig, EncoderLayer},
    sampler::Sampler,
    self_cond::SelfCond,
};
use bit_diffusion_ui::Panel;
use clap::{Args, CommandFactory as _, Parser, Subcommand, error::ErrorKind};

/// Ends the program for a combination of flags that means nothing, with 2, as for any other wrong flag.
pub(crate) fn refuse(kind: ErrorKind, message: &str) -> ! {
    Cli::command().error(kind, message).exit()
}

/// Bit Diffusion Studio: generate discrete data with analog bits (Chen, Zhang & Hinton, ICLR 2023).
///
/// Without a command it opens the studio in a window.
#[derive(Debug, Parser)]
#[command(name = "bit-diffusion", version)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    /// The panel that the window opens with: chain, time-difference, bits, self-conditioning, one-bit, captions or train; by default the last one
    #[arg(long)]
    pub panel: Option<Panel>,
    /// What the window works with: auto, cpu or wgpu (the card that it draws with, a software one too)
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// What to do; the window if left out
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the program can do without a window.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a network
    Train(TrainArguments),
    /// Make pictures with a trained network
    Sample(SampleArguments),
    /// Say what pictures show, with a trained captioner
    Caption(CaptionArguments),
    /// Measure how good a model's samples or captions are, over a grid of settings
    Eval(EvalArguments),
    /// Work out the image tokens of captioned pictures with a pretrained encoder, once, to train a captioner on
    Features(FeaturesArguments),
    /// Caption all training pictures with one captioner, for another to learn from
    Relabel(RelabelArguments),
    /// List the training runs that have a name
    Presets {
        /// One of them, to print its settings as a config.json to start from
        name: Option<String>,
    },
    /// Say what a model or checkpoint file is
    Inspect {
        /// A file of this program, the folder of a run, or the name of a model that comes with the program
        file: PathBuf,
    },
    /// Write the network of a checkpoint as a file for sampling
    Export {
        /// A checkpoint, or the folder of a run
        model: PathBuf,
        /// The file to write
        out: PathBuf,
        /// How the weights are written: f16 or f32
        #[arg(long, default_value_t)]
        precision: Precision,
    },
    /// Make a model of weights from another program, say Python
    Import {
        /// A safetensors file; one tensor for each parameter, named as `inspect` lists them, with `ema.` before each or none
        weights: PathBuf,
        /// The settings of the network: a preset's name, or a file like a run's config.json
        #[arg(long, value_name = "PRESET|CONFIG.json")]
        config: String,
        /// The file to write
        #[arg(long)]
        out: PathBuf,
        /// How the weights are written: f16 or f32
        #[arg(long, default_value_t)]
        precision: Precision,
    },
}

/// `bit-diffusion train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    /// What to train: a preset's name, or a file like a run's config.json; with --resume it may be left out
    #[arg(value_name = "PRESET|CONFIG.json", required_unless_present = "resume")]
    pub config: Option<String>,
    /// The folder of the run, for its checkpoint, model, settings, log and sample sheets
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,
    /// The folder of the data set; the shapes, which need no data, if left out
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Stop when the run has made this many steps, those before a resume included; the preset's number by default
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Go on with the run in the folder --out
    #[arg(long)]
    pub resume: bool,
    /// Where to compute: auto, cpu, wgpu or wgpu:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// Save the checkpoint and the model every N steps; 0 only at the end
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub save_every: usize,
    /// Make a sheet of 16 samples every N steps; 0 never
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub sheet_every: usize,
    /// What all randomness of the run descends from; 0 by default
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Pictures a step; the preset's number by default
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,
    /// Pictures at a time, to save memory; the preset's number by default
    #[arg(long, value_name = "N")]
    pub micro_batch: Option<usize>,
    /// Adam's learning rate after the warm-up; the preset's by default
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Stop after this many minutes, saving the run; no limit by default
    #[arg(long, value_name = "M")]
    pub minutes: Option<f64>,
    /// Of captions
    #[command(flatten)]
    pub captions: CaptionDataArguments,
}

/// What captions are made of, and what the captioner sees.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct CaptionDataArguments {
    /// How captions become tokens: words (those of the data), bytes, or a sentencepiece file; what the preset or the model says by default
    #[arg(long, value_name = "words|bytes|FILE.model")]
    pub tokenizer: Option<PathBuf>,
    /// The features of the pictures, made by `bit-diffusion features`, for a captioner that sees those
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
}

/// `bit-diffusion sample`.
#[derive(Debug, Args)]
pub(crate) struct SampleArguments {
    /// A model or checkpoint, the folder of a run, or a model that comes with the program: shapes-uint8, shapes-gray, shapes-rand,
    /// cifar10-small
    pub model: PathBuf,
    /// Steps from noise to picture
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub steps: usize,
    /// The rule of a step: ddim, ddpm, dpm-solver-1, dpm-solver-2, dpm-solver-3 or dpm-solver-2m
    #[arg(long, default_value = "ddim")]
    pub sampler: Sampler,
    /// The time difference, in steps: how much further each step takes the noise level than the network's clock says
    #[arg(long, default_value_t = 0.0)]
    pub td: f64,
    /// What the network is told of its last estimate: off, previous, momentum=0.5 or guide=3
    #[arg(long, default_value_t)]
    pub self_cond: SelfCond,
    /// How many pictures to make
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub n: usize,
    /// What all randomness descends from
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The class to show, counted from 0; each picture another one by default, if the model knows classes
    #[arg(long, value_name = "K")]
    pub class: Option<usize>,
    /// The weight of classifier-free guidance towards the class: 1 is none
    #[arg(long, value_name = "W", default_value_t = 1.0)]
    pub guidance: f64,
    /// Where to compute: auto, cpu, wgpu or wgpu:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// The PNG file for the sheet of all pictures
    #[arg(long, value_name = "FILE.png")]
    pub out: PathBuf,
    /// A GIF file of the chain: what the state and the estimate show at each step, for the first 16 pictures
    #[arg(long, value_name = "FILE.gif")]
    pub chain: Option<PathBuf>,
    /// A PNG file of how the analog bits of the state and the estimate are spread at each step
    #[arg(long, value_name = "FILE.png")]
    pub histogram: Option<PathBuf>,
    /// Print the settings, the time and, for shapes, the exact score as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// `bit-diffusion caption`.
#[derive(Debug, Args)]
pub(crate) struct CaptionArguments {
    /// A captioner or its checkpoint, the folder of its run, or one that comes with the program: shapes-captions, shapes-captions-ar, coco-small
    pub model: PathBuf,
    /// Pictures to caption, PNG or JPEG
    #[arg(value_name = "IMAGE", required_unless_present = "scenes")]
    pub images: Vec<PathBuf>,
    /// Caption so many random scenes of shapes in place of picture files
    #[arg(long, value_name = "N", conflicts_with = "images")]
    pub scenes: Option<usize>,
    /// Steps from noise to captions
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub steps: usize,
    /// The rule of a step: ddim, ddpm, dpm-solver-1, dpm-solver-2, dpm-solver-3 or dpm-solver-2m
    #[arg(long, default_value = "ddim")]
    pub sampler: Sampler,
    /// The time difference, in steps: how much further each step takes the noise level than the network's clock says
    #[arg(long, default_value_t = 5.0)]
    pub td: f64,
    /// What the network is told of its last estimate: off, previous, momentum=0.5 or guide=3
    #[arg(long, default_value_t)]
    pub self_cond: SelfCond,
    /// What the noise and the scenes descend from
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Write one word after the other, with the baseline of a model that comes with the program
    #[arg(long)]
    pub autoregressive: bool,
    /// How many captions an autoregressive model keeps in mind while it writes; 1 is greedy
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub beam: usize,
    /// Of the captioner
    #[command(flatten)]
    pub captions: CaptionDataArguments,
    /// The encoder, EfficientNet-lite0, as a safetensors file, for a captioner that looks through it; `bench/features_to_safetensors.py`
    /// makes one
    #[arg(long, value_name = "FILE")]
    pub encoder: Option<PathBuf>,
    /// Where to compute: auto, cpu, wgpu or wgpu:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// Print the settings, the captions, their scores and the time as JSON
    #[arg(long)]
    pub json: bool,
}

/// `bit-diffusion eval`.
#[derive(Debug, Args)]
pub(crate) struct EvalArguments {
    /// A model or checkpoint, the folder of a run, or a model that comes with the program: shapes-uint8, shapes-gray, shapes-rand,
    /// cifar10-small, shapes-captions, shapes-captions-ar, coco-small
    pub model: PathBuf,
    /// Steps from noise to picture, one or more
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "100")]
    pub steps: Vec<usize>,
    /// Network evaluations for each picture, in place of --steps: every sampler and strategy gets as many steps as that pays for
    #[arg(long, value_name = "N,…", value_delimiter = ',', conflicts_with = "steps")]
    pub evaluations: Option<Vec<usize>>,
    /// Time differences, in steps, one or more
    #[arg(long, value_name = "TD,…", value_delimiter = ',', default_value = "0")]
    pub td: Vec<f64>,
    /// Rules of a step, one or more: ddim, ddpm, dpm-solver-1, dpm-solver-2, dpm-solver-3, dpm-solver-2m
    #[arg(long, value_name = "RULE,…", value_delimiter = ',', default_value = "ddim")]
    pub sampler: Vec<Sampler>,
    /// What the network is told of its last estimate, one or more: off, previous, momentum=0.5, guide=3
    #[arg(long, value_name = "STRATEGY,…", value_delimiter = ',', default_value = "previous")]
    pub self_cond: Vec<SelfCond>,
    /// How many pictures to make for each seed
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub n: usize,
    /// How many seeds, for the spread of the scores
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub seeds: usize,
    /// The first seed; the others follow it
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The class to show, counted from 0; each picture another one by default, if the model knows classes
    #[arg(long, value_name = "K")]
    pub class: Option<usize>,
    /// The weight of classifier-free guidance towards the class: 1 is none
    #[arg(long, value_name = "W", default_value_t = 1.0)]
    pub guidance: f64,
    /// A feature network as a safetensors file, to measure the Fréchet and the kernel distance to the data with; needs --data. Of a captioner
    /// that sees features, the features of the pictures
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
    /// The folder of the data set; the shapes if left out
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// How many pictures of the data the features are compared with
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub reference: usize,
    /// In place of sampling: the share of wrong bits when held-out pictures, noised to these times from 0 to 1, are guessed at once
    #[arg(long, value_name = "T,…", value_delimiter = ',')]
    pub bit_error: Option<Vec<f64>>,
    /// An autoregressive captioner to compare a captioner with: a row of its own, and how much longer it takes
    #[arg(long, value_name = "MODEL")]
    pub baseline: Option<PathBuf>,
    /// How many captions an autoregressive model keeps in mind while it writes; 1 is greedy
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub beam: usize,
    /// How the captions of a captioner's data become tokens, where the model does not say it: a sentencepiece file
    #[arg(long, value_name = "FILE.model")]
    pub tokenizer: Option<PathBuf>,
    /// Where to compute: auto, cpu, wgpu or wgpu:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// A folder for eval.csv, eval.json and, where something varies, the plot eval.png
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON in place of the table
    #[arg(long)]
    pub json: bool,
}

/// `bit-diffusion relabel`.
#[derive(Debug, Args)]
pub(crate) struct RelabelArguments {
    /// A captioner or its checkpoint, or the folder of its run; best one that writes word by word
    pub model: PathBuf,
    /// A folder with an archive of pictures (.tar) and a table of captions (.tsv) that have `train` in their names
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Of the captioner
    #[command(flatten)]
    pub captions: CaptionDataArguments,
    /// How many captions an autoregressive model keeps in mind while it writes; 1 is greedy
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub beam: usize,
    /// Steps from noise to captions, of bit diffusion
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub steps: usize,
    /// The time difference, in steps, of bit diffusion
    #[arg(long, default_value_t = 5.0)]
    pub td: f64,
    /// Where to compute: auto, cpu, wgpu or wgpu:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
    /// The table to write, `image_id<TAB>caption`
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// `bit-diffusion features`.
#[derive(Debug, Args)]
pub(crate) struct FeaturesArguments {
    /// The encoder, EfficientNet-lite0, as a safetensors file; `bench/features_to_safetensors.py` makes one
    #[arg(value_name = "ENCODER")]
    pub encoder: PathBuf,
    /// A folder with an archive of pictures (.tar) and a table of captions (.tsv) that have `train` in their names, or `val`
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Take the pictures to test with (`val`) in place of those to train on
    #[arg(long)]
    pub test: bool,
    /// The width and height of the pictures that the captioner will be given, in pixels
    #[arg(long, value_name = "N", default_value_t = EncoderConfig::PICTURE_SIZE)]
    pub pictures: usize,
    /// The width and height that the encoder enlarges them to; it was trained with 224
    #[arg(long, value_name = "N", default_value_t = 224)]
    pub size: usize,
    /// Where in the encoder the tokens are taken: sixteenth (112 channels), last (320) or head (1280)
    #[arg(long, default_value = "last")]
    pub layer: EncoderLayer,
    /// Pictures at a time
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub batch_size: usize,
    /// Where to compute: auto, cpu, wgpu or wgpu:N
    #[arg(long, default_value_t)]
    pub device: DeviceChoice,
}

#[cfg(test)]
mod tests {
    use bit_diffusion::{
        bits::{Codec, Encoding},
        engine::{ChainRequest, Classes, Measure, ModelInfo},
        sampler::Settings,
        schedule::Schedule,
    };

    use super::*;

    #[test]
    fn every_line_that_the_studio_copies_is_understood() {
        let info = ModelInfo {
            name: "a model".to_owned(),
            size: 16,
            channels: 3,
            codec: Codec::pixels(Encoding::Uint8),
            n_classes: 10,
            n_parameters: 1,
            schedule: Schedule::default(),
            measure: Measure::None,
        };
        for (sampler, self_cond) in Sampler::ALL.into_iter().zip(SelfCond::ALL.into_iter().cycle()) {
            let settings = Settings { n_steps: 7, td: 0.3, sampler, self_cond, guidance: 2.5, ..Settings::default() };
            let request =
                ChainRequest { settings, n: 3, seed: u64::MAX, classes: Classes::One(4), ..ChainRequest::default() };
            let line = bit_diffusion_ui::command_line(&request, &info, "", "sheet.png").unwrap();
            let parsed = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
            let Some(Command::Sample(sample)) = parsed.command else { panic!("{line}") };
            assert_eq!((sample.sampler, sample.self_cond, sample.steps), (sampler, self_cond, 7), "{line}");
            assert_eq!((sample.n, sample.seed, sample.class), (3, u64::MAX, Some(4)), "{line}");
            assert!((sample.td - 0.3).abs() < 1e-15 && (sample.guidance - 2.5).abs() < 1e-15, "{line}");
            assert_eq!((sample.model, sample.out), ("shapes-uint8".into(), "sheet.png".into()), "{line}");
        }
    }
}
