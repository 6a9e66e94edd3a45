//! The captions of one picture with more and more steps, below each other as in the paper's Table 5, and how many of all are true.

use bit_diffusion::{engine::CaptionRequest, model::Method};
use egui::{Label, ProgressBar, RichText, Role, Ui, WidgetInfo, vec2};

use super::rows::{AUTOREGRESSIVE, Made, N_ROWS, Phase, Rows, STEPS};
use crate::{controls, theme::Ink};

/// The widths of the columns around the captions.
const NAME: f32 = 92.0;
const TRUTH: f32 = 56.0;
const RUNS: f32 = 40.0;
const SHARE: f32 = 92.0;

/// The least width of a caption.
const CAPTION: f32 = 120.0;

/// One row as it is drawn.
struct Line<'a> {
    row: usize,
    /// What is going on with its request; `None` if there is none.
    phase: Option<Phase>,
    /// What it shows, if that is of the pictures on the screen.
    made: Option<&'a Made>,
    is_chosen: bool,
    /// Which of the captions is shown.
    picture: usize,
    /// Whether the caption has to go below the rest.
    is_narrow: bool,
}

/// Draws the table for one picture; says which row was clicked.
pub(super) fn ui(
    ui: &mut Ui,
    rows: &Rows,
    wanted: &[Option<CaptionRequest>; N_ROWS],
    chosen: usize,
    picture: usize,
) -> Option<usize> {
    let is_narrow = controls::is_narrow(ui) || ui.available_width() < NAME + TRUTH + RUNS + SHARE + CAPTION;
    if !is_narrow {
        header_ui(ui);
    }
    let mut clicked = None;
    for (row, (state, request)) in rows.iter().zip(wanted).enumerate() {
        if row == AUTOREGRESSIVE {
            ui.separator();
        }
        // What was made of other pictures says nothing of these.
        let pictures = request.as_ref().map(|request| &request.pictures);
        let made = state.made.as_ref().filter(|made| pictures == Some(&made.request.pictures));
        let line = Line {
            row,
            phase: request.as_ref().map(|_| state.phase),
            made,
            is_chosen: row == chosen,
            picture,
            is_narrow,
        };
        ui.scope(|ui| {
            if made.is_some() && !state.is_of(request.as_ref()) {
                ui.set_opacity(0.5);
            }
            if line.ui(ui) {
                clicked = Some(row);
            }
        });
    }
    clicked
}

fn header_ui(ui: &mut Ui) {
    ui.horizontal(|ui| {
        cell(ui, NAME, |ui| ui.weak("steps"));
        let width = caption_width(ui);
        cell(ui, width, |ui| ui.weak("caption"));
        cell(ui, TRUTH, |ui| ui.weak("is it so?")).on_hover_text("Whether every word of it is true of the picture");
        cell(ui, RUNS, |ui| ui.weak("runs")).on_hover_text("How often the network is run for it");
        cell(ui, SHARE, |ui| ui.weak("true of all")).on_hover_text("How many captions of all scenes are true");
    });
}

impl Line<'_> {
    /// Draws it; says whether it was clicked.
    fn ui(&self, ui: &mut Ui) -> bool {
        let caption = self.made.and_then(|made| made.caption(self.picture));
        let words = match (caption, self.phase) {
            (Some(caption), _) if caption.text.is_empty() => "(no words)",
            (Some(caption), _) => &caption.text,
            (None, Some(Phase::Failed)) => "(failed)",
            (None, Some(Phase::Stopped)) => "(stopped)",
            (None, Some(_)) => "…",
            (None, None) => "(not for these pictures)",
        };
        let truth = caption.and_then(|caption| caption.is_true);
        let caption_ui = |ui: &mut Ui| ui.add(Label::new(words).wrap());
        let mut is_clicked = false;
        ui.horizontal(|ui| {
            let name = name(self.row);
            let said = match truth {
                Some(true) => format!("{name}: {words}, true"),
                Some(false) => format!("{name}: {words}, not true"),
                None => format!("{name}: {words}"),
            };
            let button = cell(ui, NAME, |ui| ui.selectable_label(self.is_chosen, name));
            button.widget_info(|| WidgetInfo::selected(Role::RadioButton, true, self.is_chosen, &said));
            is_clicked = button.on_hover_text(hint(self.row)).clicked();
            if !self.is_narrow {
                let width = caption_width(ui);
                cell(ui, width, caption_ui);
            }
            cell(ui, TRUTH, |ui| truth_ui(ui, truth));
            let runs = self.made.map_or_else(String::new, |made| n_runs(made, self.picture).to_string());
            cell(ui, RUNS, |ui| ui.label(runs));
            cell(ui, SHARE, |ui| share_ui(ui, self.made));
        });
        if self.is_narrow {
            caption_ui(ui);
        }
        is_clicked
    }
}

/// What is left of a row for the caption, after its name.
fn caption_width(ui: &Ui) -> f32 {
    let gap = ui.spacing().item_spacing.x;
    (ui.available_width() - TRUTH - RUNS - SHARE - 4.0 * gap).max(CAPTION)
}

fn cell<T>(ui: &mut Ui, width: f32, content: impl FnOnce(&mut Ui) -> T) -> T {
    let size = vec2(width, ui.spacing().interact_size.y);
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    ui.allocate_ui_with_layout(size, layout, |ui| {
        ui.set_width(width);
        content(ui)
    })
    .inner
}

fn name(row: usize) -> String {
    match STEPS.get(row) {
        Some(1) => "1 step".to_owned(),
        Some(n_steps) => format!("{n_steps} steps"),
        None => "word by word".to_owned(),
    }
}

fn hint(row: usize) -> &'static str {
    if row == AUTOREGRESSIVE {
        "An autoregressive captioner: it writes one word after the other and runs its network for each, and for the end\n\n\
         p(words) = Π p(word i | the words before it, picture)"
    } else {
        "Bit diffusion: all words at once, from noise, in so many steps. Click to see them below"
    }
}

fn truth_ui(ui: &mut Ui, truth: Option<bool>) {
    let (text, ink) = match truth {
        Some(true) => ("true", Ink::One),
        Some(false) => ("not true", Ink::Zero),
        None => return,
    };
    ui.label(RichText::new(text).strong().color(ink.colour(ui)));
}

fn share_ui(ui: &mut Ui, made: Option<&Made>) {
    let (n_true, n) = made.map_or((0, 0), Made::n_true);
    if n < 2 {
        return;
    }
    let bar = ProgressBar::new(n_true as f32 / n as f32).desired_width(SHARE - 4.0).text(format!("{n_true} of {n}"));
    ui.add(bar).on_hover_text("How many captions of all scenes are true");
}

/// How often the network is run for one caption: for a step of bit diffusion once or more, else for each word and the end.
pub(super) fn n_runs(made: &Made, picture: usize) -> usize {
    let n_evaluations = made.steps.last().map_or(0, |step| step.n_evaluations);
    match (made.captioner.method, made.caption(picture)) {
        // Other captions may be longer.
        (Method::Autoregressive, Some(caption)) => n_evaluations.min(caption.tokens.len() + 1),
        _ => n_evaluations,
    }
}
