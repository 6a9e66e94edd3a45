//! What is shown as files: pictures, films of chains, numbers, settings and scores.
//!
//! A panel says what it shows; here that becomes bytes for the outbox. Deliberately absent: where the files go, which is for the shells.

use std::sync::Arc;

use bit_diffusion::{
    engine::{ChainRequest, Frame, ModelInfo, ShapesScore, View},
    picture_file::{self, Film, PictureFileError, Rows},
    saved::Saved,
};
use egui::{Button, Ui};

use crate::{
    command_line,
    files::Save,
    session::Session,
    widgets::{
        Track,
        reading::{self, Reading, Source},
    },
};

/// How long a film takes, in seconds.
const SECONDS: f64 = 8.0;

/// A chain on the screen.
pub(crate) struct ShownChain {
    name: String,
    request: ChainRequest,
    info: ModelInfo,
    frames: Vec<Arc<Frame>>,
}

impl ShownChain {
    /// The chain of a track, once it has a step.
    pub fn of(name: impl Into<String>, track: &Track) -> Option<Self> {
        let (request, info) = track.made_for()?.clone();
        Some(Self { name: name.into(), request, info, frames: track.frames().to_vec() })
    }

    /// A step; after the end the last, before a branch none.
    fn frame(&self, step: usize) -> Option<&Arc<Frame>> {
        let index = step.checked_sub(self.frames.first()?.step)?;
        self.frames.get(index).or(self.frames.last())
    }

    fn summary(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("name", &self.name);
        saved.put("model", &self.info.name);
        saved.put("settings", &self.request.settings);
        saved.put("n", &self.request.n);
        saved.put("seed", &self.request.seed);
        saved.put("classes", &self.request.classes);
        if let Some(branch) = &self.request.branch {
            saved.put("branch_step", &branch.step);
        }
        if let Some(last) = self.frames.last() {
            saved.put("steps_made", &(last.step + 1));
            saved.put("evaluations", &last.n_evaluations);
            saved.put("share_near_modes", &last.x_pred.share_near_modes);
            saved.put("score", &last.x_pred.score);
        }
        saved
    }
}

/// Numbers for a spreadsheet.
pub(crate) struct Table {
    /// What it has, in a word, for the name of its file.
    name: &'static str,
    text: String,
}

impl Table {
    /// A table with these columns.
    pub fn new(name: &'static str, columns: &[&str]) -> Self {
        Self { name, text: columns.join(",") + "\n" }
    }

    /// Adds a row; a field with a comma or a quote is quoted.
    pub fn row(&mut self, fields: &[String]) {
        let fields: Vec<String> = fields
            .iter()
            .map(|field| {
                if field.contains([',', '"', '\n']) {
                    format!("\"{}\"", field.replace('"', "\"\""))
                } else {
                    field.clone()
                }
            })
            .collect();
        self.text += &(fields.join(",") + "\n");
    }

    /// The numbers of every step of chains.
    fn steps(chains: &[ShownChain]) -> Option<Self> {
        let columns = [
            "chain",
            "step",
            "t_now",
            "t_next",
            "evaluations",
            "x_t_near_modes",
            "x_t_off_palette",
            "x_t_scenes",
            "x_pred_near_modes",
            "x_pred_off_palette",
            "x_pred_scenes",
        ];
        let mut table = Self::new("steps", &columns);
        for chain in chains {
            for frame in &chain.frames {
                let Frame { step, t_now, t_next, n_evaluations, x_t, x_pred } = &**frame;
                let mut row = vec![chain.name.clone(), (step + 1).to_string(), t_now.to_string(), t_next.to_string()];
                row.push(n_evaluations.to_string());
                row.extend(numbers(x_t).into_iter().chain(numbers(x_pred)));
                table.row(&row);
            }
        }
        (!chains.is_empty()).then_some(table)
    }
}

fn numbers(view: &View) -> [String; 3] {
    let [off_palette, scenes] = score_fields(view.score);
    [view.share_near_modes.to_string(), off_palette, scenes]
}

/// The two numbers of a score; empty where there is none.
pub(crate) fn score_fields(score: Option<ShapesScore>) -> [String; 2] {
    score.map_or_else(Default::default, |score| [score.off_palette.to_string(), score.scenes.to_string()])
}

/// What a panel shows.
#[derive(Default)]
pub(crate) struct Shown {
    /// In a word, for the names of files.
    pub name: &'static str,
    /// The pictures on the screen.
    pub pictures: Rows,
    /// The chains behind them; a branch comes after the chain that it leaves.
    pub chains: Vec<ShownChain>,
    /// What a film shows of each chain, and how.
    pub film: Option<(Vec<Source>, Reading)>,
    /// Numbers, but for those of the chains' steps.
    pub tables: Vec<Table>,
    /// The line that makes the same, or why there is none; left out where it is that of the chains.
    pub line: Option<Result<String, &'static str>>,
    /// The panel's settings.
    pub settings: Saved,
}

impl Shown {
    fn n_pages(&self) -> usize {
        if self.film.is_none() {
            return 0;
        }
        self.chains.iter().filter_map(|chain| chain.frames.last()).map(|frame| frame.step + 1).max().unwrap_or(0)
    }

    /// All chains at one step.
    fn page(&self, step: usize) -> Rows {
        let Some((sources, how)) = &self.film else { return Rows::new() };
        let mut row = Vec::new();
        for (index, chain) in self.chains.iter().enumerate() {
            // Before a branch, the chain that it leaves.
            let frame = chain.frame(step).or_else(|| self.chains[index.saturating_sub(1)].frame(step));
            for (frame, source) in frame.into_iter().flat_map(|frame| sources.iter().map(move |source| (frame, source)))
            {
                row.push(reading::read(source.of(frame), &chain.info, *how));
            }
        }
        vec![row]
    }

    fn summary(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("panel", self.name);
        saved.put("settings", &self.settings);
        let chains: Vec<Saved> = self.chains.iter().map(ShownChain::summary).collect();
        saved.put("chains", &chains);
        saved
    }

    /// The lines that make the same pictures, or why there are none.
    fn command_lines(&self, session: &Session) -> Result<String, &'static str> {
        if let Some(line) = &self.line {
            return line.clone();
        }
        let mut lines = Vec::new();
        for chain in self.chains.iter().filter(|chain| chain.request.branch.is_none()) {
            let out = match lines.len() {
                0 => "sheet.png".to_owned(),
                n => format!("sheet-{}.png", n + 1),
            };
            let name = session.models.iter().find(|model| model.id == chain.request.model);
            let name = name.map_or("", |model| &model.name);
            lines.push(command_line(&chain.request, &chain.info, name, &out)?);
        }
        if lines.is_empty() { Err("there is no chain here to make again") } else { Ok(lines.join("\n")) }
    }
}

/// What something shown can become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Png,
    Gif,
    Csv,
    Json,
}

impl Format {
    const ALL: [Self; 4] = [Self::Png, Self::Gif, Self::Csv, Self::Json];

    fn label(self) -> &'static str {
        match self {
            Self::Png => "Pictures as PNG",
            Self::Gif => "All steps as GIF",
            Self::Csv => "Numbers as CSV",
            Self::Json => "Settings and scores as JSON",
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Png => "The pictures on the screen, each pixel enlarged",
            Self::Gif => "A film of the steps that have been made",
            Self::Csv => "What is plotted, a line for each step",
            Self::Json => "Everything that decides the pictures, and how good they are",
        }
    }

    fn is_there(self, shown: &Shown) -> bool {
        match self {
            Self::Png => shown.pictures.iter().any(|row| !row.is_empty()),
            Self::Gif => shown.n_pages() > 0,
            Self::Csv => !shown.tables.is_empty() || !shown.chains.is_empty(),
            Self::Json => true,
        }
    }
}

/// Makes files of what is shown; a film page by page, so that the window never waits.
#[derive(Default)]
pub(crate) struct Exporter {
    /// Where the studio is on the web, if it is there.
    pub address: Option<String>,
    film: Option<(Film, Shown)>,
}

impl Exporter {
    /// The list of formats.
    pub fn menu_ui(&mut self, ui: &mut Ui, shown: Shown, link: &str, session: &mut Session) {
        if let Some(address) = &self.address {
            let hint = "Whoever opens it sees the same: the model, the panel, and its settings";
            if ui.button("Copy link").on_hover_text(hint).clicked() {
                ui.ctx().copy_text(format!("{address}?{link}"));
            }
        }
        let line = shown.command_lines(session);
        let copy = Button::new("Copy as command line");
        let copy = match &line {
            Ok(line) => ui.add(copy).on_hover_text(format!("Makes the same without a window:\n\n{line}")),
            Err(reason) => ui.add_enabled(false, copy).on_disabled_hover_text(*reason),
        };
        if let Ok(line) = line
            && copy.clicked()
        {
            ui.ctx().copy_text(line);
        }
        ui.separator();
        let mut chosen = None;
        for format in Format::ALL {
            let button = ui.add_enabled(format.is_there(&shown), Button::new(format.label()));
            if button.on_hover_text(format.hint()).on_disabled_hover_text("Nothing of that is shown now").clicked() {
                chosen = Some(format);
            }
        }
        if let Some(format) = chosen
            && let Err(error) = self.start(format, shown, session)
        {
            session.errors.push(error.to_string());
        }
    }

    fn start(&mut self, format: Format, shown: Shown, session: &mut Session) -> Result<(), PictureFileError> {
        let name = shown.name;
        match format {
            Format::Png => save(session, format!("{name}.png"), picture_file::png(&shown.pictures)?),
            Format::Gif => self.film = Some((Film::new(shown.n_pages(), SECONDS)?, shown)),
            Format::Csv => {
                let steps = Table::steps(&shown.chains);
                for table in steps.iter().chain(&shown.tables) {
                    save(session, format!("{name}-{}.csv", table.name), table.text.clone().into_bytes());
                }
            }
            Format::Json => save(session, format!("{name}.json"), shown.summary().to_text().into_bytes()),
        }
        Ok(())
    }

    /// Makes the next page of a film, and shows how far it is. Call it once a frame.
    pub fn work_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        let Some((mut film, shown)) = self.film.take() else { return };
        let (step, n_pages) = film.progress();
        let row = egui::Panel::top("film").show(ui, |ui| {
            let row = ui.horizontal(|ui| {
                ui.label(format!("making the GIF: {step} of {n_pages} steps"));
                ui.button("Cancel the GIF")
            });
            row.inner
        });
        if row.inner.clicked() {
            return;
        }
        if let Err(error) = film.add(&shown.page(step)) {
            session.errors.push(error.to_string());
        } else if step + 1 == n_pages {
            save(session, format!("{}.gif", shown.name), film.finish());
        } else {
            self.film = Some((film, shown));
        }
        ui.ctx().request_repaint();
    }
}

fn save(session: &mut Session, name: String, bytes: Vec<u8>) {
    session.saves.push(Save { name, bytes: bytes.into() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        let mut table = Table::new("t", &["a", "b"]);
        table.row(&["1, 2".to_owned(), "say \"3\"".to_owned()]);
        assert_eq!(table.text, "a,b\n\"1, 2\",\"say \"\"3\"\"\"\n");
    }

    #[test]
    fn nothing_shown_is_nothing_to_export_but_settings() {
        let shown = Shown::default();
        assert_eq!(Format::ALL.map(|format| format.is_there(&shown)), [false, false, false, true]);
    }
}
