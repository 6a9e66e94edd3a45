//! Captions: words as analog bits. A picture is captioned in more and more steps, and one word after the other (the paper's Table 5).
//!
//! Parts: the scenes in [`gallery`], the captions in [`table`] and the requests behind them in [`rows`], the words at every step in [`tokens`]
//! and a word's bits in [`token`]. Deliberately absent: training a captioner, which the command line does.

mod captioners;
mod gallery;
mod kept;
mod rows;
mod table;
mod token;
mod tokens;

use bit_diffusion::{
    demo::{Demo, PHOTOGRAPHS},
    engine::{CaptionPictures, CaptionRequest, CaptionView, Event, ModelId},
    model::Method,
    sampler::{Sampler, Settings},
};
use egui::{ScrollArea, Slider, Ui};

use self::{
    captioners::Captioners,
    gallery::Gallery,
    rows::{AUTOREGRESSIVE, Made, N_ROWS, Phase, Rows, STEPS},
    tokens::Tokens,
};
use crate::{
    controls,
    files::{self, Brought, Kind},
    session::{Pane, Session, slots},
    widgets::Undo,
};

/// How many scenes there are to choose from.
const N_SCENES: usize = 16;

/// The largest time difference that the slider offers, in steps.
const MAX_TD: f64 = 10.0;

/// The scene that is looked at first; it has three shapes, which one step gets wrong.
const FIRST_SCENE: usize = 2;

/// The row that is looked at first: 10 steps.
const FIRST_ROW: usize = 3;

/// Below this height there is no room for a token that stays in view.
const LEAST_HEIGHT: f32 = 420.0;

/// What is captioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// One of the scenes, or of the photographs.
    Chosen(usize),
    /// The picture that a person brought.
    Own,
}

/// What the controls say.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wanted {
    /// Of all rows by bit diffusion; the number of steps and the schedule in it are not used.
    settings: Settings,
    seed: u64,
    /// What the scenes descend from.
    scenes: u64,
    subject: Subject,
    /// The row whose words are shown at every step.
    row: usize,
    /// Who captions by bit diffusion, and who word by word.
    captioner: ModelId,
    writer: ModelId,
}

/// Settings on the left; pictures, captions and their words at every step on the right.
pub(crate) struct Captions {
    wanted: Wanted,
    undo: Undo<Wanted>,
    captioners: Captioners,
    own: Option<Brought>,
    gallery: Gallery,
    rows: Rows,
    tokens: Tokens,
}

impl Default for Captions {
    fn default() -> Self {
        let [captioner, writer] = [Demo::ShapesCaptions, Demo::ShapesCaptionsAutoregressive].map(ModelId::Demo);
        let settings = Settings { td: 2.0, ..Settings::default() };
        let subject = Subject::Chosen(FIRST_SCENE);
        let wanted = Wanted { settings, seed: 0, scenes: 0, subject, row: FIRST_ROW, captioner, writer };
        Self {
            wanted,
            undo: Undo::new(wanted),
            captioners: Captioners::default(),
            own: None,
            gallery: Gallery::default(),
            rows: Rows::new(slots::CAPTIONS),
            tokens: Tokens::default(),
        }
    }
}

impl Captions {
    /// For the tour: few steps, and no time difference yet.
    pub fn set_up(&mut self) {
        self.wanted = Wanted { row: 2, ..Self::default().wanted };
        self.wanted.settings.td = 0.0;
    }

    /// How many rows are complete, and how many are wanted.
    pub fn progress(&self) -> (usize, usize) {
        let requests = self.requests();
        let wanted = self.rows.iter().zip(&requests).filter(|(_, request)| request.is_some());
        wanted.fold((0, 0), |(done, total), (row, _)| (done + usize::from(row.phase == Phase::Complete), total + 1))
    }

    /// What is captioned: the person's own picture while there is one.
    fn subject(&self) -> Subject {
        match self.wanted.subject {
            Subject::Own if self.own.is_none() => Subject::Chosen(FIRST_SCENE),
            Subject::Chosen(index) => Subject::Chosen(index % self.n_choices()),
            Subject::Own => Subject::Own,
        }
    }

    fn sees_photographs(&self) -> bool {
        self.captioners.sees_photographs(self.wanted.captioner)
    }

    /// How many pictures there are to choose from.
    fn n_choices(&self) -> usize {
        if self.sees_photographs() { PHOTOGRAPHS.len() } else { N_SCENES }
    }

    /// Which of the captions is that of the chosen picture.
    fn picture(&self) -> usize {
        match self.subject() {
            Subject::Chosen(index) => index,
            Subject::Own => 0,
        }
    }

    /// What to ask for, row by row; nothing of a captioner that cannot look at these pictures.
    fn requests(&self) -> [Option<CaptionRequest>; N_ROWS] {
        let Wanted { settings, seed, scenes, captioner, writer, .. } = self.wanted;
        let pictures = match (self.subject(), &self.own) {
            (Subject::Own, Some(Brought { name, bytes })) => {
                CaptionPictures::File { name: name.clone(), bytes: bytes.clone() }
            }
            _ if self.sees_photographs() => CaptionPictures::Photographs,
            _ => CaptionPictures::Shapes { n: N_SCENES, seed: scenes },
        };
        std::array::from_fn(|row| {
            let model = if row == AUTOREGRESSIVE { writer } else { captioner };
            let info = self.captioners.info(model);
            let fits = self.captioners.sees_photographs(model) == self.sees_photographs();
            if !fits && !matches!(pictures, CaptionPictures::File { .. }) {
                return None;
            }
            let plain = Settings { n_steps: STEPS[FIRST_ROW], ..Settings::default() };
            // No setting of a chain changes what comes word by word.
            let (settings, seed) = match STEPS.get(row) {
                Some(n_steps) => (Settings { n_steps: *n_steps, ..settings }, seed),
                None => (plain, 0),
            };
            let schedule = info.map_or(settings.schedule, |info| info.schedule);
            let settings = Settings { schedule, ..settings };
            Some(CaptionRequest { model, pictures: pictures.clone(), seed, settings, beam: 1 })
        })
    }

    /// What the chosen row shows, if that is of the pictures on the screen.
    fn shown_row(&self, requests: &[Option<CaptionRequest>; N_ROWS]) -> Option<&Made> {
        let row = self.wanted.row;
        let pictures = requests[row].as_ref().map(|request| &request.pictures);
        self.rows.get(row).made.as_ref().filter(|made| Some(&made.request.pictures) == pictures)
    }
}

impl Pane for Captions {
    fn on_event(&mut self, event: &Event, _session: &mut Session) {
        if let Some((id, method)) = self.captioners.on_event(event) {
            match method {
                Method::BitDiffusion => self.wanted.captioner = id,
                Method::Autoregressive => self.wanted.writer = id,
            }
        }
        self.gallery.on_event(event);
        self.rows.on_event(event);
        // A picture that cannot be read: back to those from before.
        let has_failed = self.rows.iter().any(|row| row.phase == Phase::Failed);
        if has_failed && matches!(event, Event::Failed { .. }) && self.subject() == Subject::Own {
            self.own = None;
            self.wanted.subject = Subject::Chosen(FIRST_SCENE);
        }
    }

    fn ui(&mut self, ui: &mut Ui, session: &mut Session) {
        if let Some(brought) = files::take(&mut session.inbox, Kind::Picture).pop() {
            self.own = Some(brought);
            self.wanted.subject = Subject::Own;
            self.gallery.forget_own();
        }
        controls::beside(ui, "captions", self, Self::settings_ui, |panel, ui| {
            panel.undo.note(ui, &panel.wanted);
            let requests = panel.requests();
            panel.rows.sync(&requests, panel.wanted.row, session);
            let has_room = ui.available_height() > LEAST_HEIGHT;
            if has_room && !controls::is_narrow(ui) {
                egui::Panel::bottom("one token").show(ui, |ui| panel.token_ui(ui, &requests));
            }
            egui::CentralPanel::default().show(ui, |ui| {
                ScrollArea::vertical().id_salt("captions").auto_shrink(false).show(ui, |ui| {
                    panel.captions_ui(ui, &requests);
                    ui.separator();
                    if !has_room || controls::is_narrow(ui) {
                        panel.token_ui(ui, &requests);
                    }
                    panel.tokens_ui(ui, &requests);
                });
            });
        });
    }

    fn undo(&mut self) {
        if let Some(wanted) = self.undo.undo() {
            self.wanted = wanted;
        }
    }
}

impl Captions {
    fn settings_ui(&mut self, ui: &mut Ui) {
        ui.add_space(4.0);
        ui.label(
            "A network looks at a picture and says what it sees. Every word has a number, and every number is a few bits: so bit diffusion can \
             write, all words at once. How few steps will do?",
        );
        ui.add_space(8.0);
        let wanted = &mut self.wanted;
        ui.add(Slider::new(&mut wanted.settings.td, 0.0..=MAX_TD).step_by(0.5).text("time difference (td)")).on_hover_text(
            "Each step takes the words this many steps further than the clock says, and the network is told of more noise than there is.\n\n\
             t_now = 1 − step/steps\nt_next = max(1 − (step + 1 + td)/steps, 0)",
        );
        controls::sampler(ui, &mut wanted.settings.sampler, &Sampler::ALL);
        controls::self_cond(ui, &mut wanted.settings.self_cond);
        controls::seed(ui, &mut wanted.seed);
        ui.separator();
        self.captioners.ui(ui, "captioner", Method::BitDiffusion, &mut wanted.captioner);
        self.captioners.ui(ui, "word by word", Method::Autoregressive, &mut wanted.writer);
        ui.add_space(8.0);
    }

    /// The pictures, and the captions beside them, or below where there is little room.
    fn captions_ui(&mut self, ui: &mut Ui, requests: &[Option<CaptionRequest>; N_ROWS]) {
        if controls::is_narrow(ui) {
            let side = (0.5 * (ui.available_width() - ui.spacing().item_spacing.x)).clamp(60.0, 170.0);
            ui.horizontal_top(|ui| self.pictures_ui(ui, side));
            self.choice_ui(ui);
            self.table_ui(ui, requests);
            return;
        }
        let is_wide = ui.available_width() > 880.0;
        let side = if is_wide { 170.0 } else { 128.0 };
        ui.horizontal_top(|ui| {
            ui.vertical(|ui| {
                ui.set_width(if is_wide { 2.0 * side + ui.spacing().item_spacing.x } else { side });
                if is_wide {
                    ui.horizontal_top(|ui| self.pictures_ui(ui, side));
                } else {
                    self.pictures_ui(ui, side);
                }
                self.choice_ui(ui);
            });
            ui.vertical(|ui| self.table_ui(ui, requests));
        });
    }

    fn pictures_ui(&mut self, ui: &mut Ui, side: f32) {
        let (chosen, name) = match (self.subject(), &self.own) {
            (Subject::Own, Some(own)) => (None, format!("Your picture {}, as the captioner sees it", own.name)),
            (Subject::Chosen(index), _) if self.sees_photographs() => {
                (Some(index), format!("The photograph {}, as the captioner sees it", PHOTOGRAPHS[index].0))
            }
            (Subject::Chosen(index), _) => (Some(index), format!("Scene {}", index + 1)),
            (Subject::Own, None) => return,
        };
        self.gallery.large_ui(ui, &name, chosen, side);
        let made = self.rows.get(self.wanted.row).made.as_ref();
        if let Some(index) = self.gallery.choice_ui(ui, made, chosen, side) {
            self.wanted.subject = Subject::Chosen(index);
        }
    }

    /// Which picture, for those without a pointer too.
    fn choice_ui(&mut self, ui: &mut Ui) {
        let (subject, n_choices, sees_photographs) = (self.subject(), self.n_choices(), self.sees_photographs());
        ui.horizontal_wrapped(|ui| {
            let wanted = &mut self.wanted;
            let others = "Sixteen others, each with one to three shapes";
            if !sees_photographs && ui.button("Other scenes").on_hover_text(others).clicked() {
                wanted.scenes = wanted.scenes.wrapping_add(1);
                wanted.subject = Subject::Chosen(0);
            }
            if ui.button("Next").on_hover_text("The next picture; a click on one does the same").clicked() {
                let next = match subject {
                    Subject::Chosen(index) => (index + 1) % n_choices,
                    Subject::Own => 0,
                };
                wanted.subject = Subject::Chosen(next);
            }
            if let Some(own) = &self.own {
                ui.selectable_value(&mut wanted.subject, Subject::Own, &own.name).on_hover_text("Your own picture");
            }
        });
        if sees_photographs {
            ui.weak("A small network, taught on a processor for an hour: its sentences are often wrong");
        }
        if self.own.is_none() {
            ui.weak("Or drop a picture of your own")
                .on_hover_text("PNG or JPEG, on the window; the button Open… does the same");
        }
    }

    fn table_ui(&mut self, ui: &mut Ui, requests: &[Option<CaptionRequest>; N_ROWS]) {
        ui.strong("What is in this picture?");
        if requests[AUTOREGRESSIVE].is_none() {
            let [theirs, these] =
                if self.sees_photographs() { ["scenes", "photographs"] } else { ["photographs", "scenes"] };
            ui.label(format!(
                "The word-by-word captioner was trained on {theirs}, not on {these}. Choose another, or open one"
            ));
        }
        if let Some(row) = table::ui(ui, &self.rows, requests, self.wanted.row, self.picture()) {
            self.wanted.row = row;
        }
        if self.rows.is_halted {
            ui.horizontal(|ui| {
                ui.label("stopped");
                if ui.button("Go on").clicked() {
                    self.rows.go_on();
                }
            });
        }
    }

    /// The words of the chosen row at every step.
    fn tokens_ui(&mut self, ui: &mut Ui, requests: &[Option<CaptionRequest>; N_ROWS]) {
        ui.strong("How the words came about").on_hover_text("The row that is chosen above, step by step");
        ui.weak(if self.wanted.row == AUTOREGRESSIVE {
            "One word more at every step. The deeper the colour, the surer the choice"
        } else {
            "Every word at every step. The deeper the colour, the further all of its bits are from the threshold; what comes after the end is not said"
        });
        let (picture, mut tokens) = (self.picture(), self.tokens);
        if let Some(made) = self.shown_row(requests) {
            ScrollArea::horizontal().id_salt("tokens").show(ui, |ui| {
                tokens.ui(ui, &made.captioner, &captions_of(made, picture));
            });
        }
        self.tokens = tokens;
    }

    /// The token that is pointed at.
    fn token_ui(&self, ui: &mut Ui, requests: &[Option<CaptionRequest>; N_ROWS]) {
        ui.add_space(4.0);
        match self.shown_row(requests) {
            Some(made) => self.tokens.token_ui(ui, &made.captioner, &captions_of(made, self.picture())),
            None => drop(ui.weak("Point at a word below to see its bits")),
        }
        ui.add_space(4.0);
    }
}

/// The captions of one picture, step by step.
fn captions_of(made: &Made, picture: usize) -> Vec<&CaptionView> {
    let captions = made.steps.iter().filter_map(|step| Some((step.step, step.captions.get(picture)?)));
    // Word by word, others may take longer: what was at its end before stays as it is.
    let is_going = |(step, caption): &(usize, &CaptionView)| {
        made.captioner.method == Method::BitDiffusion || *step <= caption.tokens.len()
    };
    captions.take_while(is_going).map(|(_, caption)| caption).collect()
}
