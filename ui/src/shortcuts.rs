//! The keyboard: what the keys do everywhere, and the list of them.

use egui::{Grid, Key as K, Modifiers, Ui, Window};

use crate::Panel;

/// What a key asks the frame for. Playing and stepping are the panels' own; see [`crate::widgets::Player`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// To the front with this one of [`Panel::ALL`].
    Panel(usize),
    /// Take back the last change.
    Undo,
    /// Choose files to open.
    Open,
}

/// The list of keys.
const LIST: [(&str, &str); 8] = [
    ("Space", "Play or pause"),
    ("Left, right", "One step towards the noise, towards the picture"),
    ("Home", "Back to the noise"),
    ("1 to 7", "The panels, in the order of their tabs"),
    ("Ctrl+O", "Open a model, a checkpoint or a picture"),
    ("Ctrl+Z", "Take back the last change of the settings"),
    ("Ctrl and +, −, 0", "Everything larger, smaller, as it was"),
    ("?", "Show or hide this list"),
];

/// Whether the list is open.
#[derive(Default)]
pub(crate) struct Shortcuts {
    is_open: bool,
}

impl Shortcuts {
    pub fn toggle(&mut self) {
        self.is_open = !self.is_open;
    }

    /// The key that was pressed, if nobody else wants it.
    pub fn pressed(&mut self, ui: &Ui) -> Option<Key> {
        if ui.ctx().egui_wants_keyboard_input() {
            return None;
        }
        let (undo, open, help, digit) = ui.input_mut(|input| {
            let undo = input.consume_key(Modifiers::COMMAND, K::Z);
            let open = input.consume_key(Modifiers::COMMAND, K::O);
            let help = input.key_pressed(K::Questionmark);
            let digits = [K::Num1, K::Num2, K::Num3, K::Num4, K::Num5, K::Num6, K::Num7];
            (undo, open, help, digits.into_iter().position(|key| input.key_pressed(key)))
        });
        if help {
            self.toggle();
        }
        if undo {
            return Some(Key::Undo);
        }
        if open {
            return Some(Key::Open);
        }
        digit.filter(|index| *index < Panel::ALL.len()).map(Key::Panel)
    }

    /// The list, if it is open.
    pub fn ui(&mut self, ui: &mut Ui) {
        let window = Window::new("Keyboard shortcuts").open(&mut self.is_open).collapsible(false).resizable(false);
        window.show(ui.ctx(), |ui| {
            Grid::new("shortcuts").num_columns(2).spacing([20.0, 6.0]).show(ui, |ui| {
                for (keys, what) in LIST {
                    ui.strong(keys);
                    ui.label(what);
                    ui.end_row();
                }
            });
        });
    }
}
