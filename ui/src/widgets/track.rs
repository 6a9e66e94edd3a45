//! A chain as a panel follows it: what was asked, what has come, and whether that is still the old one.

use std::sync::Arc;

use bit_diffusion::engine::{ChainRequest, Command, Event, Frame, LiveStep, ModelInfo, Slot, StartedJob};
use egui::Ui;

use crate::session::Session;

/// What is going on with the newest request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing was asked for yet.
    Idle,
    /// It is being worked on; the pictures are still those of the request before.
    Waiting,
    /// It is being worked on, and its first steps are here.
    Coming,
    /// All steps are here.
    Complete,
    /// It was cancelled or failed.
    Stopped,
}

/// The chain of one slot.
pub(crate) struct Track {
    slot: Slot,
    asked: Option<ChainRequest>,
    phase: Phase,
    /// Of the newest request, once it has started.
    span: (usize, usize),
    /// The step of the first of the frames.
    first_step: usize,
    frames: Vec<Arc<Frame>>,
    /// The last step that could be drawn before it was here.
    live: Option<Arc<LiveStep>>,
    /// What the frames were made for, and with.
    made_for: Option<(ChainRequest, ModelInfo)>,
    info: Option<ModelInfo>,
    n_evaluations: usize,
}

impl Track {
    pub fn new(slot: Slot) -> Self {
        Self {
            slot,
            asked: None,
            phase: Phase::Idle,
            span: (0, 1),
            first_step: 0,
            frames: Vec::new(),
            live: None,
            made_for: None,
            info: None,
            n_evaluations: 0,
        }
    }

    /// Asks for a chain, if it is another one than was asked for last.
    pub fn ask(&mut self, request: &ChainRequest, session: &mut Session) {
        if self.asked.as_ref() != Some(request) {
            self.asked = Some(request.clone());
            self.ask_again(session);
        }
    }

    /// Asks for the same again: goes on with a chain that was cancelled, or takes the newest network of a training run.
    pub fn ask_again(&mut self, session: &mut Session) {
        if let Some(request) = self.asked.clone() {
            self.phase = Phase::Waiting;
            session.send(Command::Chain { slot: self.slot, request });
        }
    }

    /// Takes note of an event, if it is about this chain.
    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::Started { slot, job: StartedJob::Chain { request, first_step, end_step, .. }, model }
                if *slot == self.slot && self.asked.as_ref() == Some(&**request) =>
            {
                self.phase = Phase::Waiting;
                self.span = (*first_step, *end_step);
                self.live = None;
                self.info = Some(model.clone());
            }
            Event::Frames { slot, frames } if *slot == self.slot => {
                let Some(first) = frames.first() else { return };
                // While a slider is dragged these may be steps of the request before: seen a moment too long, they still show where it goes.
                match self.phase {
                    Phase::Waiting if first.step == self.span.0 => {
                        self.first_step = first.step;
                        self.frames.clone_from(frames);
                        self.made_for = self.asked.clone().zip(self.info.clone());
                        self.phase = Phase::Coming;
                    }
                    Phase::Coming if first.step == self.first_step + self.frames.len() => {
                        self.frames.extend(frames.iter().cloned());
                    }
                    _ => {}
                }
            }
            Event::Live { slot, step } if *slot == self.slot => self.live = Some(step.clone()),
            Event::Finished { slot, n_evaluations } if *slot == self.slot && self.phase == Phase::Coming => {
                self.phase = Phase::Complete;
                self.n_evaluations = *n_evaluations;
            }
            Event::Cancelled { slot } | Event::Failed { slot: Some(slot), .. } if *slot == self.slot => {
                self.phase = Phase::Stopped;
            }
            _ => {}
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What the engine said of the model.
    pub fn info(&self) -> Option<&ModelInfo> {
        self.info.as_ref()
    }

    /// What the steps that are here were made for, and with: the newest request's, or still those of the one before.
    pub fn made_for(&self) -> Option<&(ChainRequest, ModelInfo)> {
        self.made_for.as_ref()
    }

    /// The steps that are here.
    pub fn frames(&self) -> &[Arc<Frame>] {
        &self.frames
    }

    /// The first step of the chain, and the one after its last.
    pub fn span(&self) -> (usize, usize) {
        self.span
    }

    /// How many steps since the noise are here, those before a branch too; 0 if only an older chain's are.
    pub fn n_made(&self) -> usize {
        match self.phase {
            Phase::Idle | Phase::Waiting => 0,
            Phase::Coming | Phase::Complete | Phase::Stopped => self.first_step + self.frames.len(),
        }
    }

    /// A step: the one asked for, else the last that is here; `None` before the first of them.
    pub fn frame(&self, step: usize) -> Option<&Arc<Frame>> {
        let index = step.checked_sub(self.first_step)?;
        self.frames.get(index).or(self.frames.last())
    }

    /// The step after those that are here, while it can be drawn and its numbers are on their way.
    pub fn live(&self) -> Option<&Arc<LiveStep>> {
        let next = self.first_step + self.frames.len();
        self.live.as_ref().filter(|live| self.phase == Phase::Coming && live.step == next)
    }

    /// Says what is going on, where there is something to say, and how to go on with a chain that was cancelled.
    pub fn phase_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        match self.phase {
            Phase::Waiting => {
                ui.spinner();
                ui.label(if self.frames.is_empty() {
                    "waiting for the first step…"
                } else {
                    "working on the new settings…"
                });
            }
            Phase::Coming => {
                let (first, end) = self.span;
                ui.label(format!("{} of {} steps made", self.frames.len(), end - first));
            }
            Phase::Stopped => {
                ui.label("stopped");
                if ui.button("Go on").on_hover_text("What was made is kept; the rest is made now").clicked() {
                    self.ask_again(session);
                }
            }
            Phase::Idle | Phase::Complete => {}
        }
    }
}
