//! The time difference: what happens when each step takes the state further than the clock says (Algorithm 2, Table 4, Figures 3 and 6).
//!
//! Three parts: the slider with its pictures and the two tracks, the grid of steps against time differences in [`super::sweep`], and the
//! one big step in [`super::big_step`].

mod kept;

use bit_diffusion::{
    engine::{ChainRequest, Event, Frame, ModelId, Slot, TrainingEvent},
    sampler::{Sampler, Settings},
};
use egui::{ScrollArea, Slider, Ui, Vec2};

use super::{big_step::BigStepFigure, sweep::SweepGrid};
use crate::{
    controls,
    session::{Pane, Session, slots},
    widgets::{SheetView, Track, Undo, clock, quality, track::Phase},
};

/// What the panel starts with: few steps, where the time difference shows.
const N_STEPS: usize = 8;
const TD: f64 = 2.0;

/// From this width on, the figure of one big step stands beside the grid.
const WIDE: f32 = 1400.0;

/// Settings on the left; pictures, grid and figure on the right.
pub(crate) struct TimeDifference {
    settings: Settings,
    seed: u64,
    /// The chain with the time difference, and the same noise without.
    with_td: Track,
    without: Track,
    views: [SheetView; 2],
    sweep: SweepGrid,
    big_step: BigStepFigure,
    undo: Undo<Wanted>,
}

/// What can be taken back: the settings of the chains, their seed, and the times of the big step.
type Wanted = (Settings, u64, [f64; 2]);

impl Default for TimeDifference {
    fn default() -> Self {
        let slot = |offset: u32| Slot(slots::TIME_DIFFERENCE.0 + offset);
        let (settings, seed) = (Settings { n_steps: N_STEPS, td: TD, ..Settings::default() }, 0);
        let big_step = BigStepFigure::new(slot(3));
        Self {
            settings,
            seed,
            with_td: Track::new(slot(0)),
            without: Track::new(slot(1)),
            views: Default::default(),
            sweep: SweepGrid::new(slot(2)),
            undo: Undo::new((settings, seed, big_step.times())),
            big_step,
        }
    }
}

impl TimeDifference {
    /// For the tour: few steps, and no time difference yet.
    pub fn set_up(&mut self) {
        self.settings = Settings { n_steps: 5, td: 0.0, ..Settings::default() };
    }
}

impl Pane for TimeDifference {
    fn on_event(&mut self, event: &Event, session: &mut Session) {
        if let Event::Training { event: TrainingEvent::Sheet { .. }, .. } = event
            && session.model == ModelId::Training
        {
            // The network has learned: its new pictures are worth a look.
            self.without.ask_again(session);
            self.with_td.ask_again(session);
        }
        self.with_td.on_event(event);
        self.without.on_event(event);
        self.sweep.on_event(event);
        self.big_step.on_event(event);
    }

    fn ui(&mut self, ui: &mut Ui, session: &mut Session) {
        controls::beside(ui, "time difference", self, Self::settings_ui, |panel, ui| {
            panel.undo.note(ui, &panel.wanted());
            panel.ask(session);
            egui::CentralPanel::default().show(ui, |ui| {
                ScrollArea::vertical().id_salt("time difference").auto_shrink(false).show(ui, |ui| {
                    panel.slider_part_ui(ui, session);
                    ui.separator();
                    if ui.available_width() < WIDE {
                        panel.sweep_ui(ui, session);
                        ui.separator();
                        panel.big_step.ui(ui, &panel.settings, panel.seed, session);
                    } else {
                        ui.columns_const(|[left, right]| {
                            panel.sweep_ui(left, session);
                            panel.big_step.ui(right, &panel.settings, panel.seed, session);
                        });
                    }
                });
            });
        });
    }

    fn undo(&mut self) {
        if let Some((settings, seed, times)) = self.undo.undo() {
            (self.settings, self.seed) = (settings, seed);
            self.big_step.set_times(times);
        }
    }
}

impl TimeDifference {
    fn wanted(&self) -> Wanted {
        (self.settings, self.seed, self.big_step.times())
    }

    /// Asks for both chains; only what has changed is sent. The one with the time difference is asked for last: it comes first.
    fn ask(&mut self, session: &mut Session) {
        if let Some(info) = &session.info {
            self.settings.schedule = info.schedule;
        }
        let request = |td: f64| ChainRequest {
            model: session.model,
            settings: Settings { td, ..self.settings },
            seed: self.seed,
            ..ChainRequest::default()
        };
        let (without, with_td) = (request(0.0), request(self.settings.td));
        self.without.ask(&without, session);
        self.with_td.ask(&with_td, session);
    }

    fn settings_ui(&mut self, ui: &mut Ui) {
        ui.add_space(4.0);
        ui.label(
            "At each step the network is told how noisy the picture is. Tell it of more noise than there is, and it cleans more boldly. In the \
             paper that repairs many wrong bits when there are few steps. See what it does here: to the pixels, and to what is in the pictures.",
        );
        ui.add_space(8.0);
        let settings = &mut self.settings;
        let most = settings.n_steps as f64;
        settings.td = settings.td.min(most);
        ui.add(Slider::new(&mut settings.td, 0.0..=most).step_by(0.5).text("time difference td")).on_hover_text(
            "Each step takes the state this many steps further than the clock says. From steps − 1 on, every step goes all the way to t = 0, \
             and more changes nothing.\n\nt_now = 1 − step/steps\nt_next = max(1 − (step + 1 + td)/steps, 0)",
        );
        controls::n_steps(ui, &mut settings.n_steps);
        controls::sampler(ui, &mut settings.sampler, &Sampler::ALL);
        controls::self_cond(ui, &mut settings.self_cond);
        controls::seed(ui, &mut self.seed);
        ui.add_space(8.0);
    }

    fn sweep_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        if let Some((n_steps, td)) = self.sweep.ui(ui, &self.settings, self.seed, session) {
            self.settings = Settings { n_steps, td, ..self.settings };
        }
    }

    fn slider_part_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        let is_narrow = controls::is_narrow(ui);
        let room = ui.available_width();
        let side = if is_narrow { 0.5 * (room - ui.spacing().item_spacing.x) } else { (0.27 * room).max(160.0) };
        let side = side.min(300.0);
        let Self { settings, with_td, without, views: [with_view, without_view], .. } = self;
        let with_name = format!("With td = {}", settings.td);
        ui.horizontal_top(|ui| {
            ui.vertical(|ui| pictures_ui(ui, &with_name, with_td, with_view, side, session));
            ui.vertical(|ui| pictures_ui(ui, "Without, the same noise", without, without_view, side, session));
            if !is_narrow {
                ui.vertical(|ui| explanation_ui(ui, settings, with_td, without));
            }
        });
        if is_narrow {
            explanation_ui(ui, settings, with_td, without);
        }
    }
}

/// The two tracks of time, and the two scores.
fn explanation_ui(ui: &mut Ui, settings: &Settings, with_td: &Track, without: &Track) {
    ui.strong("What the network is told, and how it is");
    let current = with_td.frames().last().map(|frame| frame.step);
    clock::show(ui, settings, current);
    ui.add_space(4.0);
    for (name, track) in [("With", with_td), ("Without", without)] {
        if track.phase() == Phase::Complete
            && let Some(words) = quality::words(track.frames().last().and_then(|frame| frame.x_pred.score))
        {
            ui.label(format!("{name} the time difference: {words}"));
        }
    }
}

/// One chain: its newest estimate, how far it is, and how good.
fn pictures_ui(ui: &mut Ui, name: &str, track: &mut Track, view: &mut SheetView, side: f32, session: &mut Session) {
    ui.set_width(side);
    ui.strong(name);
    let Some(frame) = track.frames().last().cloned() else {
        // As large as the pictures will be, so that nothing jumps.
        ui.allocate_ui(Vec2::splat(side), |ui| ui.centered_and_justified(egui::Ui::spinner));
        return;
    };
    ui.scope(|ui| {
        if track.phase() == Phase::Waiting {
            ui.set_opacity(0.5);
        }
        view.show(ui, name, &frame.x_pred.pictures, side);
    });
    ui.horizontal_wrapped(|ui| {
        if track.phase() == Phase::Complete {
            ui.label(result_text(&frame));
        } else {
            track.phase_ui(ui, session);
        }
    });
}

/// How good the result is, in words.
fn result_text(frame: &Frame) -> String {
    match frame.x_pred.score {
        Some(score) => {
            let n = frame.x_pred.pictures.n;
            let flawless = (score.scenes * n as f64).round();
            format!("{flawless} of {n} are flawless scenes")
        }
        None => format!("{:.1}% of the bits are decided", 100.0 * frame.x_pred.share_near_modes),
    }
}
