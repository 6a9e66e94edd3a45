//! Controls that more than one panel shows.

use bit_diffusion::{sampler::Sampler, self_cond::SelfCond};
use egui::{ComboBox, Response, Slider, Ui};

/// A choice among named values; `true` if it changed.
pub(crate) fn choice<T: Copy + PartialEq>(
    ui: &mut Ui,
    name: &str,
    explanation: &str,
    value: &mut T,
    all: &[T],
    label: impl Fn(&T) -> &'static str,
) -> bool {
    let before = *value;
    let response = ComboBox::from_label(name)
        .selected_text(label(value))
        .show_ui(ui, |ui| {
            for option in all {
                ui.selectable_value(value, *option, label(option));
            }
        })
        .response;
    response.on_hover_text(explanation);
    *value != before
}

/// The sampler.
pub(crate) fn sampler(ui: &mut Ui, value: &mut Sampler, all: &[Sampler]) -> bool {
    let explanation = "The rule that takes a noisy state to an earlier time. DDIM adds no noise; DDPM adds fresh noise at every step; \
         DPM-Solver looks two or three times before it steps.\n\nDDIM: x_next = √γ_next·x̃₀ + √(1−γ_next)·ε̃";
    choice(ui, "sampler", explanation, value, all, |sampler| sampler.label())
}

/// The self-conditioning strategy and its parameter.
pub(crate) fn self_cond(ui: &mut Ui, value: &mut SelfCond) -> bool {
    let explanation = "What the denoiser is told of its own earlier guess x̃₀ of the clean picture: nothing, the guess of the step before, \
         an average of all guesses, or a first guess of this same step.";
    let mut kind = std::mem::discriminant(value);
    let mut changed = false;
    let kinds = SelfCond::ALL.map(|option| std::mem::discriminant(&option));
    let of = |kind: &std::mem::Discriminant<SelfCond>| {
        SelfCond::ALL.into_iter().find(|option| std::mem::discriminant(option) == *kind).expect("ALL has every kind")
    };
    if choice(ui, "self-conditioning", explanation, &mut kind, &kinds, |kind| of(kind).label()) {
        *value = of(&kind);
        changed = true;
    }
    changed
        | match value {
            SelfCond::Off | SelfCond::Previous => false,
            SelfCond::Momentum { momentum } => ui
                .add(Slider::new(momentum, 0.0..=0.95).text("momentum"))
                .on_hover_text("The share of the old average that is kept at each step.")
                .changed(),
            SelfCond::SelfGuidance { weight } => ui
                .add(Slider::new(weight, 0.0..=8.0).text("guidance weight"))
                .on_hover_text("1 uses the second guess as it is; more goes beyond it: w·second + (1−w)·first.")
                .changed(),
        }
}

/// The number of steps.
pub(crate) fn n_steps(ui: &mut Ui, value: &mut usize) -> Response {
    ui.add(Slider::new(value, 1..=200).logarithmic(true).text("steps"))
        .on_hover_text("How many steps from pure noise, t = 1, to the picture, t = 0.")
}

/// The seed.
pub(crate) fn seed(ui: &mut Ui, value: &mut u64) -> bool {
    ui.horizontal(|ui| {
        let typed = ui.add(egui::DragValue::new(value).speed(0.1)).changed();
        ui.label("seed")
            .on_hover_text("The same seed gives the same noise, here, in a browser and on the command line.");
        let next = ui.button("New noise").clicked();
        if next {
            *value = value.wrapping_add(1);
        }
        typed || next
    })
    .inner
}
