//! What the engine answers: plain pictures and numbers, and textures for whoever draws with its card; never tensors.
//!
//! Events come in the order of the work. Those of a chain, a sweep or a big step come after its [`Event::Started`], and its
//! [`Event::Finished`], [`Event::Cancelled`] or [`Event::Failed`] is the last of them. A slot that is given something else gets the next
//! `Started` instead, and nothing of the old job after that.

use std::sync::Arc;

use half::f16;

use super::{
    BigStepRequest, CaptionRequest, CaptionStep, CaptionerInfo, ChainRequest, LiveStep, ModelId, Slot, SweepRequest,
};
use crate::{
    Error,
    bits::{Codec, Encoding},
    checkpoint::Header,
    data::shapes::ShapesScore,
    demo::Demo,
    metrics::bits::Histogram,
    schedule::Schedule,
    train::{Progress, TrainConfig},
};

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The device in use; the first event of all, and again when the engine had to change it.
    Device {
        /// What it is and why, a phrase without a full stop.
        description: String,
    },
    /// A job begins.
    Started {
        /// Where.
        slot: Slot,
        /// What was asked.
        job: StartedJob,
        /// The denoiser.
        model: ModelInfo,
    },
    /// Part of a job is done that has nothing to show: an evaluation inside a step, a chain of a sweep.
    Progress {
        /// Where.
        slot: Slot,
        /// Steps done.
        done: usize,
        /// Steps in all.
        total: usize,
    },
    /// Steps of a chain, in order: one at a time while they are made, all at once where they were kept.
    Frames {
        /// Where.
        slot: Slot,
        /// The steps.
        frames: Vec<Arc<Frame>>,
    },
    /// A step of a chain is made and can be drawn; it is read back next. Only where a window shares the card that computes.
    Live {
        /// Where.
        slot: Slot,
        /// The step.
        step: Arc<LiveStep>,
    },
    /// A cell of a sweep is scored.
    Cell {
        /// Where.
        slot: Slot,
        /// The cell.
        cell: Arc<Cell>,
    },
    /// A part of a big step: first the state after it, then one for each clock.
    BigStep {
        /// Where.
        slot: Slot,
        /// The part.
        part: Arc<BigStepPart>,
    },
    /// Captions begin.
    CaptionsStarted {
        /// Where.
        slot: Slot,
        /// What was asked.
        request: Arc<CaptionRequest>,
        /// The captioner.
        captioner: CaptionerInfo,
        /// The pictures, as it sees them.
        pictures: PictureSheet,
        /// How many steps there will be; of the autoregressive method, how many at most.
        n_steps: usize,
    },
    /// Captions after one more step.
    Captions {
        /// Where.
        slot: Slot,
        /// The step.
        step: Arc<CaptionStep>,
    },
    /// A job is done.
    Finished {
        /// Where.
        slot: Slot,
        /// How many times the network was run for it; 0 if everything was kept.
        n_evaluations: usize,
    },
    /// A job was dropped because it was asked for. One that another command replaced is dropped without this.
    Cancelled {
        /// Where.
        slot: Slot,
    },
    /// Something cannot be done; says what and what would help. What there was before is still there.
    Failed {
        /// Where; `None` if it belongs to no slot.
        slot: Option<Slot>,
        /// The message.
        message: String,
    },
    /// Memory of kept results has changed hands: after every job, when something was dropped, when the limit was set.
    Memory(Memory),
    /// A model or checkpoint is open.
    Opened {
        /// Where it was asked for.
        slot: Slot,
        /// How to ask for it.
        model: ModelId,
        /// The name it was given.
        name: String,
        /// What it is.
        info: ModelInfo,
        /// The settings it was trained with, and for how long.
        header: Box<Header>,
        /// What the file is good for.
        contents: Contents,
    },
    /// A captioner is open.
    OpenedCaptioner {
        /// Where it was asked for.
        slot: Slot,
        /// How to ask for it.
        model: ModelId,
        /// The name it was given.
        name: String,
        /// What it is.
        info: CaptionerInfo,
    },
    /// An encoder is open: captioners that look through it can be used from now on.
    OpenedEncoder {
        /// Where it was asked for.
        slot: Slot,
        /// The name it was given.
        name: String,
    },
    /// A demo model is needed whose file is no part of the program: [`super::Command::Bring`] it. Until then the jobs that need it wait.
    Wanted {
        /// Which.
        demo: Demo,
    },
    /// The file of a demo model is on its way. This comes from whoever fetches it, not from the engine.
    Fetching {
        /// Which.
        demo: Demo,
        /// Bytes that are here.
        received: usize,
        /// Bytes in all, where that is known.
        total: Option<usize>,
    },
    /// A picture file is decoded.
    Picture {
        /// Where it was asked for.
        slot: Slot,
        /// The name it was given.
        name: String,
        /// The picture, at the model's size.
        picture: PictureSheet,
    },
    /// News of the training run.
    Training {
        /// The slot that started it.
        slot: Slot,
        /// What happened.
        event: TrainingEvent,
    },
}

/// What was asked, as it begins.
#[derive(Debug, Clone)]
pub enum StartedJob {
    /// A chain.
    Chain {
        /// The request.
        request: Arc<ChainRequest>,
        /// The step of the first frame that will come: 0, or where a branch begins.
        first_step: usize,
        /// The step after the last frame.
        end_step: usize,
        /// How many frames were kept; they come at once.
        n_kept: usize,
    },
    /// A sweep.
    Sweep(Arc<SweepRequest>),
    /// A big step.
    BigStep(Arc<BigStepRequest>),
}

/// What a file is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// A network for sampling.
    Network,
    /// A training run, that can also go on.
    Training,
}

/// What a panel has to know of a denoiser.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// Its name.
    pub name: String,
    /// Width and height of its pictures, in pixels.
    pub size: usize,
    /// Colour channels: 1 or 3.
    pub channels: usize,
    /// How colour values are written.
    pub codec: Codec,
    /// The number of classes; 0 for none.
    pub n_classes: usize,
    /// The number of weights; 0 for a perfect denoiser.
    pub n_parameters: u64,
    /// The schedule it was trained with, the one to sample with.
    pub schedule: Schedule,
    /// What its pictures can be measured by.
    pub measure: Measure,
}

/// The most numbers of a state: 256 MB, of which a chain has several.
const MAX_STATE: usize = 1 << 26;

impl ModelInfo {
    /// How colour values are written.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.codec.encoding()
    }

    /// The shape of `n` states: `[n, channels · bits, size, size]`.
    #[must_use]
    pub fn state_shape(&self, n: usize) -> [usize; 4] {
        [n, self.channels * self.codec.bits_per_symbol(), self.size, self.size]
    }

    /// `Ok` if there is room for the states of `n` samples: a file may claim pictures of any size.
    pub fn check_room(&self, n: usize) -> Result<(), Error> {
        let one = self.state_shape(1).into_iter().fold(1, usize::saturating_mul);
        let (most, size) = (MAX_STATE / one, self.size);
        if n <= most {
            return Ok(());
        }
        Err(match most {
            0 => Error::argument("picture size", size, "smaller: there is no room for the bits of one picture"),
            _ => Error::argument("number of samples", n, format!("at most {most} of {size} × {size} pixels")),
        })
    }

    /// Whether a state of one can be continued by the other.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        self.codec == other.codec && self.state_shape(1) == other.state_shape(1)
    }
}

/// What pictures can be measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// They are scenes of the shapes world: see [`ShapesScore`].
    Shapes,
    /// Nothing exact.
    None,
}

/// Pictures of one size, read from analog bits by threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureSheet {
    /// How many.
    pub n: usize,
    /// Width and height of each, in pixels.
    pub size: usize,
    /// Values a pixel: 1 (grey) or 3 (red, green, blue).
    pub channels: usize,
    /// Values of 0 to 255, picture after picture, each `[size, size, channels]`, row by row.
    pub pixels: Arc<[u8]>,
}

impl PictureSheet {
    /// The pictures of symbols `[n, channels, size, size]`, of an alphabet of `alphabet` colour values: value k of K is as bright as
    /// k/(K − 1).
    #[must_use]
    pub fn of(symbols: &[u32], size: usize, channels: usize, alphabet: usize) -> Self {
        let plane = size * size;
        let highest = alphabet as u32 - 1;
        let bright = |symbol: u32| ((symbol * 255 + highest / 2) / highest) as u8;
        let pictures = symbols.chunks_exact(channels * plane);
        let n = pictures.len();
        let pixels = pictures.flat_map(|picture| {
            (0..plane).flat_map(move |i| (0..channels).map(move |channel| bright(picture[channel * plane + i])))
        });
        Self { n, size, channels, pixels: pixels.collect() }
    }

    /// The values of picture `index`.
    #[must_use]
    pub fn picture(&self, index: usize) -> &[u8] {
        let one = self.size * self.size * self.channels;
        &self.pixels[index * one..(index + 1) * one]
    }
}

/// Analog bits, and what is read from them.
#[derive(Debug, Clone)]
pub struct View {
    /// The analog bits in half floats, `[n, channels · bits, size, size]`; the lowest bit of a channel first.
    pub bits: Arc<[f16]>,
    /// The pictures that they stand for.
    pub pictures: PictureSheet,
    /// How they are spread between −3·scale and 3·scale.
    pub histogram: Histogram,
    /// The share of them nearer than 0.1·scale to a mode.
    pub share_near_modes: f64,
    /// How exact the pictures are, where that can be said.
    pub score: Option<ShapesScore>,
}

/// One step of a chain.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Which step since the noise, from 0.
    pub step: usize,
    /// The clock: the time that the network was told.
    pub t_now: f64,
    /// The time that the step took the state to.
    pub t_next: f64,
    /// How many estimates the network has made of each sample since the noise, this step too.
    pub n_evaluations: usize,
    /// The state that the step started from.
    pub x_t: View,
    /// The estimate x̃₀ of the step; of the last step, the result.
    pub x_pred: View,
}

impl Frame {
    /// The memory it takes, in bytes, short of a few numbers.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        let of = |view: &View| view.bits.len() * size_of::<f16>() + view.pictures.pixels.len();
        of(&self.x_t) + of(&self.x_pred) + size_of::<Self>()
    }
}

/// A cell of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The number of steps.
    pub n_steps: usize,
    /// The time difference, in steps.
    pub td: f64,
    /// How exact the pictures are, the mean over all seeds, where that can be said.
    pub score: Option<ShapesScore>,
    /// The share of decided bits in the results, the mean over all seeds.
    pub share_near_modes: f64,
    /// How many times the network was run for one picture.
    pub n_evaluations: usize,
    /// The pictures of the first seed.
    pub pictures: PictureSheet,
}

/// A part of the paper's Figure 3.
#[derive(Debug, Clone)]
pub struct BigStepPart {
    /// The clock that the network was told; `None` for the state itself, after the big step.
    pub told: Option<f64>,
    /// The pictures, by threshold.
    pub view: View,
    /// How many pixels have a colour that is not of the palette, all pictures together; `None` where there is no palette.
    pub n_noisy: Option<usize>,
    /// How many pixels differ from the clean pictures, all together.
    pub n_changed: usize,
    /// How many pixels there are, all together.
    pub n_pixels: usize,
    /// The clean pictures.
    pub clean: PictureSheet,
}

/// The memory of kept results. What the reader of events holds on to is shared with it, and lives on when it is dropped here.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// In use, in bytes.
    pub used: usize,
    /// The limit, in bytes.
    pub limit: usize,
    /// How many results are kept.
    pub n_kept: usize,
    /// The chains that were just dropped, to stay below the limit: the oldest first.
    pub dropped: Vec<ChainRequest>,
}

/// News of the training run.
#[derive(Debug, Clone)]
pub enum TrainingEvent {
    /// The run begins, or goes on from a checkpoint.
    Started {
        /// Its settings.
        config: Box<TrainConfig>,
        /// What its network is.
        info: ModelInfo,
        /// Steps already made.
        n_steps: usize,
        /// Steps it will have made at its end.
        end: usize,
    },
    /// A step of training.
    Step(Progress),
    /// A step on the way to a sheet of samples.
    Sampling {
        /// Steps of the chain made.
        step: usize,
        /// Steps of the chain in all.
        n_steps: usize,
    },
    /// A sheet of samples.
    Sheet {
        /// Steps of training that it comes after.
        n_steps: usize,
        /// The pictures.
        pictures: PictureSheet,
        /// How exact they are, where that can be said.
        score: Option<ShapesScore>,
    },
    /// A file that training can go on from: due, asked for, or the last one of a run that was stopped.
    Checkpoint {
        /// Steps of training that it comes after.
        n_steps: usize,
        /// The file.
        bytes: Arc<[u8]>,
    },
    /// A file for sampling, as asked for.
    Exported {
        /// Steps of training that it comes after.
        n_steps: usize,
        /// The file.
        bytes: Arc<[u8]>,
    },
    /// No more steps for now. After an error too: what was learned is still there, and can be saved or resumed.
    Paused,
    /// It goes on.
    Resumed,
    /// All steps are made; the network stays in use until the next run.
    Ended,
    /// It was stopped, and is gone.
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_as_many_samples_as_fit() {
        let info = |size: usize| ModelInfo {
            name: String::new(),
            size,
            channels: 3,
            codec: Codec::pixels(Encoding::Uint8),
            n_classes: 0,
            n_parameters: 0,
            schedule: Schedule::default(),
            measure: Measure::None,
        };
        info(32).check_room(1024).unwrap();
        // 24 × 64 × 64 numbers each, and 2²⁶ in all.
        info(64).check_room(682).unwrap();
        assert!(info(64).check_room(683).unwrap_err().to_string().contains("at most 682 of 64 × 64 pixels"));
        // What a file may claim.
        assert!(info(4096).check_room(1).unwrap_err().to_string().contains("picture size is 4096"));
        assert!(info(usize::MAX).check_room(1).is_err());
    }
}
