//! The bar at the bottom: the device, the work under way and how to stop it, the speed, the memory.

use bit_diffusion::engine::{Command, Slot, TrainingCommand};
use egui::{ProgressBar, Ui};

use crate::{
    controls,
    session::{Done, Session},
};

/// Over how many seconds the speed is measured.
const SPEED_SECONDS: f64 = 1.0;

/// What the bar remembers.
#[derive(Default)]
pub(crate) struct Status {
    /// When the count was last read, and what it was.
    counted: Option<(f64, u64)>,
    per_second: f64,
}

impl Status {
    pub fn ui(&mut self, ui: &mut Ui, session: &mut Session) {
        self.measure(ui, session);
        ui.add_space(2.0);
        ui.horizontal_wrapped(|ui| {
            let device = if session.device.is_empty() { "starting the engine…" } else { &session.device };
            // Why it is this one takes a line or two, which a phone has not to spare.
            let short = device.split_once(':').map_or(device, |(name, _)| name);
            let shown = if controls::is_narrow(ui) { short } else { device };
            ui.label(shown).on_hover_text(format!("{device}\n\nWhat the numbers are worked out on, and why"));
            ui.separator();
            fetching_ui(ui, session);
            jobs_ui(ui, session);
            training_ui(ui, session);
            ui.separator();
            let plural = if self.per_second.round() as u64 == 1 { "" } else { "s" };
            ui.label(format!("{:.0} evaluation{plural} a second", self.per_second))
                .on_hover_text("How often the network is run, over the last second");
            if let Some(memory) = &session.memory {
                ui.separator();
                let (used, limit) = (memory.used >> 20, memory.limit >> 20);
                ui.label(format!("results kept: {}, {used} of {limit} MB", memory.n_kept)).on_hover_text(
                    "What was made is kept, so that going back to it is instant; past the limit the oldest is dropped",
                );
            }
        });
        ui.add_space(2.0);
    }

    fn measure(&mut self, ui: &Ui, session: &Session) {
        let (now, count) = (ui.input(|input| input.time), session.n_evaluations());
        let (then, before) = *self.counted.get_or_insert((now, count));
        if now - then >= SPEED_SECONDS {
            self.per_second = (count - before) as f64 / (now - then);
            self.counted = Some((now, count));
        }
        // The bar goes back to 0 by itself when the work is done.
        if self.per_second > 0.0 || !session.jobs.is_empty() {
            ui.ctx().request_repaint_after(std::time::Duration::from_millis(250));
        }
    }
}

/// All jobs as one: how far they are, and a button that drops them.
fn jobs_ui(ui: &mut Ui, session: &mut Session) {
    if session.jobs.is_empty() {
        ui.weak("idle");
        return;
    }
    let all = session.jobs.values().fold(Done { done: 0, total: 0 }, |sum, job| Done {
        done: sum.done + job.at.done,
        total: sum.total + job.at.total,
    });
    ui.label(match session.jobs.len() {
        1 => "1 job".to_owned(),
        n => format!("{n} jobs"),
    });
    progress_ui(ui, all);
    if ui.button("Cancel").on_hover_text("Drops the work under way; what is made stays").clicked() {
        let slots: Vec<Slot> = session.jobs.keys().copied().collect();
        for slot in slots {
            session.send(Command::Cancel { slot });
        }
    }
}

/// A demo model on its way to a page.
fn fetching_ui(ui: &mut Ui, session: &Session) {
    let Some((demo, Done { done, total })) = session.fetching else { return };
    let megabytes = |bytes: usize| format!("{:.1}", bytes as f64 / 1e6);
    ui.spinner();
    ui.label(format!("fetching {demo}"));
    if total > 0 {
        let text = format!("{} of {} MB", megabytes(done), megabytes(total));
        ui.add(ProgressBar::new(done as f32 / total as f32).desired_width(140.0).text(text));
    } else {
        ui.label(format!("{} MB", megabytes(done)));
    }
    ui.separator();
}

fn training_ui(ui: &mut Ui, session: &mut Session) {
    let Some(training) = session.training.filter(|training| training.is_running) else { return };
    ui.separator();
    ui.label("training");
    progress_ui(ui, training.at);
    if ui.button("Pause training").clicked() {
        session.send(Command::Training(TrainingCommand::Pause));
    }
}

fn progress_ui(ui: &mut Ui, Done { done, total }: Done) {
    let share = done as f32 / total.max(1) as f32;
    ui.add(ProgressBar::new(share).desired_width(140.0).text(format!("{done} of {total}")));
}
