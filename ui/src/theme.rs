//! Every colour that is not egui's own, for light and dark.

use std::ops::RangeInclusive;

use egui::{Color32, Context, Theme, ThemePreference, Ui, gui_zoom::kb_shortcuts};

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The noisy state `x_t`.
    State,
    /// The estimate `x_pred`.
    Estimate,
    /// The clock: what the network is told.
    Clock,
    /// A bit that is 1, or good news.
    One,
    /// A bit that is 0, or bad news.
    Zero,
}

impl Ink {
    /// The colour; blue, orange, green, vermilion and grey of Okabe & Ito, which people with any colour vision can tell apart.
    pub fn colour(self, ui: &Ui) -> Color32 {
        let dark = ui.visuals().dark_mode;
        match self {
            Self::State if dark => Color32::from_gray(170),
            Self::State => Color32::from_gray(110),
            Self::Estimate if dark => Color32::from_rgb(86, 180, 233),
            Self::Estimate => Color32::from_rgb(0, 114, 178),
            Self::Clock if dark => Color32::from_rgb(240, 178, 60),
            Self::Clock => Color32::from_rgb(186, 110, 0),
            Self::One if dark => Color32::from_rgb(60, 196, 152),
            Self::One => Color32::from_rgb(0, 128, 92),
            Self::Zero if dark => Color32::from_rgb(238, 130, 60),
            Self::Zero => Color32::from_rgb(190, 78, 0),
        }
    }
}

/// The colours of lines that are compared, in order.
pub(crate) fn series(ui: &Ui, index: usize) -> Color32 {
    let inks = [Ink::Estimate, Ink::Zero, Ink::One, Ink::State, Ink::Clock];
    inks[index % inks.len()].colour(ui)
}

/// The background of something that is more or less sure, from 0 to 1; text on it can be read at any.
pub(crate) fn confidence(ui: &Ui, sure: f32) -> Color32 {
    let (from, to) = (ui.visuals().extreme_bg_color, Ink::Estimate.colour(ui));
    from.lerp_to_gamma(to, 0.45 * sure.clamp(0.0, 1.0))
}

/// Makes text easier to read than egui's own: its grey on grey falls short of the contrast that small letters need.
pub(crate) fn install(ctx: &Context) {
    ctx.style_mut_of(Theme::Dark, |style| {
        style.visuals.widgets.noninteractive.fg_stroke.color = Color32::from_gray(190);
        style.visuals.weak_text_alpha = 0.75;
    });
    ctx.style_mut_of(Theme::Light, |style| {
        style.visuals.widgets.noninteractive.fg_stroke.color = Color32::from_gray(50);
        style.visuals.weak_text_alpha = 0.75;
    });
}

/// What can be preferred.
pub(crate) const PREFERENCES: [ThemePreference; 3] =
    [ThemePreference::System, ThemePreference::Light, ThemePreference::Dark];

/// How large everything is: the least and the most.
pub(crate) const SCALES: RangeInclusive<f32> = 1.0..=2.0;

/// How large everything is, or will be when [`limit_scale`] has had its way.
pub(crate) fn scale(ctx: &Context) -> f32 {
    ctx.zoom_factor().clamp(*SCALES.start(), *SCALES.end())
}

/// The theme and the scale, as parts of a menu; in words, because the fonts have no pictures of them.
pub(crate) fn menu_ui(ui: &mut Ui) {
    let mut preference = ui.ctx().options(|options| options.theme_preference);
    let before = preference;
    ui.strong("Theme");
    for option in PREFERENCES {
        ui.radio_value(&mut preference, option, label(option));
    }
    if preference != before {
        ui.ctx().set_theme(preference);
    }
    ui.separator();
    let now = scale(ui.ctx());
    ui.strong("Scale").on_hover_text("How large everything is; Ctrl + and Ctrl − do the same");
    for option in [1.0, 1.25, 1.5, 1.75, 2.0] {
        let is_chosen = (option - now).abs() < 1e-3;
        if ui.radio(is_chosen, format!("{:.0}%", 100.0 * option)).clicked() {
            ui.ctx().set_zoom_factor(option);
        }
    }
}

/// Keeps the scale within its limits, whatever was pressed. Call it once a frame: the keys are egui's own and know no limits.
pub(crate) fn limit_scale(ctx: &Context) {
    let (now, allowed) = (ctx.zoom_factor(), scale(ctx));
    if (allowed - now).abs() > f32::EPSILON {
        ctx.set_zoom_factor(allowed);
    }
    // A key that leads out of them is taken away before egui sees it.
    ctx.input_mut(|input| {
        if now >= *SCALES.end() {
            input.consume_shortcut(&kb_shortcuts::ZOOM_IN);
            input.consume_shortcut(&kb_shortcuts::ZOOM_IN_SECONDARY);
        }
        if now <= *SCALES.start() {
            input.consume_shortcut(&kb_shortcuts::ZOOM_OUT);
        }
    });
}

pub(crate) fn label(preference: ThemePreference) -> &'static str {
    match preference {
        ThemePreference::System => "As the system",
        ThemePreference::Light => "Light",
        ThemePreference::Dark => "Dark",
    }
}
