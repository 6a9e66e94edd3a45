//! Steps against time differences: a grid of results, each with its exact score (the paper's Table 4 and Figure 6 in small).

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use bit_diffusion::{
    engine::{Cell, Command, Event, ModelId, Slot, StartedJob, SweepRequest, TrainingEvent},
    sampler::Settings,
};
use egui::{Grid, ProgressBar, RichText, ScrollArea, Stroke, StrokeKind, Ui};

use crate::{session::Session, theme::Ink, widgets::SheetView};

/// The rows and columns: doubled each time, so that few cells cover much.
const STEPS: [usize; 5] = [2, 4, 8, 16, 32];
const TD: [f64; 5] = [0.0, 1.0, 2.0, 4.0, 8.0];

/// Pictures of a cell.
const N_SAMPLES: usize = 16;

/// The side of a cell's pictures, in points: at least, and at most.
const SIDES: [f32; 2] = [84.0, 128.0];

/// A cell's place: row and column.
type Place = (usize, usize);

/// The grid.
pub(crate) struct SweepGrid {
    slot: Slot,
    /// What the cells belong to.
    request: Option<Arc<SweepRequest>>,
    cells: HashMap<Place, (Arc<Cell>, SheetView)>,
    /// Done and total, while it is under way.
    progress: Option<(usize, usize)>,
}

impl SweepGrid {
    pub fn new(slot: Slot) -> Self {
        Self { slot, request: None, cells: HashMap::new(), progress: None }
    }

    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::Started { slot, job: StartedJob::Sweep(request), .. } if *slot == self.slot => {
                self.request = Some(request.clone());
                self.cells.clear();
                self.progress = Some((0, 1));
            }
            Event::Progress { slot, done, total } if *slot == self.slot => self.progress = Some((*done, *total)),
            Event::Cell { slot, cell } if *slot == self.slot => {
                let row = STEPS.iter().position(|n_steps| *n_steps == cell.n_steps);
                let column = TD.iter().position(|td| (td - cell.td).abs() < 1e-9);
                if let (Some(row), Some(column)) = (row, column) {
                    self.cells.insert((row, column), (cell.clone(), SheetView::default()));
                }
            }
            Event::Finished { slot, .. } | Event::Cancelled { slot } | Event::Failed { slot: Some(slot), .. }
                if *slot == self.slot =>
            {
                self.progress = None;
            }
            // The network has learned: the cells are those of an earlier one.
            Event::Training { event: TrainingEvent::Started { .. } | TrainingEvent::Step(_), .. }
                if self.request.as_ref().is_some_and(|request| request.model == ModelId::Training) =>
            {
                self.request = None;
            }
            _ => {}
        }
    }

    /// The cells that are here, row by row.
    pub fn rows(&self) -> [Vec<Arc<Cell>>; STEPS.len()] {
        std::array::from_fn(|row| {
            (0..TD.len()).filter_map(|column| self.cells.get(&(row, column))).map(|(cell, _)| cell.clone()).collect()
        })
    }

    /// Draws the grid; returns the steps and the time difference of a cell that was clicked.
    pub fn ui(&mut self, ui: &mut Ui, settings: &Settings, seed: u64, session: &mut Session) -> Option<(usize, f64)> {
        let request = SweepRequest {
            model: session.model,
            n: N_SAMPLES,
            seeds: vec![seed],
            steps: STEPS.to_vec(),
            td: TD.to_vec(),
            sampler: settings.sampler,
            self_cond: settings.self_cond,
        };
        ui.strong("Steps against time difference");
        ui.label("Fewer steps cost less, and suffer more. How much of that does the time difference win back? Click a cell to load it above.");
        let is_current = self.request.as_deref() == Some(&request);
        let is_done = self.cells.len() == STEPS.len() * TD.len();
        ui.horizontal_wrapped(|ui| match self.progress {
            Some((done, total)) => {
                ui.add(ProgressBar::new(done as f32 / total.max(1) as f32).desired_width(220.0).show_percentage());
                if ui.button("Cancel the grid").clicked() {
                    session.send(Command::Cancel { slot: self.slot });
                }
            }
            None if is_current && is_done => {}
            None => {
                let n_steps: usize = STEPS.iter().sum::<usize>() * TD.len();
                let button = ui.button("Score the grid").on_hover_text(format!(
                    "Makes {N_SAMPLES} pictures for each of {} cells, {n_steps} steps in all, with the sampler and the \
                     self-conditioning of the settings",
                    STEPS.len() * TD.len()
                ));
                if button.clicked() {
                    self.progress = Some((0, 1));
                    session.send(Command::Sweep { slot: self.slot, request });
                }
                if !is_current && !self.cells.is_empty() {
                    let is_learning = session.model == ModelId::Training;
                    let text = if is_learning {
                        "the network has learned since"
                    } else {
                        "what is shown was made with other settings"
                    };
                    ui.weak(text);
                }
            }
        });
        if self.cells.is_empty() {
            return None;
        }
        ui.add_space(4.0);
        ScrollArea::horizontal().id_salt("sweep").show(ui, |ui| self.cells_ui(ui, settings)).inner
    }

    fn cells_ui(&mut self, ui: &mut Ui, settings: &Settings) -> Option<(usize, f64)> {
        let best = self.best_of_each_row();
        let side = (ui.available_width() - 70.0) / TD.len() as f32 - 10.0;
        let side = side.clamp(SIDES[0], SIDES[1]);
        let (good, ring) = (Ink::One.colour(ui), ui.visuals().selection.bg_fill);
        let mut chosen = None;
        Grid::new("sweep").spacing([10.0, 8.0]).show(ui, |ui| {
            ui.label("");
            for td in TD {
                ui.weak(format!("td = {td}"));
            }
            ui.end_row();
            for (row, n_steps) in STEPS.into_iter().enumerate() {
                ui.label(format!("{n_steps} steps"));
                for (column, td) in TD.into_iter().enumerate() {
                    ui.vertical(|ui| {
                        ui.set_width(side);
                        let Some((cell, view)) = self.cells.get_mut(&(row, column)) else {
                            ui.add_space(side + 20.0);
                            return;
                        };
                        let name = format!("{n_steps} steps, td {td}: {}", score_text(cell));
                        let (response, _) = view.show(ui, &name, &cell.pictures, side);
                        if settings.n_steps == n_steps && (settings.td - td).abs() < 1e-9 {
                            let stroke = Stroke::new(3.0, ring);
                            ui.painter().rect_stroke(response.rect, 0.0, stroke, StrokeKind::Outside);
                        }
                        if response.on_hover_text(hint(cell)).clicked() {
                            chosen = Some((n_steps, td));
                        }
                        let text = RichText::new(score_text(cell));
                        let is_best = best[row] == Some(goodness(cell));
                        ui.label(if is_best { text.color(good) } else { text });
                        if let Some(score) = cell.score {
                            ui.small(format!("{:.1}% wrong colours", 100.0 * score.off_palette));
                        }
                    });
                }
                ui.end_row();
            }
        });
        ui.weak("Flawless: the share of pictures that are a scene to the last pixel. Green: the best of its row");
        chosen
    }

    /// The best score of each row.
    fn best_of_each_row(&self) -> [Option<Goodness>; STEPS.len()] {
        std::array::from_fn(|row| {
            let scored = (0..TD.len()).filter_map(|column| self.cells.get(&(row, column)));
            scored.map(|(cell, _)| goodness(cell)).max_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal))
        })
    }
}

/// More is better: first the share of flawless scenes, or of decided bits; among equals the share of right colours.
type Goodness = (f64, f64);

fn goodness(cell: &Cell) -> Goodness {
    cell.score.map_or((cell.share_near_modes, 0.0), |score| (score.scenes, 1.0 - score.off_palette))
}

/// The exact score of a cell, in few words.
fn score_text(cell: &Cell) -> String {
    match cell.score {
        Some(score) => format!("{:.0}% flawless", 100.0 * score.scenes),
        None => format!("{:.1}% decided", 100.0 * cell.share_near_modes),
    }
}

/// Everything that is known of a cell.
fn hint(cell: &Cell) -> String {
    let colours = cell
        .score
        .map(|score| format!(", {:.2}% of the pixels have a colour that no scene has", 100.0 * score.off_palette));
    format!(
        "{} runs of the network for each picture, {:.2}% of the bits are decided{}. Click to load this cell above",
        cell.n_evaluations,
        100.0 * cell.share_near_modes,
        colours.unwrap_or_default()
    )
}
