//! Taking back changes of settings.

use egui::Ui;

/// How many changes can be taken back.
const DEPTH: usize = 100;

/// The settings as they were before each change. A drag counts as one change.
pub(crate) struct Undo<T> {
    settled: T,
    before: Vec<T>,
}

impl<T: Clone + PartialEq> Undo<T> {
    pub fn new(settings: T) -> Self {
        Self { settled: settings, before: Vec::new() }
    }

    /// Takes note of the settings as they are now. Call it once a frame, after the controls.
    pub fn note(&mut self, ui: &Ui, now: &T) {
        if *now == self.settled || ui.input(|input| input.pointer.any_down()) {
            return;
        }
        self.before.push(std::mem::replace(&mut self.settled, now.clone()));
        if self.before.len() > DEPTH {
            self.before.remove(0);
        }
    }

    /// The settings before the last change.
    pub fn undo(&mut self) -> Option<T> {
        let before = self.before.pop()?;
        self.settled = before.clone();
        Some(before)
    }
}
