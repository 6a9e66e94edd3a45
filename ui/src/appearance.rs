//! How the studio looks and is laid out, as far as egui knows it: the theme, the scale, the width of the settings, the window.
//!
//! Deliberately absent: which panel is in front and what it is set to, which are the studio's own.

use bit_diffusion::saved::Saved;
use egui::{Context, Id, ThemePreference, Vec2};

use crate::theme;

/// The width of the settings: at first, and the most that is taken over from the last time.
const SETTINGS_WIDTH: f32 = 300.0;
const MOST_WIDTH: f32 = 800.0;

/// The smallest and the largest window that is taken over from the last time.
const WINDOWS: std::ops::RangeInclusive<f32> = 400.0..=16_000.0;

/// What is egui's own, as it was last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Appearance {
    theme: ThemePreference,
    scale: f32,
    settings_width: f32,
    window: Option<WindowSize>,
}

/// The window as it was: for a shell to open the next one like it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowSize {
    /// Width and height at scale 1, in points.
    pub size: Vec2,
    /// Whether it filled the screen; the size is then that of the screen.
    pub is_maximised: bool,
}

impl Default for Appearance {
    fn default() -> Self {
        Self { theme: ThemePreference::System, scale: 1.0, settings_width: SETTINGS_WIDTH, window: None }
    }
}

impl Appearance {
    /// As it is now.
    pub fn of(ctx: &Context) -> Self {
        let (size, is_maximised) = ctx.input(|input| {
            let viewport = input.viewport();
            (viewport.inner_rect.map(|rect| rect.size()), viewport.maximized.unwrap_or(false))
        });
        Self {
            theme: ctx.options(|options| options.theme_preference),
            scale: theme::scale(ctx),
            settings_width: settings_width(ctx),
            window: size.map(|size| WindowSize { size: (size * ctx.zoom_factor()).round(), is_maximised }),
        }
    }

    /// Makes it so; the window is the shell's.
    pub fn apply(self, ctx: &Context) {
        ctx.set_theme(self.theme);
        ctx.set_zoom_factor(self.scale);
        note_settings_width(ctx, self.settings_width);
    }

    /// Adds it to what is kept.
    pub fn save(&self, saved: &mut Saved) {
        saved.put("theme", theme::label(self.theme));
        saved.put("scale", &self.scale);
        saved.put("settings_width", &self.settings_width);
        if let Some(WindowSize { size, is_maximised }) = self.window {
            saved.put("window", &[size.x, size.y]);
            saved.put("maximised", &is_maximised);
        }
    }

    /// Takes over what makes sense.
    pub fn restore(&mut self, saved: &Saved) {
        let theme: Option<String> = saved.value("theme");
        let mut known = theme::PREFERENCES.into_iter();
        if let Some(theme) = known.find(|known| theme.as_deref() == Some(theme::label(*known))) {
            self.theme = theme;
        }
        saved.restore("scale", &mut self.scale, |scale| theme::SCALES.contains(scale));
        saved.restore("settings_width", &mut self.settings_width, |width| (100.0..=MOST_WIDTH).contains(width));
    }
}

/// The window that [`crate::Studio::save`] knew of.
#[must_use]
pub fn kept_window(text: &str) -> Option<WindowSize> {
    let saved = Saved::from_text(text);
    let [width, height] =
        saved.value::<[f32; 2]>("window").filter(|size| size.iter().all(|side| WINDOWS.contains(side)))?;
    Some(WindowSize { size: Vec2::new(width, height), is_maximised: saved.value("maximised").unwrap_or(false) })
}

fn width_id() -> Id {
    Id::unique("width of the settings")
}

/// How wide the settings are beside a panel: as wide beside every panel.
pub(crate) fn settings_width(ctx: &Context) -> f32 {
    ctx.data(|data| data.get_temp(width_id())).unwrap_or(SETTINGS_WIDTH)
}

/// Takes note of how wide they are.
pub(crate) fn note_settings_width(ctx: &Context, width: f32) {
    ctx.data_mut(|data| data.insert_temp(width_id(), width.round()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_opened_as_it_was_and_never_absurdly() {
        let window = WindowSize { size: Vec2::new(1100.0, 700.0), is_maximised: true };
        let mut saved = Saved::default();
        Appearance { window: Some(window), ..Appearance::default() }.save(&mut saved);
        assert_eq!(kept_window(&saved.to_text()), Some(window));
        for text in ["", "{}", "{\"window\": [0, 700]}", "{\"window\": [1e9, 700]}", "{\"window\": [700]}"] {
            assert_eq!(kept_window(text), None, "{text}");
        }
    }
}
