//! What of the self-conditioning panel is exported and kept.

use bit_diffusion::saved::Saved;

use super::{MAX_SAMPLES, SelfCond, Undo};
use crate::{
    export::{Shown, ShownChain},
    kept::{Kept, restore_settings},
    widgets::reading::{Reading, Source},
};

impl Kept for SelfCond {
    fn shown(&self) -> Shown {
        let strategies = self.wanted.strategies();
        let chains = self.columns.iter().zip(strategies);
        Shown {
            pictures: vec![self.columns.iter().filter_map(|column| column.view.shown().cloned()).collect()],
            chains: chains.filter_map(|(column, strategy)| ShownChain::of(strategy.label(), &column.track)).collect(),
            film: Some((vec![Source::Estimate], Reading::Threshold)),
            settings: self.saved(),
            ..Shown::default()
        }
    }

    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("settings", &self.wanted.settings);
        saved.put("momentum", &self.wanted.momentum);
        saved.put("weight", &self.wanted.weight);
        saved.put("n", &self.wanted.n);
        saved.put("seed", &self.wanted.seed);
        saved
    }

    fn restore(&mut self, saved: &Saved) {
        let wanted = &mut self.wanted;
        restore_settings(saved, &mut wanted.settings);
        saved.restore("momentum", &mut wanted.momentum, |momentum| (0.0..=0.95).contains(momentum));
        saved.restore("weight", &mut wanted.weight, |weight| (0.0..=8.0).contains(weight));
        saved.restore("n", &mut wanted.n, |n| (1..=MAX_SAMPLES).contains(n));
        saved.restore("seed", &mut wanted.seed, |_| true);
        self.undo = Undo::new(self.wanted);
    }
}
