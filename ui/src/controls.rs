//! Controls that more than one panel shows.

use bit_diffusion::{sampler::Sampler, self_cond::SelfCond};
use egui::{ComboBox, DragValue, Response, Role, Slider, Ui, WidgetInfo};
use egui_plot::{AxisHints, Plot};

use crate::appearance;

/// A choice among named values.
pub(crate) fn choice<T: Copy + PartialEq>(
    ui: &mut Ui,
    name: &str,
    explanation: &str,
    value: &mut T,
    all: &[T],
    label: impl Fn(&T) -> &'static str,
) {
    let list = ComboBox::from_label(name).width(150.0).selected_text(label(value)).show_ui(ui, |ui| {
        for option in all {
            ui.selectable_value(value, *option, label(option));
        }
    });
    list.response.on_hover_text(explanation);
}

/// The sampler.
pub(crate) fn sampler(ui: &mut Ui, value: &mut Sampler, all: &[Sampler]) {
    let explanation = "The rule that takes a noisy state to an earlier time. DDIM adds no noise; DDPM adds fresh noise at every step; \
         DPM-Solver follows the same path as DDIM with longer strides, by looking once (1, 2M), twice (2) or three times (3) a step.\n\n\
         DDIM: x_next = √γ_next·x_pred + √(1−γ_next)·ε";
    choice(ui, "sampler", explanation, value, all, |sampler| sampler.label());
}

/// The self-conditioning strategy and its parameter.
pub(crate) fn self_cond(ui: &mut Ui, value: &mut SelfCond) {
    let explanation = "What the network is told of its own earlier guess of the clean picture: nothing, the guess of the step before, an \
         average of all guesses, or a first guess of this same step.";
    let kind_of = |option: &SelfCond| std::mem::discriminant(option);
    // Choosing a kind brings its usual parameter; the parameter has a slider of its own.
    let mut chosen = SelfCond::ALL.into_iter().find(|option| kind_of(option) == kind_of(value)).unwrap_or_default();
    choice(ui, "self-conditioning", explanation, &mut chosen, &SelfCond::ALL, SelfCond::label);
    if kind_of(&chosen) != kind_of(value) {
        *value = chosen;
    }
    match value {
        SelfCond::Off | SelfCond::Previous => {}
        SelfCond::Momentum { momentum } => {
            ui.add(Slider::new(momentum, 0.0..=0.95).text("momentum"))
                .on_hover_text("The share of the old average that is kept at each step.");
        }
        SelfCond::SelfGuidance { weight } => {
            ui.add(Slider::new(weight, 0.0..=8.0).text("guidance weight w"))
                .on_hover_text("1 uses the second guess as it is; more goes beyond it: w·second + (1−w)·first.");
        }
    }
}

/// The number of steps.
pub(crate) fn n_steps(ui: &mut Ui, value: &mut usize) {
    ui.add(Slider::new(value, 1..=200).logarithmic(true).text("steps"))
        .on_hover_text("How many steps from pure noise, t = 1, to clean data, t = 0.");
}

/// The seed.
pub(crate) fn seed(ui: &mut Ui, value: &mut u64) {
    ui.horizontal(|ui| {
        let number = ui.add(DragValue::new(value).speed(0.1));
        let label = ui.label("seed");
        number.labelled_by(label.id);
        label.on_hover_text("The same seed gives the same noise, in a window and in a browser.");
        if ui.button("New noise").clicked() {
            *value = value.wrapping_add(1);
        }
    });
}

/// Settings beside the rest where there is room, above it where there is not.
pub(crate) fn beside<T>(
    ui: &mut Ui,
    name: &str,
    panel: &mut T,
    settings: impl FnOnce(&mut T, &mut Ui),
    rest: impl FnOnce(&mut T, &mut Ui),
) {
    if is_narrow(ui) {
        egui::Panel::top(format!("{name} settings, above")).show(ui, |ui| {
            egui::CollapsingHeader::new("Settings").show(ui, |ui| settings(panel, ui));
        });
    } else {
        // One for all panels: as wide beside each of them, and at the next start.
        let column = egui::Panel::left("settings").default_size(appearance::settings_width(ui.ctx()));
        let column = column.show(ui, |ui| {
            egui::ScrollArea::vertical().id_salt(name).auto_shrink([false, true]).show(ui, |ui| settings(panel, ui));
        });
        appearance::note_settings_width(ui.ctx(), column.response.rect.width());
    }
    rest(panel, ui);
}

/// Whether there is too little room for settings beside the pictures.
pub(crate) fn is_narrow(ui: &Ui) -> bool {
    ui.ctx().content_rect().width() < 760.0
}

/// Whether there is hardly any height: a small window with everything twice as large, a phone on its side.
pub(crate) fn is_short(ui: &Ui) -> bool {
    ui.ctx().content_rect().height() < 400.0
}

/// A plot that stays where it is: dragging and scrolling over it move the page.
pub(crate) fn still_plot(name: &str) -> Plot<'_> {
    Plot::new(name).allow_drag(false).allow_zoom(false).allow_scroll(false).allow_boxed_zoom(false)
}

/// Says what a drawing shows, for screen readers: a plot has no words of its own.
pub(crate) fn name(drawing: &Response, name: &str) {
    drawing.widget_info(|| WidgetInfo::labeled(Role::Image, true, name));
}

/// A vertical axis whose numbers may stand close together, for plots that are not high.
pub(crate) fn tight_axis(label: &str) -> AxisHints<'_> {
    AxisHints::new_y().label(label).label_spacing(egui::Rangef::new(6.0, 16.0))
}

/// A horizontal axis whose numbers may stand close together, for plots that are not wide.
pub(crate) fn tight_x_axis() -> AxisHints<'static> {
    AxisHints::new_x().label_spacing(egui::Rangef::new(20.0, 48.0))
}
