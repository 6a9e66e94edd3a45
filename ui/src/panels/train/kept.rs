//! What of the training panel is exported and kept.

use bit_diffusion::saved::Saved;

use super::{Train, Undo};
use crate::{
    export::{Shown, Table},
    kept::Kept,
};

impl Kept for Train {
    fn shown(&self) -> Shown {
        let mut tables = Vec::new();
        if !self.curves.is_empty() {
            let mut table = Table::new("loss", &["step", "loss", "learning_rate"]);
            for (step, loss, rate) in self.curves.steps() {
                table.row(&[step.to_string(), loss.to_string(), rate.to_string()]);
            }
            tables.push(table);
        }
        let pictures = vec![self.view.shown().cloned().into_iter().collect()];
        Shown { pictures, tables, settings: self.saved(), ..Shown::default() }
    }

    fn saved(&self) -> Saved {
        self.form.saved()
    }

    fn restore(&mut self, saved: &Saved) {
        self.form.restore(saved);
        self.undo = Undo::new(self.form.clone());
    }
}
