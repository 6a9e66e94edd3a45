//! What of the bits panel is exported and kept.

use bit_diffusion::{metrics::bits::N_BINS, saved::Saved};

use super::{Bits, Plane, Undo};
use crate::{
    export::{Shown, ShownChain, Table},
    kept::{Kept, restore_settings},
};

impl Kept for Bits {
    fn shown(&self) -> Shown {
        Shown {
            chains: ShownChain::of("chain", &self.track).into_iter().collect(),
            tables: self.histograms().into_iter().collect(),
            settings: self.saved(),
            ..Shown::default()
        }
    }

    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("settings", &self.settings);
        saved.put("seed", &self.seed);
        let plane = match self.plane {
            Plane::All => None,
            Plane::Bit(bit) => Some(bit),
        };
        saved.put("plane", &plane);
        saved
    }

    fn restore(&mut self, saved: &Saved) {
        restore_settings(saved, &mut self.settings);
        saved.restore("seed", &mut self.seed, |_| true);
        if let Some(plane) = saved.value::<Option<usize>>("plane") {
            self.plane = plane.map_or(Plane::All, Plane::Bit);
        }
        self.undo = Undo::new((self.settings, self.seed));
    }
}

impl Bits {
    /// The share of the bits in each bin, at each step, as the histograms show them.
    fn histograms(&self) -> Option<Table> {
        let limit = self.spreads.limit();
        let bin = 2.0 * limit / N_BINS as f64;
        let middles = (0..N_BINS).map(|i| format!("{:.3}", (i as f64 + 0.5) * bin - limit));
        let columns: Vec<String> = ["step", "of", "near_modes"].map(str::to_owned).into_iter().chain(middles).collect();
        let mut table = Table::new("histograms", &columns.iter().map(String::as_str).collect::<Vec<_>>());
        for (name, spreads) in [("x_t", self.spreads.states()), ("x_pred", self.spreads.estimates())] {
            for (step, spread) in spreads.iter().enumerate() {
                let mut row = vec![(step + 1).to_string(), name.to_owned(), spread.decided.to_string()];
                row.extend(spread.shares.iter().map(f64::to_string));
                table.row(&row);
            }
        }
        (self.spreads.len() > 0).then_some(table)
    }
}
