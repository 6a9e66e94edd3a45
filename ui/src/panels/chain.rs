//! Noise becomes pictures: the reverse chain, step by step, and what would have become of it with other settings.
//!
//! Deliberately absent: the arithmetic. The panel asks for a chain and for a branch of it, and shows the steps that come.

mod kept;

use std::sync::Arc;

use bit_diffusion::{
    engine::{ChainRequest, Classes, Command, Event, LiveStep, ModelId, ModelInfo},
    sampler::{Sampler, Settings},
};
use egui::{RichText, ScrollArea, Slider, Ui};

use crate::{
    controls,
    session::{Pane, Session, slots},
    theme,
    widgets::{
        Player, SheetView, Track, Undo, pixel,
        quality::{self, Series},
        reading::{Read, Reading, Source},
        sheet::Hovered,
        track::Phase,
    },
};

/// The most samples that are comfortable to look at.
const MAX_SAMPLES: usize = 64;

/// The least height of the plot below the pictures.
const PLOT: f32 = 90.0;

/// The height of a title above a grid.
const TITLE: f32 = 24.0;

/// What the controls say; the model is the session's.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    settings: Settings,
    n: usize,
    seed: u64,
    classes: Classes,
    /// The step at which another chain leaves this one, and its settings.
    branch: Option<(usize, Settings)>,
}

impl Wanted {
    fn request(&self, model: ModelId) -> ChainRequest {
        let Self { settings, n, seed, classes, .. } = *self;
        ChainRequest { model, settings, n, seed, classes, branch: None }
    }
}

/// What is shown of a step.
struct Look {
    /// The noisy state, the estimate, or both.
    sources: Vec<Source>,
    reading: Reading,
    /// The bit plane to go back to.
    plane: usize,
    /// The pixel that is looked at all the time.
    pinned: Option<(Source, Hovered)>,
}

impl Look {
    /// The step after those that are here, where the card has drawn it as it is looked at.
    fn live<'a>(&self, track: &'a Track) -> Option<&'a Arc<LiveStep>> {
        track.live().filter(|_| self.reading == Reading::Threshold)
    }
}

/// A grid of pictures on the screen, and how it was read.
#[derive(Default)]
struct Grid {
    view: SheetView,
    read: Read,
}

/// Settings on the left; pictures, a plot and the timeline on the right.
pub(crate) struct Chain {
    wanted: Wanted,
    undo: Undo<Wanted>,
    main: Track,
    branch: Track,
    player: Player,
    look: Look,
    /// By chain and source.
    grids: [[Grid; 2]; 2],
}

impl Default for Chain {
    fn default() -> Self {
        let wanted = Wanted {
            settings: Settings { n_steps: 60, ..Settings::default() },
            n: 16,
            seed: 0,
            classes: Classes::Each,
            branch: None,
        };
        Self {
            undo: Undo::new(wanted.clone()),
            wanted,
            main: Track::new(slots::CHAIN),
            branch: Track::new(BRANCH),
            player: Player::default(),
            look: Look { sources: Source::ALL.to_vec(), reading: Reading::Threshold, plane: 7, pinned: None },
            grids: Default::default(),
        }
    }
}

/// The slot of the branch.
const BRANCH: bit_diffusion::engine::Slot = bit_diffusion::engine::Slot(slots::CHAIN.0 + 1);

impl Chain {
    /// For the tour: a chain of the usual length, from its beginning.
    pub fn set_up(&mut self) {
        self.wanted = Self::default().wanted;
        self.player = Player::default();
    }
}

impl Pane for Chain {
    fn on_event(&mut self, event: &Event, _session: &mut Session) {
        self.main.on_event(event);
        self.branch.on_event(event);
    }

    fn ui(&mut self, ui: &mut Ui, session: &mut Session) {
        controls::beside(ui, "chain", &mut (self, session), settings_ui, |(panel, session), ui| {
            panel.sync(ui, session);
            let (n_made, n_steps) = panel.steps();
            panel.player.advance(ui, n_made.max(panel.n_live()), n_steps);
            egui::Panel::bottom("timeline").show(ui, |ui| panel.player.ui(ui, n_made, n_steps));
            egui::CentralPanel::default().show(ui, |ui| {
                ScrollArea::both().show(ui, |ui| panel.pictures_ui(ui, session));
            });
        });
    }

    fn undo(&mut self) {
        if let Some(wanted) = self.undo.undo() {
            self.wanted = wanted;
        }
    }
}

impl Chain {
    pub fn progress(&self) -> (usize, usize) {
        (self.main.n_made(), self.wanted.settings.n_steps)
    }

    /// The step on the screen, from 1.
    pub fn shown_step(&self) -> usize {
        self.player.shown + 1
    }

    /// The steps that are here, and all; of the branch too, if there is one.
    fn steps(&self) -> (usize, usize) {
        let (made, n_steps) = self.progress();
        match self.wanted.branch {
            None => (made, n_steps),
            // The one that is ahead does not wait for the other.
            Some(_) => (made.max(self.branch.n_made()), n_steps.max(self.branch.span().1)),
        }
    }

    /// The step after the last that can be drawn before it is here; 0 if none can.
    fn n_live(&self) -> usize {
        let live = [&self.main, &self.branch].map(|track| self.look.live(track).map_or(0, |live| live.step + 1));
        live[0].max(live[1])
    }

    /// Asks for what the controls say, if that has changed.
    fn sync(&mut self, ui: &Ui, session: &mut Session) {
        let wanted = &mut self.wanted;
        if let Some(info) = &session.info {
            wanted.settings.schedule = info.schedule;
            if let Some((_, settings)) = &mut wanted.branch {
                settings.schedule = info.schedule;
            }
            if let Classes::One(class) = wanted.classes
                && class >= info.n_classes
            {
                wanted.classes = Classes::Each;
            }
        }
        let last = wanted.settings.n_steps - 1;
        wanted.branch = wanted.branch.filter(|(step, _)| *step <= last);
        self.undo.note(ui, wanted);
        let request = wanted.request(session.model);
        self.main.ask(&request, session);
        match wanted.branch {
            Some((step, settings)) => self.branch.ask(&request.branched(step, settings), session),
            None if self.branch.phase() != Phase::Idle => {
                session.send(Command::Cancel { slot: BRANCH });
                self.branch = Track::new(BRANCH);
            }
            None => {}
        }
    }

    fn branch_ui(&mut self, ui: &mut Ui) {
        ui.strong("Another way from here");
        let n_steps = self.wanted.settings.n_steps;
        let Some((step, settings)) = &mut self.wanted.branch else {
            // From the last step nothing is left to change.
            let shown = self.player.shown;
            let step = if shown + 1 < n_steps { shown } else { n_steps / 2 };
            ui.label("Go to a step, change the settings there, and see both chains side by side.");
            let button = ui.button(format!("Continue from step {} with other settings…", step + 1));
            if button.on_hover_text("The steps before are shared; the rest is made anew").clicked() {
                self.wanted.branch = Some((step, self.wanted.settings));
                self.player.go_to(step);
            }
            return;
        };
        ui.label("From this step on, the second chain has settings of its own:");
        let mut from = *step + 1;
        if ui.add(Slider::new(&mut from, 1..=n_steps).text("from step")).changed() {
            *step = from - 1;
            self.player.go_to(*step);
        }
        ui.push_id("branch", |ui| steps_ui(ui, settings));
        if ui.button("Close the second chain").clicked() {
            self.wanted.branch = None;
        }
    }

    fn look_ui(&mut self, ui: &mut Ui, info: Option<&ModelInfo>) {
        ui.strong("Show");
        let Look { sources, reading, plane, pinned } = &mut self.look;
        ui.horizontal_wrapped(|ui| {
            for source in Source::ALL {
                ui.selectable_value(sources, vec![source], source.label());
            }
            ui.selectable_value(sources, Source::ALL.to_vec(), "both");
        });
        ui.horizontal_wrapped(|ui| {
            ui.selectable_value(reading, Reading::Threshold, "by threshold")
                .on_hover_text("A bit above 0 counts as 1: the picture that the bits stand for");
            ui.selectable_value(reading, Reading::Soft, "soft")
                .on_hover_text("No threshold: a bit half way counts half");
            ui.selectable_value(reading, Reading::Plane(*plane), "one bit plane")
                .on_hover_text("One bit of every colour value: black is 0, bright is 1, between them is undecided");
        });
        let n_planes = info.map_or(8, |info| info.codec.bits_per_symbol());
        if let Reading::Plane(shown) = reading {
            *plane = (*plane).min(n_planes - 1);
            ui.add(Slider::new(plane, 0..=n_planes - 1).text("bit"))
                .on_hover_text("In UINT8, bit 7 counts 128 and bit 0 counts 1");
            *shown = *plane;
        }
        if pinned.is_none() {
            ui.weak("Point at a pixel to see its bits, click to keep it in view");
        }
        if let (Some((source, at)), Some(info)) = (*pinned, info)
            && let Some(frame) = self.main.frame(self.player.shown)
        {
            ui.separator();
            ui.label(format!("Kept in view: {}", source.label()));
            pixel::ui(ui, source.of(frame), info, at);
            if ui.button("Let go of the pixel").clicked() {
                self.look.pinned = None;
            }
        }
    }

    fn pictures_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        let shown = self.player.shown;
        let branch_at = self.wanted.branch.map(|(step, _)| step);
        let n_tracks = if branch_at.is_some() { 2 } else { 1 };
        let sources = self.look.sources.clone();
        let gap = ui.spacing().item_spacing.x;
        let room = ui.available_size();
        let width = (room.x + gap) / n_tracks as f32 - gap;
        // A few lines above each chain, a line above each grid, and the plot below.
        let height = room.y - if n_tracks == 2 { 80.0 } else { 30.0 } - PLOT - 40.0;
        let n = sources.len() as f32;
        let beside = ((width + gap) / n - gap).min(height - TITLE);
        let stacked = width.min(height / n - TITLE);
        let (side, is_stacked) = (beside.max(stacked).max(130.0), stacked > beside);
        ui.horizontal_top(|ui| {
            for track in 0..n_tracks {
                ui.vertical(|ui| {
                    ui.set_width(width);
                    self.track_ui(ui, session, track, &sources, side, is_stacked);
                });
            }
        });
        let colour = |index| theme::series(ui, index);
        let mut series = vec![Series { name: "first chain", frames: self.main.frames(), colour: colour(0) }];
        if branch_at.is_some() {
            series.push(Series { name: "second chain", frames: self.branch.frames(), colour: colour(1) });
        }
        let (_, n_steps) = self.steps();
        // What the pictures leave over is the plot's.
        let plot = (ui.available_height() - 30.0).clamp(PLOT, 3.0 * PLOT);
        if let Some(step) = quality::ui(ui, "quality of the chain", &series, shown, n_steps, plot) {
            self.player.go_to(step);
        }
    }

    /// One chain: what its step is, and its pictures.
    fn track_ui(
        &mut self,
        ui: &mut Ui,
        session: &mut Session,
        track: usize,
        sources: &[Source],
        side: f32,
        is_stacked: bool,
    ) {
        let shown = self.player.shown;
        let first = self.wanted.branch.map_or(0, |(step, _)| step);
        if self.wanted.branch.is_some() {
            let title = match track {
                0 => "First chain".to_owned(),
                _ => format!("Second chain, from step {} on", first + 1),
            };
            // As its line in the plot.
            ui.label(RichText::new(title).strong().color(theme::series(ui, track)));
        }
        // Before the branch both are the same.
        let is_shared = track == 1 && shown < first;
        let followed = if track == 1 && !is_shared { &mut self.branch } else { &mut self.main };
        let (Some(frame), Some(info)) = (followed.frame(shown).cloned(), followed.info().cloned()) else {
            ui.horizontal_wrapped(|ui| followed.phase_ui(ui, session));
            return;
        };
        // Newer than the frame; what is worked out of its numbers is still that of the frame.
        let live = self.look.live(followed).filter(|live| live.step <= shown).cloned();
        let (step, t_now, t_next, n_evaluations) = match &live {
            Some(live) => (live.step, live.t_now, live.t_next, live.n_evaluations),
            None => (frame.step, frame.t_now, frame.t_next, frame.n_evaluations),
        };
        ui.horizontal_wrapped(|ui| {
            ui.strong(format!("Step {}:", step + 1));
            ui.label(format!("the network is told t = {t_now:.3}, the state goes to t = {t_next:.3}"));
            if let Some(words) = quality::words(frame.x_pred.score) {
                ui.add_enabled(live.is_none(), egui::Label::new(format!("· estimate: {words}")));
            }
            ui.label(format!("· {n_evaluations} evaluations"));
            followed.phase_ui(ui, session);
        });
        let is_old = followed.phase() == Phase::Waiting;
        let mut grids = |ui: &mut Ui| {
            for source in sources {
                ui.vertical(|ui| {
                    ui.set_width(side);
                    if is_old {
                        ui.set_opacity(0.5);
                    }
                    ui.label(RichText::new(title(*source, self.look.reading)).strong());
                    let grid = &mut self.grids[track][*source as usize];
                    let sheet = grid.read.sheet(&frame, &info, *source, self.look.reading);
                    let name = format!("Samples of chain {}: {}, step {}", track + 1, source.label(), step + 1);
                    let (response, at) = match (&live, &mut session.bind_texture) {
                        (Some(live), Some(bind)) => {
                            grid.view.show_live(ui, &name, &sheet, (source.of_live(live), bind), side)
                        }
                        _ => grid.view.show(ui, &name, &sheet, side),
                    };
                    if let Some(at) = at {
                        if response.clicked() {
                            self.look.pinned = Some((*source, at));
                        }
                        response.on_hover_ui_at_pointer(|ui| pixel::ui(ui, source.of(&frame), &info, at));
                    }
                });
            }
        };
        if is_stacked {
            grids(ui);
        } else {
            ui.horizontal_top(grids);
        }
    }
}

fn title(source: Source, reading: Reading) -> String {
    match reading {
        Reading::Threshold => format!("{}, by threshold", source.title()),
        Reading::Soft => format!("{}, soft", source.title()),
        Reading::Plane(plane) => format!("{}, bit {plane}", source.title()),
    }
}

fn settings_ui((panel, session): &mut (&mut Chain, &mut Session), ui: &mut Ui) {
    ui.add_space(4.0);
    ui.label(
        "Pictures of pure noise are cleaned up a little at a time. At each step the network looks at the noisy state x_t and guesses the \
         clean picture, x_pred; the state then moves towards the guess.",
    );
    ui.add_space(8.0);
    let info = session.info.clone();
    let wanted = &mut panel.wanted;
    steps_ui(ui, &mut wanted.settings);
    ui.add(Slider::new(&mut wanted.n, 1..=MAX_SAMPLES).text("samples"));
    controls::seed(ui, &mut wanted.seed);
    if let Some(info) = info.as_ref().filter(|info| info.n_classes > 0) {
        classes_ui(ui, wanted, info.n_classes);
    }
    if session.model == ModelId::Training && ui.button("Use the newest weights").clicked() {
        panel.main.ask_again(session);
    }
    ui.separator();
    panel.branch_ui(ui);
    ui.separator();
    panel.look_ui(ui, info.as_ref());
    ui.add_space(8.0);
}

/// What can be changed on the way too.
fn steps_ui(ui: &mut Ui, settings: &mut Settings) {
    controls::n_steps(ui, &mut settings.n_steps);
    let most = settings.n_steps as f64;
    settings.td = settings.td.min(most);
    ui.add(Slider::new(&mut settings.td, 0.0..=most).max_decimals(1).text("time difference td")).on_hover_text(
        "Each step takes the state this many steps further than the clock says, so the network is told of more noise than there is.\n\n\
         t_now = 1 − step/steps\nt_next = max(1 − (step + 1 + td)/steps, 0)",
    );
    controls::sampler(ui, &mut settings.sampler, &Sampler::ALL);
    controls::self_cond(ui, &mut settings.self_cond);
}

fn classes_ui(ui: &mut Ui, wanted: &mut Wanted, n_classes: usize) {
    ui.horizontal_wrapped(|ui| {
        ui.label("class").on_hover_text("What the samples are asked to show");
        ui.selectable_value(&mut wanted.classes, Classes::Each, "each in turn");
        ui.selectable_value(&mut wanted.classes, Classes::Any, "none");
        let one = match wanted.classes {
            Classes::One(class) => class,
            Classes::Each | Classes::Any => 0,
        };
        ui.selectable_value(&mut wanted.classes, Classes::One(one), "only one");
        if let Classes::One(class) = &mut wanted.classes {
            ui.add(egui::DragValue::new(class).range(0..=n_classes - 1));
        }
    });
    ui.add(Slider::new(&mut wanted.settings.guidance, 0.0..=8.0).text("class guidance"))
        .on_hover_text("1 asks for the class as it is, more exaggerates it, 0 ignores it");
}
