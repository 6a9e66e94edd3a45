//! What of the time difference panel is exported and kept.

use bit_diffusion::saved::Saved;

use super::{TimeDifference, Undo};
use crate::{
    export::{Shown, ShownChain, Table, score_fields},
    kept::{Kept, restore_settings},
    widgets::reading::{Reading, Source},
};

impl Kept for TimeDifference {
    fn shown(&self) -> Shown {
        let mut pictures = vec![self.views.iter().filter_map(|view| view.shown().cloned()).collect()];
        let cells = self.sweep.rows();
        pictures.extend(cells.iter().map(|row| row.iter().map(|cell| cell.pictures.clone()).collect()));
        pictures.push(self.big_step.parts().iter().map(|part| part.view.pictures.clone()).collect());
        let mut tables = Vec::new();
        if cells.iter().any(|row| !row.is_empty()) {
            let columns = ["steps", "td", "evaluations", "near_modes", "off_palette", "scenes"];
            let mut table = Table::new("grid", &columns);
            for cell in cells.iter().flatten() {
                let [off_palette, scenes] = score_fields(cell.score);
                let (steps, td, evaluations) = (cell.n_steps, cell.td, cell.n_evaluations);
                let [steps, td, evaluations] = [steps.to_string(), td.to_string(), evaluations.to_string()];
                table.row(&[steps, td, evaluations, cell.share_near_modes.to_string(), off_palette, scenes]);
            }
            tables.push(table);
        }
        if !self.big_step.parts().is_empty() {
            let mut table = Table::new("big-step", &["told", "noisy_pixels", "changed_pixels", "pixels"]);
            for part in self.big_step.parts() {
                let told = part.told.map_or_else(String::new, |told| told.to_string());
                let noisy = part.n_noisy.map_or_else(String::new, |n| n.to_string());
                table.row(&[told, noisy, part.n_changed.to_string(), part.n_pixels.to_string()]);
            }
            tables.push(table);
        }
        let tracks = [("with", &self.with_td), ("without", &self.without)];
        Shown {
            pictures,
            chains: tracks.into_iter().filter_map(|(name, track)| ShownChain::of(name, track)).collect(),
            film: Some((vec![Source::Estimate], Reading::Threshold)),
            tables,
            settings: self.saved(),
            ..Shown::default()
        }
    }

    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("settings", &self.settings);
        saved.put("seed", &self.seed);
        saved.put("big_step", &self.big_step.times());
        saved
    }

    fn restore(&mut self, saved: &Saved) {
        restore_settings(saved, &mut self.settings);
        saved.restore("seed", &mut self.seed, |_| true);
        if let Some(times) = saved.value("big_step") {
            self.big_step.set_times(times);
        }
        self.undo = Undo::new(self.wanted());
    }
}
