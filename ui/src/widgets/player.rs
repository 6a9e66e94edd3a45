//! The timeline: play, pause, step, rewind, speed, and a slider over the steps.

use std::time::Duration;

use egui::{Button, Key, Slider, Ui};

use crate::controls;

/// The slowest and the fastest playing, in steps a second.
const SPEEDS: std::ops::RangeInclusive<f64> = 1.0..=60.0;

/// With less room than this, in points, the slider goes below the buttons; with still less, the speed too.
const ONE_ROW: f32 = 700.0;
const TWO_ROWS: f32 = 540.0;

/// Which step is shown, and whether it moves on by itself.
pub(crate) struct Player {
    /// The step that is shown, from 0.
    pub shown: usize,
    /// While playing, the time at which the next step is shown.
    next_at: Option<f64>,
    steps_per_second: f64,
}

impl Default for Player {
    /// Plays from the first step on.
    fn default() -> Self {
        Self { shown: 0, next_at: Some(0.0), steps_per_second: 12.0 }
    }
}

impl Player {
    pub fn is_playing(&self) -> bool {
        self.next_at.is_some()
    }

    /// To a step, and stays there.
    pub fn go_to(&mut self, step: usize) {
        (self.shown, self.next_at) = (step, None);
    }

    /// Plays or pauses; at the end, plays from the beginning.
    fn toggle(&mut self, n_steps: usize) {
        if self.is_playing() {
            self.next_at = None;
        } else {
            self.next_at = Some(0.0);
            if self.shown + 1 >= n_steps {
                self.shown = 0;
            }
        }
    }

    /// Moves on if it is time: `n_made` steps of `n_steps` are here. Call it once a frame.
    pub fn advance(&mut self, ui: &Ui, n_made: usize, n_steps: usize) {
        let last = n_steps.saturating_sub(1);
        self.shown = self.shown.min(last);
        let Some(next_at) = self.next_at else { return };
        let now = ui.input(|input| input.time);
        let pause = 1.0 / self.steps_per_second;
        if now >= next_at {
            // A screen that draws seldom skips steps: the speed is in seconds.
            let late = if next_at > 0.0 { now - next_at } else { 0.0 };
            let n = 1 + (late * self.steps_per_second) as usize;
            self.shown = (self.shown + n).min(last).min(n_made.saturating_sub(1)).max(self.shown);
            self.next_at = (self.shown < last).then_some(now + pause);
        }
        if self.next_at.is_some() {
            ui.ctx().request_repaint_after(Duration::from_secs_f64(pause));
        }
    }

    /// The buttons and the slider, and the keys that stand for them.
    pub fn ui(&mut self, ui: &mut Ui, n_made: usize, n_steps: usize) {
        self.keys(ui, n_steps);
        ui.add_space(4.0);
        if controls::is_short(ui) {
            ui.horizontal(|ui| {
                self.play_ui(ui, n_steps);
                self.slider_ui(ui, n_made, n_steps);
            });
        } else if ui.available_width() < TWO_ROWS {
            ui.horizontal_wrapped(|ui| self.buttons_ui(ui, n_steps));
            ui.horizontal(|ui| self.speed_ui(ui));
            ui.horizontal(|ui| self.slider_ui(ui, n_made, n_steps));
        } else if ui.available_width() < ONE_ROW {
            ui.horizontal(|ui| {
                self.buttons_ui(ui, n_steps);
                self.speed_ui(ui);
            });
            ui.horizontal(|ui| self.slider_ui(ui, n_made, n_steps));
        } else {
            ui.horizontal(|ui| {
                self.buttons_ui(ui, n_steps);
                self.speed_ui(ui);
                ui.separator();
                self.slider_ui(ui, n_made, n_steps);
            });
        }
        ui.add_space(4.0);
    }

    fn play_ui(&mut self, ui: &mut Ui, n_steps: usize) {
        let text = if self.is_playing() { "Pause" } else { "Play" };
        if ui.add(Button::new(text).min_size([50.0, 0.0].into())).on_hover_text("Space").clicked() {
            self.toggle(n_steps);
        }
    }

    fn buttons_ui(&mut self, ui: &mut Ui, n_steps: usize) {
        self.play_ui(ui, n_steps);
        let last = n_steps.saturating_sub(1);
        for (text, hint, to) in [
            ("Rewind", "Back to the noise (Home)", 0),
            ("Previous", "One step towards the noise (left arrow)", self.shown.saturating_sub(1)),
            ("Next", "One step towards the picture (right arrow)", (self.shown + 1).min(last)),
        ] {
            if ui.button(text).on_hover_text(hint).clicked() {
                self.go_to(to);
            }
        }
    }

    fn speed_ui(&mut self, ui: &mut Ui) {
        ui.spacing_mut().slider_width = 80.0;
        let speed = Slider::new(&mut self.steps_per_second, SPEEDS).logarithmic(true).max_decimals(0);
        ui.add(speed.text("steps a second"));
    }

    fn slider_ui(&mut self, ui: &mut Ui, n_made: usize, n_steps: usize) {
        ui.spacing_mut().slider_width = (ui.available_width() - 100.0).max(80.0);
        let mut step = self.shown + 1;
        let hint = format!("{n_made} of {n_steps} steps made");
        if ui.add(Slider::new(&mut step, 1..=n_steps.max(1)).text("step")).on_hover_text(hint).changed() {
            self.go_to(step - 1);
        }
    }

    fn keys(&mut self, ui: &Ui, n_steps: usize) {
        if ui.memory(|memory| memory.focused().is_some()) {
            return;
        }
        let pressed = |key| ui.input(|input| input.key_pressed(key));
        if pressed(Key::Space) {
            self.toggle(n_steps);
        }
        if pressed(Key::ArrowLeft) {
            self.go_to(self.shown.saturating_sub(1));
        }
        if pressed(Key::ArrowRight) {
            self.go_to((self.shown + 1).min(n_steps.saturating_sub(1)));
        }
        if pressed(Key::Home) {
            self.go_to(0);
        }
    }
}
