//! Self-conditioning: the same noise four times, told nothing, the last estimate, an average of all, or a first estimate of the same step.
//!
//! Deliberately absent: training, which the panel of that name has.

mod kept;

use bit_diffusion::{
    engine::{ChainRequest, Classes, Event, Measure, ModelId, Slot},
    sampler::{Sampler, Settings},
    self_cond::SelfCond as Strategy,
};
use egui::{RichText, ScrollArea, Slider, Ui, vec2};

use crate::{
    controls,
    session::{Pane, Session, slots},
    theme,
    widgets::{
        Player, SheetView, Track, Undo,
        figure2::{self, Moment},
        quality::{self, Series},
        track::Phase,
    },
};

/// The most samples that are comfortable to look at four times.
const MAX_SAMPLES: usize = 36;

/// The least height of the diagrams.
const DIAGRAM: f32 = 120.0;

/// What the controls say; the model is the session's.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wanted {
    /// Of all four; the strategy in it is not used.
    settings: Settings,
    momentum: f64,
    weight: f64,
    n: usize,
    seed: u64,
}

impl Wanted {
    fn strategies(&self) -> [Strategy; 4] {
        let Self { momentum, weight, .. } = *self;
        [Strategy::Off, Strategy::Previous, Strategy::Momentum { momentum }, Strategy::SelfGuidance { weight }]
    }

    fn request(&self, model: ModelId, strategy: Strategy) -> ChainRequest {
        let settings = Settings { self_cond: strategy, ..self.settings };
        ChainRequest { model, settings, n: self.n, seed: self.seed, classes: Classes::Each, branch: None }
    }
}

/// One strategy on the screen.
struct Column {
    track: Track,
    view: SheetView,
}

/// Settings on the left; four columns, the diagrams and the timeline on the right.
pub(crate) struct SelfCond {
    wanted: Wanted,
    undo: Undo<Wanted>,
    columns: [Column; 4],
    player: Player,
}

impl Default for SelfCond {
    fn default() -> Self {
        let wanted = Wanted {
            settings: Settings { n_steps: 20, ..Settings::default() },
            momentum: 0.5,
            weight: 3.0,
            n: 16,
            seed: 0,
        };
        let column = |index| Column { track: Track::new(Slot(slots::SELF_COND.0 + index)), view: SheetView::default() };
        Self { wanted, undo: Undo::new(wanted), columns: [0, 1, 2, 3].map(column), player: Player::default() }
    }
}

impl SelfCond {
    /// For the tour: so few steps that it matters.
    pub fn set_up(&mut self) {
        self.wanted = Self::default().wanted;
        self.wanted.settings.n_steps = 10;
        self.player = Player::default();
    }
}

impl Pane for SelfCond {
    fn on_event(&mut self, event: &Event, _session: &mut Session) {
        for column in &mut self.columns {
            column.track.on_event(event);
        }
    }

    fn ui(&mut self, ui: &mut Ui, session: &mut Session) {
        controls::beside(ui, "self-conditioning", &mut (self, session), settings_ui, |(panel, session), ui| {
            panel.sync(ui, session);
            // In step: the slowest decides.
            let n_made = panel.columns.iter().map(|column| column.track.n_made()).min().unwrap_or_default();
            let n_steps = panel.wanted.settings.n_steps;
            panel.player.advance(ui, n_made, n_steps);
            egui::Panel::bottom("timeline of four").show(ui, |ui| panel.player.ui(ui, n_made, n_steps));
            egui::CentralPanel::default().show(ui, |ui| {
                ScrollArea::both().show(ui, |ui| panel.columns_ui(ui, session));
            });
        });
    }

    fn undo(&mut self) {
        if let Some(wanted) = self.undo.undo() {
            self.wanted = wanted;
        }
    }
}

impl SelfCond {
    /// Asks for what the controls say, if that has changed.
    fn sync(&mut self, ui: &Ui, session: &mut Session) {
        if let Some(info) = &session.info {
            self.wanted.settings.schedule = info.schedule;
        }
        self.undo.note(ui, &self.wanted);
        let requests = self.wanted.strategies().map(|strategy| self.wanted.request(session.model, strategy));
        for (column, request) in self.columns.iter_mut().zip(requests) {
            column.track.ask(&request, session);
        }
    }

    /// The step that all of them can show, and its two times.
    fn now(&self) -> Moment {
        let n_made = self.columns.iter().map(|column| column.track.frames().len()).min().unwrap_or_default();
        let step = self.player.shown.min(n_made.saturating_sub(1));
        let (t_now, t_next) = self.wanted.settings.times(step as f64);
        Moment { step, t_now, t_next }
    }

    fn columns_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        const WORDS: f32 = 120.0;
        let now = self.now();
        let room = ui.available_size();
        let gap = ui.spacing().item_spacing.x;
        let per_row = if controls::is_narrow(ui) { 2 } else { 4 };
        let width = (room.x + gap) / per_row as f32 - gap;
        let side = width.min(room.y - WORDS - DIAGRAM - 60.0).max(130.0);
        ui.strong(format!("Step {} of {}, estimates x_pred by threshold", now.step + 1, self.wanted.settings.n_steps));
        let strategies = self.wanted.strategies();
        let mut columns = self.columns.iter_mut().zip(strategies).enumerate().peekable();
        while columns.peek().is_some() {
            ui.horizontal_top(|ui| {
                for (index, (column, strategy)) in columns.by_ref().take(per_row) {
                    ui.vertical(|ui| {
                        ui.set_width(width.max(side));
                        // As its line in the plot.
                        let title = RichText::new(title(strategy)).strong().color(theme::series(ui, index));
                        ui.label(title).on_hover_text(explanation(strategy));
                        column_ui(ui, column, strategy, now.step, side, session);
                    });
                }
            });
        }
        ui.separator();
        self.below_ui(ui, now);
    }

    /// The two diagrams, and the quality of all four: beside each other, or, where there is no room for that, below.
    fn below_ui(&mut self, ui: &mut Ui, now: Moment) {
        let gap = ui.spacing().item_spacing.x;
        let height = (ui.available_height() - 50.0).clamp(DIAGRAM, 2.0 * DIAGRAM);
        let is_narrow = controls::is_narrow(ui);
        let per_row = if is_narrow { 1.0 } else { 3.0 };
        let width = ((ui.available_width() + gap) / per_row - gap).max(200.0);
        let [off, previous, ..] = self.wanted.strategies();
        let mut chosen = None;
        let parts = |ui: &mut Ui| {
            for (strategy, title, hint) in [
                (
                    off,
                    "Without: each guess is forgotten",
                    "The network sees the noisy state alone: x_pred = f(x_t, 0, t). The guess moves the state, and is then thrown away.",
                ),
                (
                    previous,
                    "With: the last guess is an input too",
                    "x_pred = f(x_t, x_pred of the step before, t). In the first step there is none, and the network is shown zeros.",
                ),
            ] {
                ui.vertical(|ui| {
                    ui.set_width(width);
                    ui.label(title).on_hover_text(hint);
                    let diagram = figure2::ui(ui, strategy, now, vec2(width, height.min(150.0)));
                    controls::name(&diagram, &format!("Diagram of step {}. {title}", now.step + 1));
                    diagram.on_hover_text(hint);
                });
            }
            ui.vertical(|ui| {
                ui.set_width(width);
                let strategies = self.wanted.strategies();
                let series: Vec<Series<'_>> = self
                    .columns
                    .iter()
                    .zip(&strategies)
                    .enumerate()
                    .map(|(index, (column, strategy))| Series {
                        name: strategy.label(),
                        frames: column.track.frames(),
                        colour: theme::series(ui, index),
                    })
                    .collect();
                let n_steps = self.wanted.settings.n_steps;
                chosen = quality::ui(ui, "quality of four", &series, now.step, n_steps, height);
            });
        };
        if is_narrow {
            ui.vertical(parts);
        } else {
            ui.horizontal_top(parts);
        }
        if let Some(step) = chosen {
            self.player.go_to(step);
        }
    }
}

/// One strategy: its pictures and what they cost.
fn column_ui(ui: &mut Ui, column: &mut Column, strategy: Strategy, step: usize, side: f32, session: &mut Session) {
    let Column { track, view } = column;
    let (Some(frame), Some(info)) = (track.frame(step).cloned(), track.info().cloned()) else {
        ui.horizontal_wrapped(|ui| track.phase_ui(ui, session));
        return;
    };
    ui.scope(|ui| {
        if track.phase() == Phase::Waiting {
            ui.set_opacity(0.5);
        }
        view.show(ui, &format!("Samples with self-conditioning: {}", strategy.label()), &frame.x_pred.pictures, side);
    });
    match quality::words(frame.x_pred.score) {
        Some(words) => ui.label(words),
        None if info.measure == Measure::None => {
            ui.label(format!("{:.0}% of bits decided", 100.0 * frame.x_pred.share_near_modes))
        }
        None => ui.label(""),
    };
    ui.label(format!("network evaluations: {}", frame.n_evaluations));
    ui.horizontal_wrapped(|ui| track.phase_ui(ui, session));
}

fn title(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Off => "Off: told nothing",
        Strategy::Previous => "Previous: told its last guess",
        Strategy::Momentum { .. } => "Momentum: told an average",
        Strategy::SelfGuidance { .. } => "Self-guidance: guesses twice",
    }
}

fn explanation(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Off => "The network is told nothing of its earlier guess\n\nx_pred = f(x_t, 0, t)",
        Strategy::Previous => "The network is told its guess of the step before\n\nx_pred = f(x_t, x_prev, t)",
        Strategy::Momentum { .. } => {
            "The network is told an average of all its guesses\n\nx_accu = m·x_accu + (1−m)·x_prev\nx_pred = f(x_t, x_accu, t)"
        }
        Strategy::SelfGuidance { .. } => {
            "The network guesses twice a step, the second time knowing the first; the difference is exaggerated\n\n\
             first = f(x_t, 0, t)\nx_pred = w·f(x_t, first, t) + (1−w)·first"
        }
    }
}

fn settings_ui((panel, session): &mut (&mut SelfCond, &mut Session), ui: &mut Ui) {
    ui.add_space(4.0);
    ui.label(
        "Four chains start from the same noise. They differ only in what the network is told of its own earlier guess: nothing, the guess \
         of the step before, an average of all guesses, or a first guess of the same step.",
    );
    ui.add_space(8.0);
    let wanted = &mut panel.wanted;
    ui.add(Slider::new(&mut wanted.momentum, 0.0..=0.95).text("momentum")).on_hover_text(
        "Third column: the share of the old average that is kept at each step. At 0 it is the same as the second column.",
    );
    ui.add(Slider::new(&mut wanted.weight, 0.0..=8.0).text("guidance weight w")).on_hover_text(
        "Fourth column: 1 uses the second guess as it is; more goes beyond it.\n\nx_pred = w·second + (1−w)·first",
    );
    ui.separator();
    controls::n_steps(ui, &mut wanted.settings.n_steps);
    let most = wanted.settings.n_steps as f64;
    wanted.settings.td = wanted.settings.td.min(most);
    ui.add(Slider::new(&mut wanted.settings.td, 0.0..=most).max_decimals(1).text("time difference td"))
        .on_hover_text("Each step takes the state this many steps further than the clock says");
    controls::sampler(ui, &mut wanted.settings.sampler, &Sampler::ALL);
    ui.add(Slider::new(&mut wanted.n, 1..=MAX_SAMPLES).text("samples"));
    controls::seed(ui, &mut wanted.seed);
    if let ModelId::Perfect(perfect) = session.model
        && perfect.trust == 0.0
    {
        ui.add_space(8.0);
        ui.label("The perfect denoiser has trust 0: it ignores its earlier guess, and only the last column differs in cost. Raise its trust, at the top.");
    }
    if session.model == ModelId::Training && ui.button("Use the newest weights").clicked() {
        for column in &mut panel.columns {
            column.track.ask_again(session);
        }
    }
}
