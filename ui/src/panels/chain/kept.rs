//! What of the chain panel is exported and kept.

use bit_diffusion::{engine::Classes, sampler::Settings, saved::Saved};

use super::{Chain, MAX_SAMPLES, Undo};
use crate::{
    export::{Shown, ShownChain},
    kept::{Kept, is_usable, restore_settings},
    widgets::reading::{Reading, Source},
};

impl Kept for Chain {
    fn shown(&self) -> Shown {
        let n_tracks = if self.wanted.branch.is_some() { 2 } else { 1 };
        let grids = self.grids.iter().take(n_tracks);
        let row =
            grids.flat_map(|grids| self.look.sources.iter().filter_map(|source| grids[*source as usize].view.shown()));
        let tracks = [("first", &self.main), ("second", &self.branch)];
        Shown {
            pictures: vec![row.cloned().collect()],
            chains: tracks.into_iter().take(n_tracks).filter_map(|(name, track)| ShownChain::of(name, track)).collect(),
            film: Some((self.look.sources.clone(), self.look.reading)),
            settings: self.saved(),
            ..Shown::default()
        }
    }

    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("settings", &self.wanted.settings);
        saved.put("n", &self.wanted.n);
        saved.put("seed", &self.wanted.seed);
        saved.put("classes", &self.wanted.classes);
        saved.put("branch", &self.wanted.branch);
        let sources: Vec<&str> = self.look.sources.iter().map(|source| source.label()).collect();
        saved.put("sources", &sources);
        let (reading, plane) = match self.look.reading {
            Reading::Threshold => ("threshold", self.look.plane),
            Reading::Soft => ("soft", self.look.plane),
            Reading::Plane(plane) => ("plane", plane),
        };
        saved.put("reading", reading);
        saved.put("plane", &plane);
        saved
    }

    fn restore(&mut self, saved: &Saved) {
        let wanted = &mut self.wanted;
        restore_settings(saved, &mut wanted.settings);
        saved.restore("n", &mut wanted.n, |n| (1..=MAX_SAMPLES).contains(n));
        saved.restore("seed", &mut wanted.seed, |_| true);
        saved.restore("classes", &mut wanted.classes, |_: &Classes| true);
        saved.restore("branch", &mut wanted.branch, |branch: &Option<(usize, Settings)>| {
            branch.as_ref().is_none_or(|(_, settings)| is_usable(settings))
        });
        let labels: Vec<String> = saved.value("sources").unwrap_or_default();
        let sources: Vec<Source> =
            Source::ALL.into_iter().filter(|source| labels.iter().any(|label| label == source.label())).collect();
        if !sources.is_empty() {
            self.look.sources = sources;
        }
        saved.restore("plane", &mut self.look.plane, |plane| *plane < 8);
        match saved.value::<String>("reading").as_deref() {
            Some("threshold") => self.look.reading = Reading::Threshold,
            Some("soft") => self.look.reading = Reading::Soft,
            Some("plane") => self.look.reading = Reading::Plane(self.look.plane),
            _ => {}
        }
        self.undo = Undo::new(self.wanted.clone());
    }
}
