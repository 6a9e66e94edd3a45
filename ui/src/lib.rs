//! The studio: every panel, on egui alone, so that the window and the page show the same.
//!
//! The shells bring an engine behind a [`Link`] and draw [`Studio::ui`] once a frame. Deliberately absent: windows, canvases, files and
//! threads.

mod chooser;
mod controls;
pub mod files;
mod panels;
mod session;
mod shortcuts;
mod status;
mod theme;
mod widgets;

use std::sync::Arc;

use bit_diffusion::engine::{Command, Event};
use files::{Brought, Kind, Save};
use panels::{
    bits::Bits, chain::Chain, self_cond::SelfCond, time_difference::TimeDifference, toy::ToyPanel, train::Train,
};
use session::{Pane, Session, slots};

pub use session::Link;

/// The name on the window and the page.
pub const TITLE: &str = "Bit Diffusion Studio";

/// One view of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The reverse chain on pictures.
    Chain,
    /// What the clock says against where the state is.
    TimeDifference,
    /// Analog bits and encodings.
    Bits,
    /// The four ways of self-conditioning.
    SelfCond,
    /// One bit in one dimension.
    Toy,
    /// Training a network.
    Train,
}

impl Panel {
    /// Every panel, in the order of their tabs.
    pub const ALL: [Self; 6] = [Self::Chain, Self::TimeDifference, Self::Bits, Self::SelfCond, Self::Toy, Self::Train];

    /// The text on the tab.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Chain => "Noise to pictures",
            Self::TimeDifference => "Time difference",
            Self::Bits => "Bits",
            Self::SelfCond => "Self-conditioning",
            Self::Toy => "One bit",
            Self::Train => "Train",
        }
    }
}

/// The whole program, but for the window around it and the engine behind it.
pub struct Studio {
    session: Session,
    panel: Panel,
    chain: Chain,
    time_difference: TimeDifference,
    bits: Bits,
    self_cond: SelfCond,
    toy: ToyPanel,
    train: Train,
    status: status::Status,
    shortcuts: shortcuts::Shortcuts,
    /// Whether the colours are in place.
    is_themed: bool,
}

impl Studio {
    /// A studio on an engine.
    #[must_use]
    pub fn new(link: Box<dyn Link>) -> Self {
        Self {
            session: Session::new(link),
            panel: Panel::Chain,
            chain: Chain::default(),
            time_difference: TimeDifference::default(),
            bits: Bits::default(),
            self_cond: SelfCond::default(),
            toy: ToyPanel::new(),
            train: Train::default(),
            status: status::Status::default(),
            shortcuts: shortcuts::Shortcuts::default(),
            is_themed: false,
        }
    }

    /// Takes note of what the engine has done, and draws the studio.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        if !std::mem::replace(&mut self.is_themed, true) {
            theme::install(ui.ctx());
        }
        for event in self.session.events() {
            self.on_event(&event);
        }
        self.keys(ui);
        egui::Panel::top("tabs").show(ui, |ui| self.top_ui(ui));
        egui::Panel::bottom("status").show(ui, |ui| self.status.ui(ui, &mut self.session));
        if !self.session.errors.is_empty() {
            egui::Panel::top("errors").show(ui, |ui| errors_ui(ui, &mut self.session.errors));
        }
        self.shortcuts.ui(ui);
        match self.pane() {
            Some((pane, session)) => pane.ui(ui, session),
            None => self.toy.ui(ui),
        }
    }

    /// Brings a panel to the front.
    pub fn show(&mut self, panel: Panel) {
        self.panel = panel;
    }

    /// How many steps of the picture chain have been made, and how many there will be.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        self.chain.progress()
    }

    /// Opens a file that a person brought: a picture (PNG or JPEG) for the panels that take one, anything else as a model.
    pub fn open(&mut self, name: &str, bytes: Arc<[u8]>) {
        let (slot, name) = (slots::FILES, name.to_owned());
        let kind = Kind::of(&bytes);
        if self.panel == Panel::Train && kind != Kind::Unknown {
            // Pictures to learn, or a run to go on with.
            self.session.inbox.push(Brought { name: name.clone(), bytes: bytes.clone() });
        }
        if kind != Kind::Picture {
            self.session.send(Command::Open { slot, name, bytes });
        } else if self.panel != Panel::Train {
            let model = self.session.model;
            self.session.send(Command::OpenPicture { slot, name, bytes, model });
            self.panel = Panel::Bits;
        }
    }

    /// The files that are to be written since the last call; a browser downloads them.
    #[must_use]
    pub fn take_saves(&mut self) -> Vec<Save> {
        std::mem::take(&mut self.session.saves)
    }

    /// Says that something outside of the engine failed, where the person looks.
    pub fn report(&mut self, error: String) {
        self.session.errors.push(error);
    }

    fn on_event(&mut self, event: &Event) {
        self.session.on_event(event);
        let panes: [&mut dyn Pane; 5] =
            [&mut self.chain, &mut self.time_difference, &mut self.bits, &mut self.self_cond, &mut self.train];
        for pane in panes {
            pane.on_event(event, &mut self.session);
        }
    }

    /// The panel in front, if it talks to the engine.
    fn pane(&mut self) -> Option<(&mut dyn Pane, &mut Session)> {
        let pane: &mut dyn Pane = match self.panel {
            Panel::Chain => &mut self.chain,
            Panel::TimeDifference => &mut self.time_difference,
            Panel::Bits => &mut self.bits,
            Panel::SelfCond => &mut self.self_cond,
            Panel::Train => &mut self.train,
            Panel::Toy => return None,
        };
        Some((pane, &mut self.session))
    }

    fn keys(&mut self, ui: &egui::Ui) {
        match self.shortcuts.pressed(ui) {
            Some(shortcuts::Key::Panel(index)) => self.panel = Panel::ALL[index],
            Some(shortcuts::Key::Undo) => {
                if let Some((pane, _)) = self.pane() {
                    pane.undo();
                }
            }
            None => {}
        }
    }

    fn top_ui(&mut self, ui: &mut egui::Ui) {
        ui.add_space(2.0);
        ui.horizontal_wrapped(|ui| {
            // The window and the page have the name too: where there is little room it may go.
            if ui.available_width() > 1150.0 {
                ui.heading(TITLE);
                ui.add_space(8.0);
            }
            for panel in Panel::ALL {
                ui.selectable_value(&mut self.panel, panel, panel.label());
            }
            ui.add_space(8.0);
            chooser::ui(ui, &mut self.session);
            theme::ui(ui);
            if ui.button("?").on_hover_text("Keyboard shortcuts").clicked() {
                self.shortcuts.toggle();
            }
        });
        ui.add_space(2.0);
    }
}

/// What could not be done, until it is dismissed.
fn errors_ui(ui: &mut egui::Ui, errors: &mut Vec<String>) {
    let mut dismissed = None;
    egui::ScrollArea::vertical().max_height(120.0).show(ui, |ui| {
        for (index, error) in errors.iter().enumerate() {
            ui.horizontal_wrapped(|ui| {
                if ui.button("Dismiss").clicked() {
                    dismissed = Some(index);
                }
                ui.colored_label(ui.visuals().error_fg_color, error);
            });
        }
    });
    if let Some(index) = dismissed {
        errors.remove(index);
    }
}
