//! The denoisers that the engine has: demo models, perfect denoisers, opened files. They are made when they are first used.
//!
//! Deliberately absent: the network in training, which changes from step to step.

use std::{rc::Rc, sync::Arc};

use burn::tensor::Device;

use super::{
    CaptionerInfo, Contents, EngineError, Measure, ModelId, ModelInfo, Perfect, captions::CaptionModel, view::measure,
};
use crate::{
    Error,
    bits::Codec,
    checkpoint::{self, Header},
    data::shapes::{SIZE, Scene},
    demo::Demo,
    model::{
        Denoiser, ExactDenoiser, UNet,
        features::{EncoderConfig, EncoderLayer, ImageEncoder},
    },
    rng::Rng,
    schedule::Schedule,
    train::{Kind, TrainConfig},
};

/// How many denoisers stay ready at once; others are made again when they are asked for.
const MAX_READY: usize = 8;

/// A denoiser and what panels have to know of it.
pub struct Model {
    /// What it is.
    pub info: ModelInfo,
    /// The denoiser.
    pub denoiser: Box<dyn Denoiser<4>>,
}

impl Model {
    /// A trained network, and how it was trained.
    pub(super) fn of_network(name: String, network: UNet, trained: &TrainConfig) -> Result<Self, Error> {
        let config = network.config();
        let info = ModelInfo {
            name,
            size: config.size,
            channels: config.channels,
            codec: config.codec()?,
            n_classes: config.n_classes,
            n_parameters: config.n_parameters(),
            schedule: trained.schedule,
            measure: measure(&trained.data, config.channels, config.size, config.alphabet),
        };
        Ok(Self { info, denoiser: Box::new(network) })
    }

    /// The perfect denoiser of some scenes.
    pub fn perfect(perfect: Perfect, device: &Device) -> Result<Self, Error> {
        perfect.validate()?;
        let Perfect { n_scenes, encoding, trust } = perfect;
        let codec = Codec::pixels(encoding);
        let mut rng = Rng::new(0);
        let pixels: Vec<u32> = (0..n_scenes).flat_map(|_| Scene::random(&mut rng).render()).collect();
        let points = codec.encode_tensor(&pixels, [n_scenes, 3, SIZE, SIZE], device)?;
        let denoiser = ExactDenoiser::new(points, codec.scale())?.with_trust(trust)?;
        let info = ModelInfo {
            name: format!("perfect denoiser of {n_scenes} scenes"),
            size: SIZE,
            channels: 3,
            codec,
            n_classes: 0,
            n_parameters: 0,
            schedule: Schedule::default(),
            measure: Measure::Shapes,
        };
        Ok(Self { info, denoiser: Box::new(denoiser) })
    }
}

/// Where an opened model comes from.
enum Source {
    File { name: String, bytes: Arc<[u8]> },
    Given(Rc<Model>),
}

/// All denoisers but the one in training.
pub(super) struct Models {
    /// By their number; `None` where one was closed.
    opened: Vec<Option<Source>>,
    /// Those in use, the most recent last.
    ready: Vec<(ModelId, Rc<Model>)>,
    /// The captioners in use.
    captioners: Vec<(ModelId, Rc<CaptionModel>)>,
    /// The demo models that were brought, where they are no part of the program.
    brought: Vec<(Demo, Arc<[u8]>)>,
    /// The file of the encoder that some captioners look through.
    encoder: Option<Arc<[u8]>>,
    /// Whether those that are part of the program may be used.
    pub has_demos: bool,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            opened: Vec::new(),
            ready: Vec::new(),
            captioners: Vec::new(),
            brought: Vec::new(),
            encoder: None,
            has_demos: true,
        }
    }
}

impl Models {
    /// The denoiser of a name, made if need be.
    pub fn find(&mut self, id: ModelId, device: &Device) -> Result<Rc<Model>, EngineError> {
        if let Some(at) = self.ready.iter().position(|(ready, _)| *ready == id) {
            let found = self.ready.remove(at);
            self.ready.push(found);
        } else {
            let made = self.make(id, device)?;
            self.ready.push((id, made));
            let excess = self.ready.len().saturating_sub(MAX_READY);
            self.ready.drain(..excess);
        }
        let (_, model) = self.ready.last().expect("one was just pushed");
        Ok(model.clone())
    }

    fn make(&self, id: ModelId, device: &Device) -> Result<Rc<Model>, EngineError> {
        let model = match id {
            ModelId::Demo(demo) => of_file(demo.label(), self.bytes_of(demo)?, device)?.0,
            ModelId::Perfect(perfect) => Model::perfect(perfect, device)?,
            ModelId::Training => return Err(EngineError::NoTraining),
            ModelId::Opened(number) => match self.opened.get(number as usize) {
                Some(Some(Source::Given(model))) => return Ok(model.clone()),
                Some(Some(Source::File { name, bytes })) => of_file(name, bytes, device)?.0,
                Some(None) | None => return Err(EngineError::NoModel),
            },
        };
        Ok(Rc::new(model))
    }

    /// The captioner of a name, made if need be.
    pub fn captioner(&mut self, id: ModelId, device: &Device) -> Result<Rc<CaptionModel>, EngineError> {
        if let Some((_, ready)) = self.captioners.iter().find(|(ready, _)| *ready == id) {
            return Ok(ready.clone());
        }
        let encoder = self.encoder.as_deref();
        let made = match id {
            ModelId::Demo(demo) => CaptionModel::of_file(demo.label(), self.bytes_of(demo)?, encoder, device)?,
            ModelId::Opened(number) => match self.opened.get(number as usize) {
                Some(Some(Source::File { name, bytes })) => CaptionModel::of_file(name, bytes, encoder, device)?,
                _ => return Err(EngineError::NoModel),
            },
            ModelId::Perfect(_) | ModelId::Training => return Err(EngineError::NoModel),
        };
        self.captioners.push((id, made.clone()));
        Ok(made)
    }

    /// Opens the file of a captioner.
    pub fn open_captioner(
        &mut self,
        name: String,
        bytes: Arc<[u8]>,
        device: &Device,
    ) -> Result<(ModelId, CaptionerInfo), EngineError> {
        let model = CaptionModel::of_file(&name, &bytes, self.encoder.as_deref(), device)?;
        let info = model.info.clone();
        let id = self.push(Source::File { name, bytes });
        self.captioners.push((id, model));
        Ok((id, info))
    }

    /// Keeps the file of an encoder for the captioners that look through it, if it is one.
    pub fn open_encoder(&mut self, bytes: Arc<[u8]>, device: &Device) -> Result<(), EngineError> {
        let config = EncoderConfig { size: EncoderConfig::PICTURE_SIZE, layer: EncoderLayer::Head };
        ImageEncoder::load(&bytes, config, device)?;
        self.encoder = Some(bytes);
        Ok(())
    }

    fn bytes_of(&self, demo: Demo) -> Result<&[u8], EngineError> {
        let brought = self.brought.iter().find(|(other, _)| *other == demo).map(|(_, bytes)| &**bytes);
        let embedded = Some(demo.bytes()).filter(|bytes| self.has_demos && !bytes.is_empty());
        embedded.or(brought).ok_or(EngineError::Absent(demo))
    }

    /// Takes the file of a demo model, of which nothing is believed either.
    pub fn bring(&mut self, demo: Demo, bytes: Arc<[u8]>) -> Result<(), EngineError> {
        match checkpoint::kind(&bytes)? {
            Kind::Pictures => checkpoint::inspect(&bytes).map(drop)?,
            Kind::Captions => checkpoint::inspect_captioner(&bytes).map(drop)?,
        }
        self.brought.retain(|(other, _)| *other != demo);
        self.brought.push((demo, bytes));
        Ok(())
    }

    /// Opens a file, of which nothing is believed that was not checked.
    pub fn open(
        &mut self,
        name: String,
        bytes: Arc<[u8]>,
        device: &Device,
    ) -> Result<(ModelId, ModelInfo, Header, Contents), EngineError> {
        let (model, header) = of_file(&name, &bytes, device)?;
        let is_training = checkpoint::entries(&bytes)?.iter().any(|entry| entry.name.starts_with("weights."));
        let contents = if is_training { Contents::Training } else { Contents::Network };
        let info = model.info.clone();
        let id = self.push(Source::File { name, bytes });
        self.ready.push((id, Rc::new(model)));
        Ok((id, info, header, contents))
    }

    /// Adds a denoiser that comes from no file.
    pub fn insert(&mut self, model: Model) -> ModelId {
        self.push(Source::Given(Rc::new(model)))
    }

    fn push(&mut self, source: Source) -> ModelId {
        self.opened.push(Some(source));
        ModelId::Opened(self.opened.len() as u32 - 1)
    }

    /// Forgets an opened model.
    pub fn close(&mut self, id: ModelId) {
        self.ready.retain(|(ready, _)| *ready != id);
        self.captioners.retain(|(ready, _)| *ready != id);
        if let ModelId::Opened(number) = id
            && let Some(source) = self.opened.get_mut(number as usize)
        {
            *source = None;
        }
    }

    /// Forgets what lives on a device that has failed; it is made again on the next one.
    pub fn forget_ready(&mut self) {
        self.ready.clear();
        self.captioners.clear();
    }
}

fn of_file(name: &str, bytes: &[u8], device: &Device) -> Result<(Model, Header), EngineError> {
    let header = checkpoint::inspect(bytes)?;
    let network = checkpoint::load_network(bytes, device)?;
    Ok((Model::of_network(name.to_owned(), network, &header.config)?, header))
}

/// The demo models by name, for those who offer a choice.
#[must_use]
pub fn built_in() -> Vec<ModelId> {
    let demos = Demo::PICTURES.into_iter().map(ModelId::Demo);
    demos.chain([ModelId::Perfect(Perfect::default())]).collect()
}
