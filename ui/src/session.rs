//! The session: what all panels share. The engine, the models there are, and what it last said of itself.
//!
//! Deliberately absent: what belongs to one panel only. A panel sends commands through here and gets the events of its slots.

use bit_diffusion::{
    demo::Demo,
    engine::{Command, Event, Memory, ModelId, ModelInfo, Perfect, Slot},
};

use crate::files::{Brought, Save};

/// The way to an engine, wherever it runs: a thread of the desktop, a task of the page. Neither call ever waits.
pub trait Link {
    /// Asks for something.
    fn send(&mut self, command: Command);
    /// The next thing that happened, if anything did.
    fn try_recv(&mut self) -> Option<Event>;
}

/// A model that can be chosen.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub id: ModelId,
    pub name: String,
}

/// What all panels share.
pub(crate) struct Session {
    link: Box<dyn Link>,
    /// Every model that can be chosen.
    pub models: Vec<Model>,
    /// The one in use.
    pub model: ModelId,
    /// What the engine said of the model in use, once it has.
    pub info: Option<ModelInfo>,
    /// What the numbers are worked out on, and why.
    pub device: String,
    /// The memory of kept chains.
    pub memory: Option<Memory>,
    /// Files that the shell has yet to write.
    pub saves: Vec<Save>,
    /// Files that a person brought and no panel has taken yet.
    pub inbox: Vec<Brought>,
}

impl Session {
    pub fn new(link: Box<dyn Link>) -> Self {
        let demos = Demo::ALL.into_iter().map(|demo| Model { id: ModelId::Demo(demo), name: demo.label().to_owned() });
        let perfect = Model { id: ModelId::Perfect(Perfect::default()), name: "perfect denoiser".to_owned() };
        Self {
            link,
            models: demos.chain([perfect]).collect(),
            model: ModelId::default(),
            info: None,
            device: String::new(),
            memory: None,
            saves: Vec::new(),
            inbox: Vec::new(),
        }
    }

    /// Asks the engine for something.
    pub fn send(&mut self, command: Command) {
        self.link.send(command);
    }

    /// Everything that has happened since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.link.try_recv()).collect()
    }
}

/// A panel of the studio. It draws, and it hears of everything that happens; it picks out the events of its own slots.
pub(crate) trait Pane {
    /// Takes note of an event. Called before drawing, for every event, also while the panel is not shown.
    fn on_event(&mut self, event: &Event, session: &mut Session);
    /// Draws the panel into all of `ui`.
    fn ui(&mut self, ui: &mut egui::Ui, session: &mut Session);
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
}
