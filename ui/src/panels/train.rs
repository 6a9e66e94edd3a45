//! Training a network: start, pause, resume, stop; its loss, its samples, its files. While it learns, every other panel can use it.
//!
//! Deliberately absent: the settings, which are in [`super::train_form`], and writing files, which is for the shells.

mod kept;

use bit_diffusion::{
    checkpoint::{self, Precision},
    engine::{Command, Event, ModelId, PictureSheet, ShapesScore, TrainingCommand, TrainingEvent},
    train::Progress,
};
use egui::{Button, ProgressBar, ScrollArea, Slider, Ui};
use web_time::Instant;

use super::train_form::{Origin, TrainForm};
use crate::{
    controls,
    files::{self, Brought, Kind, Save},
    session::{Pane, Session, slots},
    widgets::{SheetView, Undo, curves::Curves, quality},
};

/// How many sheets of samples are kept to look back at.
const MOST_SHEETS: usize = 200;

/// How many losses are told to scripts.
const MOST_LOSSES: usize = 20;

/// What stands above and below the samples, in points.
const AROUND_SHEET: f32 = 80.0;

/// What the run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// There is none, or its request is on the way.
    None,
    Running,
    Paused,
    Ended,
}

/// A sheet of samples.
struct Sheet {
    n_steps: usize,
    pictures: PictureSheet,
    score: Option<ShapesScore>,
}

/// Settings on the left, the run on the right.
pub(crate) struct Train {
    form: TrainForm,
    undo: Undo<TrainForm>,
    pace: Pace,
    is_starting: bool,
    n_steps: usize,
    end: usize,
    /// When the first step since the last pause came, and which it was.
    since: Option<(Instant, usize)>,
    curves: Curves,
    /// Steps made and in all of a sheet on the way.
    sampling: Option<(usize, usize)>,
    sheets: Vec<Sheet>,
    /// The sheet that is shown; `None` follows the newest.
    shown: Option<usize>,
    view: SheetView,
    /// A checkpoint was asked for, and goes to a file when it comes.
    is_saving: bool,
    /// The newest checkpoint, to go on from.
    last: Option<Origin>,
}

impl Default for Train {
    fn default() -> Self {
        Self {
            form: TrainForm::default(),
            undo: Undo::new(TrainForm::default()),
            pace: Pace::None,
            is_starting: false,
            n_steps: 0,
            end: 1,
            since: None,
            curves: Curves::default(),
            sampling: None,
            sheets: Vec::new(),
            shown: None,
            view: SheetView::default(),
            is_saving: false,
            last: None,
        }
    }
}

impl Pane for Train {
    fn on_event(&mut self, event: &Event, session: &mut Session) {
        match event {
            Event::Training { slot, event } if *slot == slots::TRAIN => self.on_training(event, session),
            Event::Failed { slot: Some(slot), .. } if *slot == slots::TRAIN => {
                (self.is_starting, self.is_saving) = (false, false);
            }
            _ => {}
        }
    }

    fn ui(&mut self, ui: &mut Ui, session: &mut Session) {
        self.take_files(session);
        controls::beside(ui, "train", self, Self::settings_ui, |panel, ui| {
            panel.undo.note(ui, &panel.form);
            egui::CentralPanel::default().show(ui, |ui| {
                ScrollArea::vertical().id_salt("train").auto_shrink(false).show(ui, |ui| {
                    panel.buttons_ui(ui, session);
                    panel.progress_ui(ui);
                    panel.results_ui(ui);
                });
            });
        });
    }

    fn undo(&mut self) {
        if self.is_free()
            && let Some(form) = self.undo.undo()
        {
            self.form = form;
        }
    }
}

impl Train {
    /// The losses of the last steps, oldest first, with spaces between them.
    pub fn losses(&self) -> String {
        let steps = self.curves.steps();
        let skipped = steps.len().saturating_sub(MOST_LOSSES);
        steps.skip(skipped).map(|(_, loss, _)| format!("{loss:.4}")).collect::<Vec<_>>().join(" ")
    }

    /// Whether the settings may change: there is no run, or it is over.
    fn is_free(&self) -> bool {
        matches!(self.pace, Pace::None | Pace::Ended)
    }

    fn take_files(&mut self, session: &mut Session) {
        self.form.add_pictures(files::take(&mut session.inbox, Kind::Picture));
        for file in files::take(&mut session.inbox, Kind::Weights) {
            // What is wrong with a file that cannot be read, the engine says when it opens it.
            if let Ok(header) = checkpoint::inspect(&file.bytes) {
                self.form.origin = Some(Origin { file, header });
            }
        }
    }

    fn on_training(&mut self, event: &TrainingEvent, session: &mut Session) {
        match event {
            TrainingEvent::Started { n_steps, end, .. } => {
                (self.pace, self.is_starting, self.since) = (Pace::Running, false, None);
                (self.n_steps, self.end) = (*n_steps, *end);
                (self.sampling, self.shown) = (None, None);
                if *n_steps == 0 {
                    self.curves = Curves::default();
                    self.sheets.clear();
                }
            }
            TrainingEvent::Step(progress) => self.on_step(*progress),
            TrainingEvent::Sampling { step, n_steps } => self.sampling = Some((*step, *n_steps)),
            TrainingEvent::Sheet { n_steps, pictures, score } => {
                self.sampling = None;
                if self.sheets.len() == MOST_SHEETS {
                    self.sheets.remove(0);
                }
                self.sheets.push(Sheet { n_steps: *n_steps, pictures: pictures.clone(), score: *score });
            }
            TrainingEvent::Checkpoint { n_steps, bytes } => {
                let name = format!("checkpoint-{n_steps}.safetensors");
                if std::mem::take(&mut self.is_saving) {
                    session.saves.push(Save { name: name.clone(), bytes: bytes.clone() });
                }
                if let Ok(header) = checkpoint::inspect(bytes) {
                    self.last = Some(Origin { file: Brought { name, bytes: bytes.clone() }, header });
                }
            }
            TrainingEvent::Exported { n_steps, bytes } => {
                let name = format!("model-{n_steps}.safetensors");
                session.saves.push(Save { name, bytes: bytes.clone() });
            }
            TrainingEvent::Paused => (self.pace, self.since) = (Pace::Paused, None),
            TrainingEvent::Resumed => (self.pace, self.since) = (Pace::Running, None),
            TrainingEvent::Ended => self.pace = Pace::Ended,
            TrainingEvent::Stopped => (self.pace, self.sampling) = (Pace::None, None),
        }
    }

    fn on_step(&mut self, progress: Progress) {
        self.n_steps = progress.n_steps;
        self.curves.push(progress);
        self.since.get_or_insert_with(|| (Instant::now(), progress.n_steps));
    }

    /// Seconds to the end, once two steps have come.
    fn seconds_left(&self) -> Option<f64> {
        let (since, from) = self.since.filter(|(_, from)| self.n_steps > *from)?;
        let pace = since.elapsed().as_secs_f64() / (self.n_steps - from) as f64;
        Some(pace * (self.end - self.n_steps) as f64)
    }

    fn settings_ui(&mut self, ui: &mut Ui) {
        ui.add_space(4.0);
        ui.label(
            "A network learns by example: a picture is written in bits, drowned in noise, and the network guesses the bits. Train one here, \
             and look at it in the other panels while it learns.",
        );
        ui.add_space(8.0);
        let is_free = self.is_free();
        ui.add_enabled_ui(is_free, |ui| self.form.ui(ui));
        if !is_free {
            ui.weak("The settings can be changed when the run is over");
        }
    }

    fn buttons_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        let problem = self.form.problem();
        ui.horizontal_wrapped(|ui| {
            let mut ask = |text: &str, hint: &str, command: TrainingCommand| {
                let is_clicked = ui.button(text).on_hover_text(hint).clicked();
                if is_clicked {
                    session.send(Command::Training(command));
                }
                is_clicked
            };
            match self.pace {
                Pace::Running => _ = ask("Pause", "Make no more steps for now", TrainingCommand::Pause),
                Pace::Paused => _ = ask("Resume", "Go on where it was", TrainingCommand::Resume),
                Pace::None | Pace::Ended => {}
            }
            if self.pace != Pace::None {
                let text = if self.pace == Pace::Ended { "Close run" } else { "Stop" };
                let hint = "End the run. You can go on from its last step afterwards";
                ask(text, hint, TrainingCommand::Stop);
                let hint = "A file that training can go on from; open it in this panel to do so";
                self.is_saving |= ask("Save checkpoint", hint, TrainingCommand::Save);
                let hint = "The averaged network as a smaller file, to make pictures with";
                ask("Save model", hint, TrainingCommand::Export(Precision::F16));
            }
            if self.is_free() {
                self.start_ui(ui, problem.is_none(), session);
            }
            if self.pace != Pace::None {
                let mut is_used = session.model == ModelId::Training;
                let hint = "The other panels then show what this network has learned so far";
                if ui.checkbox(&mut is_used, "Use in every panel").on_hover_text(hint).changed() {
                    session.choose(if is_used { ModelId::Training } else { ModelId::default() });
                }
            }
        });
        if let Some(problem) = problem.filter(|_| self.is_free()) {
            ui.colored_label(ui.visuals().warn_fg_color, problem);
        }
    }

    fn start_ui(&mut self, ui: &mut Ui, is_possible: bool, session: &mut Session) {
        let text = if self.form.origin.is_some() { "Go on training" } else { "Start training" };
        let button = ui.add_enabled(is_possible && !self.is_starting, Button::new(text));
        let hint = match self.pace {
            Pace::Ended => "Takes the place of the run there is: save that first if it is worth it",
            _ => "Trains with the settings on the left, on this machine",
        };
        if button.on_hover_text(hint).clicked() {
            self.is_starting = true;
            session.send(Command::Train { slot: slots::TRAIN, request: Box::new(self.form.request()) });
        }
        if let Some(last) = self.last.as_ref().filter(|_| self.form.origin.is_none()) {
            let text = format!("Go on from step {}", last.header.n_steps);
            if ui.button(text).on_hover_text("More steps for the run before, with its own settings").clicked() {
                self.form.origin = Some(last.clone());
            }
        }
    }

    fn progress_ui(&self, ui: &mut Ui) {
        if self.pace == Pace::None && self.sheets.is_empty() && self.n_steps == 0 {
            if self.is_starting {
                ui.spinner();
            } else {
                ui.weak("The loss, and pictures that the network draws as it learns, will be shown here");
            }
            return;
        }
        let share = self.n_steps as f32 / self.end.max(1) as f32;
        ui.add(ProgressBar::new(share).text(format!("step {} of {}", self.n_steps, self.end)));
        let state = match (self.pace, self.sampling) {
            (Pace::None, _) => "stopped".to_owned(),
            (Pace::Paused, _) => "paused".to_owned(),
            (Pace::Ended, _) => "all steps are made; the network stays in use".to_owned(),
            (Pace::Running, Some((step, n_steps))) => format!("drawing samples, step {step} of {n_steps}"),
            (Pace::Running, None) => match self.seconds_left() {
                Some(seconds) => format!("about {} left", duration(seconds)),
                None => "starting…".to_owned(),
            },
        };
        ui.label(state);
    }

    fn results_ui(&mut self, ui: &mut Ui) {
        if self.curves.is_empty() {
            return;
        }
        if controls::is_narrow(ui) {
            self.curves.ui(ui, 150.0);
            ui.set_max_width(ui.available_width().min(460.0));
            self.sheet_ui(ui);
        } else {
            // As large as there is room in the window.
            let room = ui.clip_rect().bottom() - ui.cursor().top() - AROUND_SHEET;
            let side = (0.55 * ui.available_width()).min(room).clamp(200.0, 900.0);
            ui.horizontal_top(|ui| {
                ui.vertical(|ui| {
                    ui.set_width(side);
                    self.sheet_ui(ui);
                });
                ui.vertical(|ui| self.curves.ui(ui, 0.56 * side));
            });
        }
    }

    fn sheet_ui(&mut self, ui: &mut Ui) {
        let newest = self.sheets.len().saturating_sub(1);
        let at = self.shown.unwrap_or(newest).min(newest);
        let Some(sheet) = self.sheets.get(at) else {
            ui.weak("The first samples come soon");
            return;
        };
        ui.strong(format!("Samples after {} steps", sheet.n_steps));
        self.view.show(ui, "samples of the network in training", &sheet.pictures, ui.available_width());
        if let Some(text) = quality::words(sheet.score) {
            ui.label(text);
        }
        if newest > 0 {
            let mut number = at + 1;
            let slider = Slider::new(&mut number, 1..=newest + 1).text("sheet");
            if ui.add(slider).on_hover_text("Look back; at the end, new sheets are shown as they come").changed() {
                self.shown = (number - 1 < newest).then_some(number - 1);
            }
        }
    }
}

/// A time that a person can grasp.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 90.0 * 60.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_what_a_person_can_grasp() {
        assert_eq!(duration(12.4), "12 seconds");
        assert_eq!(duration(170.0), "3 minutes");
        assert_eq!(duration(9000.0), "2.5 hours");
    }
}
