//! One big step, then denoised with several clocks: why a network that is told of more noise cleans better (the paper's Figure 3).

use std::sync::Arc;

use bit_diffusion::{
    engine::{
        BigStepPart, BigStepRequest, Command, Event, Measure, ModelId, PictureSheet, Slot, StartedJob, TrainingEvent,
    },
    sampler::Settings,
};
use egui::{RichText, Slider, Ui};

use crate::{session::Session, theme::Ink, widgets::SheetView};

/// The side of one column's pictures, in points: at least, and at most.
const SIDES: [f32; 2] = [92.0, 150.0];

/// Where the big step starts, at first. The paper's 0.6 is easy for pictures as small as the demo's: hardly a bit goes wrong.
const T_FROM: f64 = 0.9;

/// The figure.
pub(crate) struct BigStepFigure {
    slot: Slot,
    t_from: f64,
    t_to: f64,
    sent: Option<BigStepRequest>,
    parts: Vec<Arc<BigStepPart>>,
    views: Vec<SheetView>,
    is_busy: bool,
}

impl BigStepFigure {
    pub fn new(slot: Slot) -> Self {
        let t_to = BigStepRequest::default().t_to;
        Self { slot, t_from: T_FROM, t_to, sent: None, parts: Vec::new(), views: Vec::new(), is_busy: false }
    }

    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::Started { slot, job: StartedJob::BigStep(_), .. } if *slot == self.slot => {
                self.parts.clear();
                self.is_busy = true;
            }
            Event::BigStep { slot, part } if *slot == self.slot => self.parts.push(part.clone()),
            Event::Finished { slot, .. } | Event::Cancelled { slot } | Event::Failed { slot: Some(slot), .. }
                if *slot == self.slot =>
            {
                self.is_busy = false;
            }
            // The network has learned for a while: it is asked again.
            Event::Training { event: TrainingEvent::Started { .. } | TrainingEvent::Sheet { .. }, .. }
                if self.sent.as_ref().is_some_and(|sent| sent.model == ModelId::Training) =>
            {
                self.sent = None;
            }
            _ => {}
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, settings: &Settings, seed: u64, session: &mut Session) {
        ui.strong("One big step");
        ui.label(
            "Clean scenes are noised, and taken most of the way back in a single big step, which leaves many bits wrong. Then the network \
             cleans the result once more, each time told another clock time t'. Told the true time it trusts what it sees, wrong bits too; \
             told of somewhat more noise it repairs more of them.",
        );
        ui.horizontal_wrapped(|ui| {
            ui.add(Slider::new(&mut self.t_from, 0.2..=0.98).text("noised to t"));
            ui.add(Slider::new(&mut self.t_to, 0.05..=0.5).text("one step to t"));
            let paper = BigStepRequest::default();
            let text = format!("As in the paper: {} to {}", paper.t_from, paper.t_to);
            let hint = "The paper shows larger pictures. Those of 16 × 16 pixels are so easy that hardly a bit goes wrong from there.";
            if ui.button(text).on_hover_text(hint).clicked() {
                (self.t_from, self.t_to) = (paper.t_from, paper.t_to);
            }
        });
        self.t_to = self.t_to.min(self.t_from - 0.05);
        match &session.info {
            None => {
                ui.spinner();
                return;
            }
            Some(info) if info.measure != Measure::Shapes => {
                ui.weak("This needs clean pictures to start from: choose a model of the shapes world");
                return;
            }
            Some(_) => self.ask(settings, seed, session),
        }
        if self.is_busy {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.weak(format!("{} of {} parts", self.parts.len(), self.n_parts()));
                if ui.small_button("Cancel the figure").clicked() {
                    session.send(Command::Cancel { slot: self.slot });
                }
            });
        }
        self.parts_ui(ui);
    }

    /// The parts that are here.
    pub fn parts(&self) -> &[Arc<BigStepPart>] {
        &self.parts
    }

    /// The times that the big step starts from and goes to.
    pub fn times(&self) -> [f64; 2] {
        [self.t_from, self.t_to]
    }

    /// Sets both times, if the sliders allow them.
    pub fn set_times(&mut self, [t_from, t_to]: [f64; 2]) {
        if (0.2..=0.98).contains(&t_from) && (0.05..=0.5).contains(&t_to) {
            (self.t_from, self.t_to) = (t_from, t_to);
        }
    }

    fn n_parts(&self) -> usize {
        self.sent.as_ref().map_or(0, |sent| sent.told.len() + 1)
    }

    fn ask(&mut self, settings: &Settings, seed: u64, session: &mut Session) {
        // Steps and time difference do not matter here; left as they are, they would ask for the same again and again.
        let settings = Settings { n_steps: 1, td: 0.0, ..*settings };
        let request = BigStepRequest {
            model: session.model,
            seed,
            t_from: self.t_from,
            t_to: self.t_to,
            settings,
            ..BigStepRequest::default()
        };
        if self.sent.as_ref() != Some(&request) {
            self.sent = Some(request.clone());
            self.is_busy = true;
            session.send(Command::BigStep { slot: self.slot, request });
        }
    }

    fn parts_ui(&mut self, ui: &mut Ui) {
        let Some(first) = self.parts.first() else { return };
        let mut columns: Vec<(String, &PictureSheet, String)> =
            vec![("clean".to_owned(), &first.clean, format!("{} pixels", first.n_pixels))];
        for part in &self.parts {
            let name = match part.told {
                None => "after the step".to_owned(),
                Some(told) => format!("told t' = {told:.1}"),
            };
            columns.push((name, &part.view.pictures, noisy_text(part)));
        }
        self.views.resize_with(columns.len().max(self.views.len()), SheetView::default);
        let fewest = self.parts.iter().filter_map(|part| part.told.map(|_| wrong(part))).min();
        let good = Ink::One.colour(ui);
        let (width, gap) = (ui.available_width(), ui.spacing().item_spacing.x);
        // In as few rows as the smallest pictures allow, and as evenly.
        let n = self.n_parts() + 1;
        let n_rows = n.div_ceil(((width + gap) / (SIDES[0] + gap)).max(1.0) as usize);
        let n_columns = n.div_ceil(n_rows);
        let side = ((width + gap) / n_columns as f32 - gap).min(SIDES[1]);
        let mut cells = columns.into_iter().zip(&mut self.views).enumerate().peekable();
        while cells.peek().is_some() {
            ui.horizontal_top(|ui| {
                for (index, ((name, sheet, text), view)) in cells.by_ref().take(n_columns) {
                    let part = index.checked_sub(1).and_then(|index| self.parts.get(index));
                    let is_best = part.is_some_and(|part| part.told.is_some() && Some(wrong(part)) == fewest);
                    let text_ink = if is_best { good } else { ui.visuals().text_color() };
                    ui.vertical(|ui| {
                        ui.set_width(side);
                        ui.label(&name);
                        let (response, _) = view.show(ui, &format!("{name}: {text}"), sheet, side);
                        if let Some(part) = part {
                            let hint = format!(
                                "{} of {} pixels differ from the clean pictures",
                                part.n_changed, part.n_pixels
                            );
                            response.on_hover_text(hint);
                        }
                        ui.label(RichText::new(text).color(text_ink));
                    });
                }
            });
        }
    }
}

/// The count that decides which clock is best.
fn wrong(part: &BigStepPart) -> usize {
    part.n_noisy.unwrap_or(part.n_changed)
}

fn noisy_text(part: &BigStepPart) -> String {
    match part.n_noisy {
        Some(n) => format!("{n} wrong colours"),
        None => format!("{} changed pixels", part.n_changed),
    }
}
