//! The tour: short lessons that set the panels up and say what to look at.
//!
//! Deliberately absent: anything that only the tour can do. Each lesson moves the same controls that a person can.

use egui::{CollapsingHeader, RichText, Ui};

use crate::{Panel, Studio};

/// One stop of the tour.
struct Lesson {
    title: &'static str,
    panel: Panel,
    /// What it is about, in plain words.
    text: &'static str,
    /// What to look at, and what to try.
    look: &'static str,
    /// The equation, for those who want it.
    equation: &'static str,
}

const LESSONS: [Lesson; 7] = [
    Lesson {
        title: "Pictures are bits",
        panel: Panel::Chain,
        text: "A computer writes every colour value, 0 to 255, as eight bits. Bit Diffusion takes each bit as a number on a line, −1 for a 0 and \
               +1 for a 1, that may also lie in between: an analog bit. So a method for smooth numbers can make things that are not smooth.",
        look: "Noise becomes pictures. Point at any pixel: the bars are its analog bits. At the beginning they lie anywhere, at the \
               end all of them are at one of the two marks.",
        equation: "x_0 = 2·bit − 1, read back as bit = 1 where x > 0",
    },
    Lesson {
        title: "Adding noise is easy",
        panel: Panel::Bits,
        text: "Mix the bits of a picture with more and more random noise, and after a while nothing of it is left. How much is left at time t is \
               called γ: almost 1 at t = 0, almost 0 at t = 1.",
        look: "The picture of all steps is the same journey backwards: on its left one broad hill of noise, on its right two sharp lines. \
               Scrub along the steps and watch the hill part.",
        equation: "x_t = √γ(t)·x_0 + √(1 − γ(t))·ε, with ε drawn from a normal distribution",
    },
    Lesson {
        title: "The way back",
        panel: Panel::Chain,
        text: "A network has learned to guess the clean picture from a noisy one. Its first guess is poor, so we go only a little way towards it, and \
               guess again. After the last step a threshold turns numbers into bits, and bits into colours.",
        look: "Press play. On the left is the noisy state, on the right the guess. Point at a pixel to see its analog bits. Then change a setting \
               half-way and continue from there: the branch appears beside the old chain.",
        equation: "x_pred = f(x_t, t), then x_next = √γ_next·x_pred + √(1 − γ_next)·ε_pred (DDIM)",
    },
    Lesson {
        title: "Looking at one's last guess",
        panel: Panel::SelfCond,
        text: "An ordinary diffusion model forgets its guess after every step. With self-conditioning the network is also shown its last guess, \
               and can refine it instead of starting anew. It costs nothing: the guess is there anyway.",
        look: "Four chains from one noise: without, with the last guess, with an average of all guesses, and with a first guess of the same step, which \
               looks twice. Compare the stray pixels on the way, and count the evaluations.",
        equation: "x_pred = f(x_t, x_pred of the step before, t)",
    },
    Lesson {
        title: "Telling the network a later time",
        panel: Panel::TimeDifference,
        text: "With few steps the network is always a little behind: the state is noisier than it should be. So we take the state further than the \
               clock says, by td steps, and the network is told of more noise than there is. It then cleans up more boldly.",
        look: "Drag td from 0 to 2 and watch the same noise end as cleaner shapes. The two tracks show the clock and the state. The grid does it for all \
               numbers of steps at once.",
        equation: "t_now = 1 − step/steps, t_next = max(1 − (step + 1 + td)/steps, 0)",
    },
    Lesson {
        title: "Which bits?",
        panel: Panel::Bits,
        text: "The same value can be written in other bits. In Gray code neighbouring values differ in one bit only. In a shuffled code bits say nothing \
               of the order at all. Ordinary base 2 turns out to work well.",
        look: "Compare the three codes below: how far apart two values are against how many of their bits differ. Then choose the models shapes-gray \
               and shapes-rand above, and watch them part their bits.",
        equation: "Gray code: g = v xor (v >> 1)",
    },
    Lesson {
        title: "Words as bits",
        panel: Panel::Captions,
        text: "Words are no smooth numbers at all. But give every word a number and write that in bits, and the same method writes captions: all \
               words at once, from noise. Other programs write one word after the other and run their network once for each.",
        look: "Green frames: the caption is true of its scene. Drag the time difference up from 0 and see how many more are true with 5 steps, then \
               compare with word by word. Below, point at a word at the first step: which words are one bit away?",
        equation: "word k = the bits of k in base 2, x_0 = 2·bit − 1; then x_pred = f(x_t, x_pred, t, picture)",
    },
];

/// Where a person is on the tour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tour {
    /// The lesson that is open.
    lesson: Option<usize>,
    /// Whether the panels have been set up for it.
    is_set_up: bool,
}

impl Tour {
    /// Opens the tour at its beginning.
    pub fn start(&mut self) {
        self.go(0);
    }

    /// Whether a lesson is open.
    pub fn is_open(self) -> bool {
        self.lesson.is_some()
    }

    fn go(&mut self, lesson: usize) {
        *self = Self { lesson: Some(lesson), is_set_up: false };
    }

    /// The panel to set up for the lesson that was just opened.
    fn take_set_up(&mut self) -> Option<usize> {
        let lesson = self.lesson.filter(|_| !self.is_set_up)?;
        self.is_set_up = true;
        Some(lesson)
    }

    /// Draws the lesson.
    fn ui(&mut self, ui: &mut Ui) {
        let Some(index) = self.lesson else { return };
        let lesson = &LESSONS[index];
        ui.add_space(4.0);
        ui.weak(format!("Tour, {} of {}", index + 1, LESSONS.len()));
        ui.heading(lesson.title);
        ui.add_space(4.0);
        ui.label(lesson.text);
        ui.add_space(8.0);
        ui.strong("What to look at");
        ui.label(lesson.look);
        ui.add_space(8.0);
        CollapsingHeader::new("The equation").id_salt(index).show(ui, |ui| {
            ui.label(RichText::new(lesson.equation).monospace());
        });
        ui.add_space(12.0);
        ui.horizontal(|ui| {
            if ui.add_enabled(index > 0, egui::Button::new("Back")).clicked() {
                self.go(index - 1);
            }
            if index + 1 < LESSONS.len() {
                if ui.button("Next lesson").clicked() {
                    self.go(index + 1);
                }
            } else if ui.button("End the tour").clicked() {
                self.lesson = None;
            }
            if ui.button("Leave").on_hover_text("The button \"Tour\" above brings it back").clicked() {
                self.lesson = None;
            }
        });
    }
}

impl Studio {
    /// Draws the tour beside the panels, or below them where there is no room, and sets up what its lesson is about.
    pub(crate) fn tour_ui(&mut self, ui: &mut Ui) {
        if let Some(lesson) = self.tour.take_set_up() {
            self.panel = LESSONS[lesson].panel;
            match lesson {
                0 | 2 => self.panes.chain.set_up(),
                3 => self.panes.self_cond.set_up(),
                4 => self.panes.time_difference.set_up(),
                6 => self.panes.captions.set_up(),
                _ => self.panes.bits.set_up(),
            }
        }
        if !self.tour.is_open() {
            return;
        }
        let tour = &mut self.tour;
        let content = |ui: &mut Ui| {
            egui::ScrollArea::vertical().show(ui, |ui| tour.ui(ui));
        };
        if crate::controls::is_narrow(ui) {
            egui::Panel::bottom("tour, below").default_size(200.0).resizable(true).show(ui, content);
        } else {
            egui::Panel::right("tour").default_size(250.0).show(ui, content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_sets_up_its_panel_once() {
        let mut tour = Tour::default();
        assert!(!tour.is_open() && tour.take_set_up().is_none());
        tour.start();
        assert_eq!((tour.take_set_up(), tour.take_set_up()), (Some(0), None));
        tour.go(4);
        assert_eq!((tour.take_set_up(), LESSONS[4].panel), (Some(4), Panel::TimeDifference));
        assert_eq!([2, 3].map(|lesson: usize| LESSONS[lesson].panel), [Panel::Chain, Panel::SelfCond]);
    }
}
