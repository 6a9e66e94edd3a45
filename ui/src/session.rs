//! The session: what all panels share. The engine, the models there are, and what it last said of itself.
//!
//! Deliberately absent: what belongs to one panel only. A panel sends commands through here and gets the events of its slots.

use std::collections::BTreeMap;

#[cfg(not(target_arch = "wasm32"))]
use bit_diffusion::engine::Handle;
use bit_diffusion::{
    demo::Demo,
    engine::{Command, Event, LivePicture, Memory, ModelId, ModelInfo, Perfect, Slot, StartedJob, TrainingEvent},
};
use egui::TextureId;

use crate::{
    files::{Brought, Save},
    kept::Kept,
};

/// The way to an engine, wherever it runs: a thread of the desktop, a task of the page. No call ever waits.
pub trait Link {
    /// Asks for something.
    fn send(&mut self, command: Command);
    /// The next thing that happened, if anything did.
    fn try_recv(&mut self) -> Option<Event>;
    /// How many times the engine has run a network so far.
    fn n_evaluations(&self) -> u64;
}

#[cfg(not(target_arch = "wasm32"))]
impl Link for Handle {
    fn send(&mut self, command: Command) {
        Handle::send(self, command);
    }

    fn try_recv(&mut self) -> Option<Event> {
        Handle::try_recv(self)
    }

    fn n_evaluations(&self) -> u64 {
        Handle::n_evaluations(self)
    }
}

/// Makes a texture that the engine fills one that egui draws, with sharp pixels: gives it a name, the one of another texture if that is not drawn
/// any more.
pub type BindTexture = Box<dyn FnMut(&LivePicture, Option<TextureId>) -> TextureId>;

/// A model that can be chosen.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub id: ModelId,
    pub name: String,
    /// What the engine said of it, once it has.
    pub info: Option<ModelInfo>,
}

/// How far a job has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub done: usize,
    pub total: usize,
}

/// A job under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub at: Done,
    /// Of a chain, its first step and the number of its steps.
    span: Option<(usize, usize)>,
}

/// The training run there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainingRun {
    pub at: Done,
    /// Whether it makes steps.
    pub is_running: bool,
}

/// What all panels share.
pub(crate) struct Session {
    link: Box<dyn Link>,
    /// Where the engine computes with the card that draws.
    pub bind_texture: Option<BindTexture>,
    /// Every model that can be chosen.
    pub models: Vec<Model>,
    /// The one in use; see [`Self::choose`].
    pub model: ModelId,
    /// What the engine said of the model in use, once it has.
    pub info: Option<ModelInfo>,
    /// What the numbers are worked out on, and why.
    pub device: String,
    /// The memory of kept chains.
    pub memory: Option<Memory>,
    /// The jobs under way.
    pub jobs: BTreeMap<Slot, Job>,
    /// The training run there is.
    pub training: Option<TrainingRun>,
    /// The demo model that is on its way, and how far.
    pub fetching: Option<(Demo, Done)>,
    /// What could not be done, the oldest first, until a person has read it.
    pub errors: Vec<String>,
    /// Files that the shell has yet to write.
    pub saves: Vec<Save>,
    /// Files that a person brought and no panel has taken yet.
    pub inbox: Vec<Brought>,
}

impl Session {
    pub fn new(link: Box<dyn Link>) -> Self {
        let demos = Demo::PICTURES.into_iter().map(|demo| (ModelId::Demo(demo), demo.label().to_owned()));
        let perfect = (ModelId::Perfect(Perfect::default()), "perfect denoiser".to_owned());
        Self {
            link,
            bind_texture: None,
            models: demos.chain([perfect]).map(|(id, name)| Model { id, name, info: None }).collect(),
            model: ModelId::default(),
            info: None,
            device: String::new(),
            memory: None,
            jobs: BTreeMap::new(),
            training: None,
            fetching: None,
            errors: Vec::new(),
            saves: Vec::new(),
            inbox: Vec::new(),
        }
    }

    /// Asks the engine for something.
    pub fn send(&mut self, command: Command) {
        if let Command::Chain { slot, .. }
        | Command::Sweep { slot, .. }
        | Command::BigStep { slot, .. }
        | Command::Captions { slot, .. } = &command
        {
            // Under way from now on, though the engine may be busy with another: it can be cancelled.
            self.jobs.insert(*slot, Job { at: Done { done: 0, total: 1 }, span: None });
        }
        self.link.send(command);
    }

    /// Everything that has happened since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.link.try_recv()).collect()
    }

    /// How many times the engine has run a network so far.
    pub fn n_evaluations(&self) -> u64 {
        self.link.n_evaluations()
    }

    /// Brings a model into use, in every panel.
    pub fn choose(&mut self, model: ModelId) {
        if self.model != model {
            self.model = model;
            let known = self.models.iter().find(|known| known.id == model);
            self.info = known.and_then(|known| known.info.clone());
        }
    }

    /// Brings a model that needs no file into use; others are not there when the program starts.
    pub fn restore_model(&mut self, model: ModelId) {
        if let ModelId::Perfect(perfect) = model {
            let is_usable = perfect.validate().is_ok() && (0.0..=0.01).contains(&perfect.trust);
            let listed = self.models.iter_mut().find(|listed| matches!(listed.id, ModelId::Perfect(_)));
            if let (true, Some(listed)) = (is_usable, listed) {
                listed.id = model;
            }
        }
        if self.models.iter().any(|listed| listed.id == model) {
            self.choose(model);
        }
    }

    /// Takes note of what concerns everybody. The panels hear of it afterwards.
    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::Device { description } => self.device.clone_from(description),
            Event::Memory(memory) => self.memory = Some(memory.clone()),
            Event::Started { slot, job, model } => {
                let (id, total, span) = match job {
                    StartedJob::Chain { request, first_step, end_step, .. } => {
                        let n_steps = end_step - first_step;
                        (request.model, n_steps, Some((*first_step, n_steps)))
                    }
                    StartedJob::Sweep(request) => (request.model, request.steps.len() * request.td.len(), None),
                    StartedJob::BigStep(request) => (request.model, request.told.len() + 1, None),
                };
                self.jobs.insert(*slot, Job { at: Done { done: 0, total }, span });
                self.learn(id, model);
            }
            Event::Progress { slot, done, total } => {
                if let Some(job) = self.jobs.get_mut(slot) {
                    job.at = Done { done: *done, total: *total };
                }
            }
            Event::Frames { slot, frames } => {
                if let (Some(job), Some(last)) = (self.jobs.get_mut(slot), frames.last())
                    && let Some((first_step, total)) = job.span
                {
                    job.at = Done { done: last.step + 1 - first_step, total };
                }
            }
            Event::CaptionsStarted { slot, n_steps, .. } => {
                self.jobs.insert(*slot, Job { at: Done { done: 0, total: *n_steps }, span: None });
            }
            Event::Captions { slot, step } => {
                if let Some(job) = self.jobs.get_mut(slot) {
                    job.at.done = step.step + 1;
                }
            }
            Event::Finished { slot, .. } | Event::Cancelled { slot } => {
                self.jobs.remove(slot);
            }
            Event::Failed { slot, message } => {
                if let Some(slot) = slot {
                    self.jobs.remove(slot);
                }
                self.fetching = None;
                // What several jobs need fails once for each of them.
                if !self.errors.contains(message) {
                    self.errors.push(message.clone());
                }
            }
            Event::Fetching { demo, received, total } => {
                let at = Done { done: *received, total: total.unwrap_or(0) };
                self.fetching = (*total != Some(*received)).then_some((*demo, at));
            }
            Event::Opened { model, name, info, .. } => {
                self.insert(*model, name, info);
                self.choose(*model);
            }
            Event::Training { event, .. } => self.on_training(event),
            Event::Live { .. }
            | Event::Cell { .. }
            | Event::BigStep { .. }
            | Event::Picture { .. }
            | Event::OpenedCaptioner { .. }
            | Event::OpenedEncoder { .. }
            | Event::Wanted { .. } => {}
        }
    }

    fn on_training(&mut self, event: &TrainingEvent) {
        match event {
            TrainingEvent::Started { info, n_steps, end, .. } => {
                self.insert(ModelId::Training, "the training run", info);
                let at = Done { done: *n_steps, total: *end };
                self.training = Some(TrainingRun { at, is_running: true });
            }
            TrainingEvent::Step(progress) => {
                if let Some(training) = &mut self.training {
                    training.at.done = progress.n_steps;
                }
            }
            TrainingEvent::Resumed | TrainingEvent::Paused | TrainingEvent::Ended => {
                if let Some(training) = &mut self.training {
                    training.is_running = matches!(event, TrainingEvent::Resumed);
                }
            }
            TrainingEvent::Stopped => {
                self.training = None;
                self.models.retain(|model| model.id != ModelId::Training);
                if self.model == ModelId::Training {
                    self.choose(ModelId::default());
                }
            }
            TrainingEvent::Sampling { .. }
            | TrainingEvent::Sheet { .. }
            | TrainingEvent::Checkpoint { .. }
            | TrainingEvent::Exported { .. } => {}
        }
    }

    fn insert(&mut self, id: ModelId, name: &str, info: &ModelInfo) {
        self.models.retain(|model| model.id != id);
        self.models.push(Model { id, name: name.to_owned(), info: Some(info.clone()) });
        self.learn(id, info);
    }

    fn learn(&mut self, id: ModelId, info: &ModelInfo) {
        if let Some(model) = self.models.iter_mut().find(|model| model.id == id) {
            model.info = Some(info.clone());
        }
        if self.model == id {
            self.info = Some(info.clone());
        }
    }
}

/// A panel of the studio. It draws, and it hears of everything that happens; it picks out the events of its own slots.
///
/// Errors are not its business: the frame shows every [`Event::Failed`] above the panel, with a button to dismiss it.
pub(crate) trait Pane: Kept {
    /// Takes note of an event. Called before drawing, for every event, also while the panel is not shown.
    fn on_event(&mut self, _event: &Event, _session: &mut Session) {}
    /// Draws the panel into all of `ui`.
    fn ui(&mut self, ui: &mut egui::Ui, session: &mut Session);
    /// Takes back the last change of its settings.
    fn undo(&mut self);
}

/// The slots of the panels; each may use ten from its own on.
pub(crate) mod slots {
    use super::Slot;

    pub const CHAIN: Slot = Slot(0);
    pub const TIME_DIFFERENCE: Slot = Slot(10);
    pub const BITS: Slot = Slot(20);
    pub const SELF_COND: Slot = Slot(30);
    pub const TRAIN: Slot = Slot(40);
    pub const FILES: Slot = Slot(50);
    pub const CAPTIONS: Slot = Slot(60);
}
