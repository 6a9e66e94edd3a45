//! What of the one bit is exported and kept.

use bit_diffusion::saved::Saved;

use super::{Toy, Undo};
use crate::{
    export::{Shown, Table},
    kept::{Kept, restore_settings},
};

impl Kept for Toy {
    fn shown(&self) -> Shown {
        let mut tables = Vec::new();
        if let Some((_, Ok(paths))) = &self.paths {
            let mut table = Table::new("paths", &["path", "becomes", "1-t", "x_t"]);
            for (number, (path, becomes_one)) in paths.drawn.iter().enumerate() {
                let bit = if *becomes_one { "1" } else { "-1" };
                for point in path {
                    table.row(&[(number + 1).to_string(), bit.to_owned(), point.x.to_string(), point.y.to_string()]);
                }
            }
            tables.push(table);
        }
        Shown { tables, settings: self.saved(), ..Shown::default() }
    }

    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("p", &self.wanted.p);
        saved.put("settings", &self.wanted.settings);
        saved.put("seed", &self.wanted.seed);
        saved.put("start", &self.wanted.start);
        saved
    }

    fn restore(&mut self, saved: &Saved) {
        let wanted = &mut self.wanted;
        saved.restore("p", &mut wanted.p, |p| (0.02..=0.98).contains(p));
        restore_settings(saved, &mut wanted.settings);
        saved.restore("seed", &mut wanted.seed, |_| true);
        saved.restore("start", &mut wanted.start, |start| (-3.0..=3.0).contains(start));
        self.undo = Undo::new(self.wanted);
    }
}
