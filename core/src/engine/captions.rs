//! Captions as the engine is asked for them and gives them: plain text and numbers, never tensors.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use burn::tensor::{Device, Tensor};

use super::{EngineError, ModelId, PictureSheet};
use crate::{
    Error,
    bits::Codec,
    checkpoint::{self, Header},
    data::{
        CaptionedPictures as _, CaptionedShapes, Pictures as _,
        caption::Caption,
        folder::{Entry, Folder},
        shapes::{self, Scene},
    },
    demo::PHOTOGRAPHS,
    model::{
        Captioner, CaptionerConfig, Eye, Method, Writing,
        features::{EncoderConfig, ImageEncoder},
    },
    pause::pause,
    sampler::{Settings, n_at_once},
    schedule::Schedule,
    text::{TextError, Tokenizer},
};

/// Captions of pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptionRequest {
    /// The captioner: a demo model of captions, or an opened one.
    pub model: ModelId,
    /// What it looks at.
    pub pictures: CaptionPictures,
    /// What the noise descends from.
    pub seed: u64,
    /// How noise becomes captions; of bit diffusion only.
    pub settings: Settings,
    /// How many captions are kept in mind while one is written; of the autoregressive method only. 1 is greedy.
    pub beam: usize,
}

/// What a captioner looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptionPictures {
    /// Scenes of the shapes world that no captioner has learned from, see [`CaptionedShapes::test`].
    Shapes {
        /// How many.
        n: usize,
        /// What they descend from.
        seed: u64,
    },
    /// The photographs that come with the program, [`PHOTOGRAPHS`].
    Photographs,
    /// A picture file (PNG or JPEG); the largest square in its middle is brought to the captioner's size.
    File {
        /// What to call it.
        name: String,
        /// The file.
        bytes: Arc<[u8]>,
    },
}

/// What a panel has to know of a captioner.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptionerInfo {
    /// Its name.
    pub name: String,
    /// How its captions come about.
    pub method: Method,
    /// Width and height of its pictures, in pixels.
    pub size: usize,
    /// The number of tokens of a caption, its end and the padding too.
    pub length: usize,
    /// How tokens are written as bits.
    pub codec: Codec,
    /// Every token as it is shown to a person, in the order of the ids.
    pub pieces: Arc<[String]>,
    /// The token that ends a caption.
    pub eos: u32,
    /// The number of weights.
    pub n_parameters: u64,
    /// The schedule it was trained with, the one to sample with.
    pub schedule: Schedule,
    /// The name of the data it was trained on.
    pub data: String,
}

/// The captions after one step.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptionStep {
    /// Which step, from 0; of the autoregressive method, which token.
    pub step: usize,
    /// The clock: the time that the network was told; `None` where there is no clock.
    pub t_now: Option<f64>,
    /// How many times the network has been run, this step too.
    pub n_evaluations: usize,
    /// One for each picture.
    pub captions: Vec<CaptionView>,
}

/// A caption, as it is after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptionView {
    /// Up to its end.
    pub text: String,
    /// All of its tokens; of the autoregressive method those there are so far.
    pub tokens: Vec<TokenView>,
    /// Whether it is true of its picture, where that can be said.
    pub is_true: Option<bool>,
}

/// A token, as it is after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenView {
    /// Which.
    pub id: u32,
    /// The analog bits it is read from, the lowest first; none of the autoregressive method.
    pub bits: Vec<f32>,
    /// How sure it is, from 0 to 1: how far its least decided bit is from the threshold, or the probability of the choice.
    pub confidence: f32,
}

/// A captioner, ready to be used.
pub(super) struct CaptionModel {
    pub info: CaptionerInfo,
    pub captioner: Captioner,
    pub tokenizer: Tokenizer,
    /// What it looks through, if it does not look itself.
    encoder: Option<ImageEncoder>,
    /// What it looked at last: a panel asks for many captions of the same pictures.
    last: RefCell<Option<(CaptionPictures, Seen)>>,
}

/// Pictures that a captioner has looked at.
#[derive(Clone)]
pub(super) struct Seen {
    pub pictures: Rc<Looked>,
    /// What it sees in them, `[n, places, width]`.
    pub tokens: Tensor<3>,
}

impl CaptionModel {
    /// The captioner of a file, of which nothing is believed that was not checked; `encoder` is the file of the encoder that some look
    /// through, if there is one.
    pub fn of_file(name: &str, bytes: &[u8], encoder: Option<&[u8]>, device: &Device) -> Result<Rc<Self>, EngineError> {
        let header = checkpoint::inspect_captioner(bytes)?;
        let network = &header.config.network;
        let tokenizer = network.vocabulary.tokenizer().ok_or(EngineError::NoTokenizer)?;
        let (size, encoder) = match &network.eye {
            Eye::Convolutions { size, .. } => (*size, None),
            eye @ Eye::Features { name, .. } => {
                let config = eye.encoder().ok_or_else(|| EngineError::UnknownEncoder(name.clone()))?;
                let file = encoder.ok_or_else(|| EngineError::NeedsEncoder(name.clone()))?;
                (EncoderConfig::PICTURE_SIZE, Some(ImageEncoder::load(file, config, device)?))
            }
        };
        let captioner = checkpoint::load_captioner(bytes, device)?;
        let info = info(name, &header, &captioner, &tokenizer, size);
        Ok(Rc::new(Self { info, captioner, tokenizer, encoder, last: RefCell::default() }))
    }

    /// Looks at pictures, in pieces that a page's thread can take, or remembers what it saw in them.
    pub async fn look(&self, pictures: &CaptionPictures, device: &Device) -> Result<Seen, EngineError> {
        if let Some((_, seen)) = self.last.borrow().as_ref().filter(|(last, _)| last == pictures) {
            return Ok(seen.clone());
        }
        let looked = pictures.look(self.info.size)?;
        let one = looked.pixels.len() / looked.scenes.len();
        let at_once = n_at_once(self.info.n_parameters, self.info.size, device).min(looked.scenes.len());
        let mut tokens = Vec::new();
        for pixels in looked.pixels.chunks(at_once * one) {
            tokens.push(match &self.encoder {
                Some(encoder) => self.captioner.look_through(encoder, pixels, device)?,
                None => self.captioner.look_at_pixels(pixels, device)?,
            });
            pause().await;
        }
        let seen = Seen { pictures: Rc::new(looked), tokens: Tensor::cat(tokens, 0) };
        self.last.replace(Some((pictures.clone(), seen.clone())));
        Ok(seen)
    }

    /// The captions that analog bits stand for, `[n, bits, length]`.
    pub fn read_bits(&self, bits: &[f32], pictures: &Looked) -> Result<Vec<CaptionView>, EngineError> {
        let (n_bits, length) = (self.info.codec.bits_per_symbol(), self.info.length);
        let scale = self.info.codec.scale() as f32;
        let captions = bits.chunks_exact(n_bits * length).enumerate().map(|(i, bits)| {
            let token = |place: usize| {
                let bits: Vec<f32> = (0..n_bits).map(|bit| bits[bit * length + place]).collect();
                let confidence = bits.iter().map(|bit| bit.abs() / scale).fold(1.0, f32::min);
                Ok(TokenView { id: self.info.codec.decode(&bits)?[0], bits, confidence })
            };
            let tokens = (0..length).map(token).collect::<Result<Vec<_>, Error>>()?;
            self.view(tokens, pictures, i)
        });
        captions.collect()
    }

    /// The captions that are written so far.
    pub fn read_drafts(&self, writing: &Writing, pictures: &Looked) -> Result<Vec<CaptionView>, EngineError> {
        let captions = writing.captions().into_iter().enumerate().map(|(i, written)| {
            let tokens = written.tokens.into_iter().zip(written.probabilities);
            let tokens = tokens.map(|(id, confidence)| TokenView { id, bits: Vec::new(), confidence });
            self.view(tokens.collect(), pictures, i)
        });
        captions.collect()
    }

    fn view(&self, tokens: Vec<TokenView>, pictures: &Looked, index: usize) -> Result<CaptionView, EngineError> {
        let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        let text = self.tokenizer.decode(&ids)?;
        let is_true = pictures.scenes[index].as_ref().filter(|_| self.info.data == shapes::NAME);
        let is_true = is_true.map(|scene| text.parse::<Caption>().is_ok_and(|caption| caption.is_true_of(scene)));
        Ok(CaptionView { text, tokens, is_true })
    }
}

fn info(
    name: &str,
    header: &Header<CaptionerConfig>,
    captioner: &Captioner,
    tokenizer: &Tokenizer,
    size: usize,
) -> CaptionerInfo {
    let network = &header.config.network;
    let pieces = (0..tokenizer.n_tokens() as u32).map(|id| tokenizer.piece(id)).collect();
    CaptionerInfo {
        name: name.to_owned(),
        method: network.method,
        size,
        length: network.length,
        codec: captioner.codec().clone(),
        pieces,
        eos: tokenizer.eos(),
        n_parameters: network.n_parameters(),
        schedule: header.config.schedule,
        data: header.config.data.clone(),
    }
}

/// Pictures to caption, and the scenes that they are, if they are.
pub(super) struct Looked {
    /// Colour values, picture after picture, each `[3, size, size]`.
    pub pixels: Vec<u8>,
    pub scenes: Vec<Option<Scene>>,
}

impl CaptionPictures {
    /// The most pictures at once.
    pub const MAX: usize = 256;

    /// Brings the pictures to the captioner's size.
    fn look(&self, size: usize) -> Result<Looked, EngineError> {
        match self {
            Self::Shapes { n, seed } => {
                if !(1..=Self::MAX).contains(n) {
                    return Err(Error::argument("pictures to caption", n, format!("from 1 to {}", Self::MAX)).into());
                }
                if size != shapes::SIZE {
                    let allowed = format!("given as a file: this captioner looks at {size} × {size} pixels");
                    return Err(Error::argument("pictures to caption", "scenes of shapes", allowed).into());
                }
                let mut data = CaptionedShapes::test(*seed);
                let mut looked = Looked { pixels: Vec::new(), scenes: Vec::new() };
                for index in 0..*n {
                    let pixels = data.read(index)?.pixels;
                    looked.scenes.push(scene_of(&pixels));
                    looked.pixels.extend(pixels);
                }
                Ok(looked)
            }
            Self::Photographs => {
                let mut looked = Looked { pixels: Vec::new(), scenes: Vec::new() };
                for (name, bytes) in PHOTOGRAPHS {
                    looked.pixels.extend(square(name, bytes, size)?);
                    looked.scenes.push(None);
                }
                Ok(looked)
            }
            Self::File { name, bytes } => {
                let pixels = square(name, bytes, size)?;
                Ok(Looked { scenes: vec![scene_of(&pixels)], pixels })
            }
        }
    }
}

/// The largest square in the middle of a picture file, `[3, size, size]`.
fn square(name: &str, bytes: &[u8], size: usize) -> Result<Vec<u8>, EngineError> {
    let entries = vec![Entry { name: name.to_owned(), class: 0 }];
    Ok(Folder::new(entries, 0, 3, size, |_: &str| Ok(bytes.to_vec()))?.read(0)?.pixels)
}

/// The scene of shapes that a picture is, if it is one.
fn scene_of(pixels: &[u8]) -> Option<Scene> {
    Scene::parse(&pixels.iter().map(|&value| u32::from(value)).collect::<Vec<_>>())
}

impl Looked {
    /// The pictures as panels show them.
    pub fn sheet(&self, size: usize) -> PictureSheet {
        let symbols: Vec<u32> = self.pixels.iter().map(|&value| u32::from(value)).collect();
        PictureSheet::of(&symbols, size, 3, 256)
    }
}

impl From<TextError> for EngineError {
    fn from(error: TextError) -> Self {
        Self::Text(error)
    }
}
