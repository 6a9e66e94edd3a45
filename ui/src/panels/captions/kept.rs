//! What of the captions panel is exported and kept.

use bit_diffusion::{demo::Demo, engine::ModelId, model::Method, saved::Saved};

use super::{AUTOREGRESSIVE, Captions, MAX_TD, Made, N_SCENES, STEPS, Subject, Undo, captions_of, table, token};
use crate::{
    command_line,
    export::{Shown, Table},
    kept::{Kept, restore_settings},
};

impl Kept for Captions {
    fn shown(&self) -> Shown {
        let made: Vec<&Made> = self.rows.iter().filter_map(|row| row.made.as_ref()).collect();
        let mut tables = Vec::new();
        if !made.is_empty() {
            tables.extend([captions_table(&made), tokens_table(&made, self.picture())]);
        }
        let line = self.rows.get(self.wanted.row).made.as_ref().map(|made| {
            let model = self.captioners.name(made.request.model);
            command_line::caption_line(&made.request, made.captioner.method, model)
        });
        Shown { pictures: vec![self.gallery.shown()], tables, line, settings: self.saved(), ..Shown::default() }
    }

    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        let mut settings = self.wanted.settings;
        // Of word by word, the settings are still those of the others.
        settings.n_steps = STEPS.get(self.wanted.row).copied().unwrap_or(settings.n_steps);
        saved.put("settings", &settings);
        saved.put("word_by_word", &(self.wanted.row == AUTOREGRESSIVE));
        saved.put("seed", &self.wanted.seed);
        saved.put("gallery", &self.wanted.scenes);
        // An opened file is not there at the next start.
        if let ModelId::Demo(demo) = self.wanted.captioner {
            saved.put("captioner", &demo);
        }
        if let Subject::Chosen(index) = self.subject() {
            saved.put("picture", &(index + 1));
        }
        saved
    }

    fn restore(&mut self, saved: &Saved) {
        let wanted = &mut self.wanted;
        restore_settings(saved, &mut wanted.settings);
        wanted.settings.td = wanted.settings.td.min(MAX_TD);
        let n_steps: Option<usize> = saved.part("settings").value("n_steps");
        wanted.row = STEPS.iter().position(|steps| Some(*steps) == n_steps).unwrap_or(wanted.row);
        if saved.value("word_by_word") == Some(true) {
            wanted.row = AUTOREGRESSIVE;
        }
        saved.restore("seed", &mut wanted.seed, |_| true);
        saved.restore("gallery", &mut wanted.scenes, |_| true);
        let writes_bits = |demo: &Demo| Demo::CAPTIONERS.contains(&(*demo, Method::BitDiffusion));
        if let Some(demo) = saved.value("captioner").filter(writes_bits) {
            wanted.captioner = ModelId::Demo(demo);
        }
        if let Some(index) = saved.value::<usize>("picture").filter(|index| (1..=N_SCENES).contains(index)) {
            wanted.subject = Subject::Chosen(index - 1);
        }
        self.undo = Undo::new(self.wanted);
    }
}

/// The newest captions of all pictures.
fn captions_table(made: &[&Made]) -> Table {
    let columns = ["model", "method", "steps", "td", "evaluations", "picture", "caption", "true"];
    let mut table = Table::new("table", &columns);
    for made in made {
        let captions = made.steps.last().map_or(&[][..], |step| &step.captions);
        for (picture, caption) in captions.iter().enumerate() {
            table.row(&[
                made.captioner.name.clone(),
                made.captioner.method.label().to_owned(),
                made.steps.len().to_string(),
                made.request.settings.td.to_string(),
                table::n_runs(made, picture).to_string(),
                (picture + 1).to_string(),
                caption.text.clone(),
                caption.is_true.map_or_else(String::new, |is_true| is_true.to_string()),
            ]);
        }
    }
    table
}

/// Every token of the chosen picture at every step.
fn tokens_table(made: &[&Made], picture: usize) -> Table {
    let mut table = Table::new("tokens", &["model", "steps", "step", "token", "word", "confidence", "bits"]);
    for made in made {
        for (step, caption) in captions_of(made, picture).into_iter().enumerate() {
            for (index, view) in caption.tokens.iter().enumerate() {
                let bits: Vec<String> = view.bits.iter().map(f32::to_string).collect();
                table.row(&[
                    made.captioner.name.clone(),
                    made.steps.len().to_string(),
                    (step + 1).to_string(),
                    (index + 1).to_string(),
                    token::piece(&made.captioner, view.id).to_owned(),
                    view.confidence.to_string(),
                    bits.join(" "),
                ]);
            }
        }
    }
    table
}
