//! The studio: every panel, on egui alone, so that the window and the page show the same.
//!
//! The shells bring an engine behind a [`Link`] and draw [`Studio::ui`] once a frame. Deliberately absent: windows, canvases, files and
//! threads.

mod address;
mod appearance;
mod chooser;
mod command_line;
mod controls;
mod export;
pub mod files;
mod kept;
mod panel;
mod panels;
mod session;
mod shortcuts;
mod status;
mod theme;
mod tour;
mod widgets;

use std::sync::Arc;

use appearance::Appearance;
use bit_diffusion::{
    engine::{Command, Event, ModelId},
    saved::Saved,
};
use export::{Exporter, Shown};
use files::{Brought, Kind, Save};
use panels::Panes;
use session::{Session, slots};

pub use appearance::{WindowSize, kept_window};
pub use command_line::{batch_size, caption_line, command_line};
pub use panel::Panel;
pub use session::{BindTexture, Link};

/// The name on the window and the page.
pub const TITLE: &str = "Bit Diffusion Studio";

/// How often changed settings are kept, in seconds.
const KEEP_SECONDS: f64 = 1.0;

/// The whole program, but for the window around it and the engine behind it.
pub struct Studio {
    session: Session,
    panel: Panel,
    panes: Panes,
    status: status::Status,
    shortcuts: shortcuts::Shortcuts,
    tour: tour::Tour,
    exporter: Exporter,
    /// Files to open were asked for, and no shell has heard of it yet.
    wants_open: bool,
    /// What a shell said last, until it is dismissed.
    note: Option<String>,
    appearance: Appearance,
    /// The settings as a shell has them, and when they were last compared.
    kept: Option<String>,
    compared_at: f64,
    /// Whether they may have changed since.
    is_touched: bool,
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
            panes: Panes::default(),
            status: status::Status::default(),
            shortcuts: shortcuts::Shortcuts::default(),
            tour: tour::Tour::default(),
            exporter: Exporter::default(),
            wants_open: false,
            note: None,
            appearance: Appearance::default(),
            kept: None,
            compared_at: 0.0,
            is_touched: false,
            is_themed: false,
        }
    }

    /// Draws steps of chains as soon as they are made, from textures that the engine fills, for shells whose card it computes with.
    pub fn draw_live(&mut self, bind: BindTexture) {
        self.session.bind_texture = Some(bind);
    }

    /// Takes note of what the engine has done, and draws the studio.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        if std::mem::replace(&mut self.is_themed, true) {
            self.appearance = Appearance::of(ui.ctx());
        } else {
            theme::install(ui.ctx());
            self.appearance.apply(ui.ctx());
        }
        theme::limit_scale(ui.ctx());
        for event in self.session.events() {
            self.on_event(&event);
        }
        self.keys(ui);
        egui::Panel::top("tabs").show(ui, |ui| self.top_ui(ui));
        egui::Panel::bottom("status").show(ui, |ui| self.status.ui(ui, &mut self.session));
        if !self.session.errors.is_empty() {
            egui::Panel::top("errors").show(ui, |ui| errors_ui(ui, &mut self.session.errors));
        }
        self.exporter.work_ui(ui, &mut self.session);
        if let Some(note) = &self.note
            && egui::Panel::top("note").show(ui, |ui| note_ui(ui, note)).inner
        {
            self.note = None;
        }
        self.shortcuts.ui(ui);
        self.tour_ui(ui);
        self.panes.of_mut(self.panel).ui(ui, &mut self.session);
    }

    /// Brings a panel to the front.
    pub fn show(&mut self, panel: Panel) {
        self.panel = panel;
    }

    /// Opens the tour; the shells do, when somebody starts the program for the first time.
    pub fn start_tour(&mut self) {
        self.tour.start();
    }

    /// How many steps of the picture chain have been made, and how many there will be.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        self.panes.chain.progress()
    }

    /// Opens a file that a person brought: a picture (PNG or JPEG) for the panels that take one, anything else as a model.
    pub fn open(&mut self, name: &str, bytes: Arc<[u8]>) {
        let (slot, name) = (slots::FILES, name.to_owned());
        let kind = Kind::of(&bytes);
        let is_kept = match self.panel {
            // Pictures to learn, or a run to go on with.
            Panel::Train => kind != Kind::Unknown,
            // A picture to caption.
            Panel::Captions => kind == Kind::Picture,
            _ => false,
        };
        if is_kept {
            self.session.inbox.push(Brought { name: name.clone(), bytes: bytes.clone() });
        }
        if kind != Kind::Picture {
            self.session.send(Command::Open { slot, name, bytes });
        } else if !is_kept {
            let model = self.session.model;
            self.session.send(Command::OpenPicture { slot, name, bytes, model });
            self.panel = Panel::Bits;
        }
    }

    /// Whether a person has asked for files to open since the last call: the shell shows its dialog, and hands what is chosen to
    /// [`Self::open`].
    #[must_use]
    pub fn take_wants_open(&mut self) -> bool {
        std::mem::take(&mut self.wants_open)
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

    /// Says something that is no error, where the person looks; say, where a file was written.
    pub fn say(&mut self, note: String) {
        self.note = Some(note);
    }

    /// The panel in front, every panel's settings and the layout, as text for [`Self::restore`].
    #[must_use]
    pub fn save(&self) -> String {
        let mut saved = Saved::default();
        saved.put("panel", self.panel.name());
        if let ModelId::Demo(_) | ModelId::Perfect(_) = self.session.model {
            saved.put("model", &self.session.model);
        }
        self.appearance.save(&mut saved);
        for panel in Panel::ALL {
            saved.put(panel.name(), &self.panes.of(panel).saved());
        }
        saved.to_text()
    }

    /// Takes over what [`Self::save`] gave, also another version's. What is missing or makes no sense stays as it is.
    pub fn restore(&mut self, text: &str) {
        let saved = Saved::from_text(text);
        if let Some(Ok(panel)) = saved.value("panel").map(|name: String| name.parse()) {
            self.panel = panel;
        }
        if let Some(model) = saved.value("model") {
            self.session.restore_model(model);
        }
        self.appearance.restore(&saved);
        for panel in Panel::ALL {
            self.panes.of_mut(panel).restore(&saved.part(panel.name()));
        }
        // The theme and the scale are egui's, which is there at the next frame.
        self.is_themed = false;
    }

    /// The model, the panel in front and its settings as the query of a link, for [`Self::follow`].
    #[must_use]
    pub fn link(&self) -> String {
        address::write(self.panel, self.session.model, &self.panes.of(self.panel).saved())
    }

    /// Shows what a link says. What is missing or makes no sense stays as it is.
    pub fn follow(&mut self, query: &str) {
        let address = address::read(query);
        self.panel = address.panel.unwrap_or(self.panel);
        if let Some(model) = address.model {
            self.session.restore_model(model);
        }
        // Nothing but what is there already, say after a reload: a second chain may stay.
        if address == address::read(&self.link()) {
            return;
        }
        let mut settings = address.settings;
        if self.panel == Panel::Chain {
            settings.put("branch", &None::<usize>);
        }
        self.panes.of_mut(self.panel).restore(&settings);
    }

    /// Says where the studio is on the web, so that it can offer links to what it shows.
    pub fn set_address(&mut self, address: String) {
        self.exporter.address = Some(address);
    }

    /// A few facts by name about what is going on, for scripts and tests that cannot read a canvas.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let (made, n_steps) = self.progress();
        let (captioned, n_rows) = self.panes.captions.progress();
        let model = self.session.models.iter().find(|model| model.id == self.session.model);
        vec![
            ("panel", self.panel.name().to_owned()),
            ("progress", format!("{made}/{n_steps}")),
            ("shown", self.panes.chain.shown_step().to_string()),
            ("model", model.map_or_else(String::new, |model| model.name.clone())),
            ("device", self.session.device.clone()),
            ("jobs", self.session.jobs.len().to_string()),
            ("evaluations", self.session.n_evaluations().to_string()),
            ("captions", format!("{captioned}/{n_rows}")),
            ("losses", self.panes.train.losses()),
            ("errors", self.session.errors.join("\n")),
        ]
    }

    /// The settings as text, if they have changed; asked once a frame, it answers once a second at most.
    pub fn changed_settings(&mut self, ui: &egui::Ui) -> Option<String> {
        let (now, is_used) = ui.input(|input| (input.time, !input.events.is_empty()));
        self.is_touched |= is_used;
        let is_due = now - self.compared_at >= KEEP_SECONDS;
        if is_due {
            self.compared_at = now;
            // What this frame began may show in the next.
            self.is_touched = is_used;
        }
        if self.is_touched {
            // There may be no frame after the last change, and each frame forgets what the one before asked for.
            let rest = self.compared_at + KEEP_SECONDS - now;
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(rest.max(0.0)));
        }
        if !is_due {
            return None;
        }
        let text = self.save();
        // The first time, they are those that the shell brought.
        let before = self.kept.replace(text.clone());
        before.filter(|before| *before != text).map(|_| text)
    }

    /// What the panel in front shows.
    fn shown(&self) -> Shown {
        Shown { name: self.panel.name(), ..self.panes.of(self.panel).shown() }
    }

    fn on_event(&mut self, event: &Event) {
        self.session.on_event(event);
        match event {
            // Nobody can draw it: the step itself comes soon.
            Event::Live { .. } if self.session.bind_texture.is_none() => return,
            Event::OpenedCaptioner { .. } => self.panel = Panel::Captions,
            Event::OpenedEncoder { name, .. } => {
                self.say(format!("Image encoder {name} is open: now open the captioner that looks through it, or drop a picture of your own"));
            }
            _ => {}
        }
        for panel in Panel::ALL {
            self.panes.of_mut(panel).on_event(event, &mut self.session);
        }
    }

    fn keys(&mut self, ui: &egui::Ui) {
        match self.shortcuts.pressed(ui) {
            Some(shortcuts::Key::Panel(index)) => self.panel = Panel::ALL[index],
            Some(shortcuts::Key::Undo) => self.panes.of_mut(self.panel).undo(),
            Some(shortcuts::Key::Open) => self.wants_open = true,
            None => {}
        }
    }

    fn top_ui(&mut self, ui: &mut egui::Ui) {
        ui.add_space(2.0);
        ui.horizontal_wrapped(|ui| {
            // All of it in one line from 1024 points on.
            ui.spacing_mut().item_spacing.x = 5.0;
            // The window and the page have the name too: where there is little room it may go.
            if ui.available_width() > 1390.0 {
                ui.heading(TITLE);
                ui.add_space(8.0);
            }
            if controls::is_short(ui) {
                // No room for more than a line or two.
                controls::choice(ui, "panel", "What is shown", &mut self.panel, &Panel::ALL, |panel| panel.label());
            } else {
                for panel in Panel::ALL {
                    ui.selectable_value(&mut self.panel, panel, panel.label());
                }
            }
            chooser::ui(ui, &mut self.session);
            let hint = "A model, a checkpoint or a picture; dropping it on the window does the same";
            self.wants_open |= ui.button("Open…").on_hover_text(hint).clicked();
            ui.menu_button("View", theme::menu_ui).response.on_hover_text("Light or dark, and how large everything is");
            ui.menu_button("Export", |ui| {
                let (shown, link) = (self.shown(), self.link());
                self.exporter.menu_ui(ui, shown, &link, &mut self.session);
            });
            if ui.button("Tour").on_hover_text("Seven short lessons").clicked() {
                self.tour.start();
            }
            if ui.button("?").on_hover_text("Keyboard shortcuts").clicked() {
                self.shortcuts.toggle();
            }
        });
        ui.add_space(2.0);
    }
}

/// A note, until it is dismissed; says whether it was.
fn note_ui(ui: &mut egui::Ui, note: &str) -> bool {
    let row = ui.horizontal_wrapped(|ui| {
        let is_dismissed = ui.button("Dismiss").clicked();
        ui.label(note);
        is_dismissed
    });
    row.inner
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
