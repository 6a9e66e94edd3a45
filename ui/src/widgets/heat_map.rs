//! The spread of analog bits over all steps as a picture: steps from left to right, values from bottom to top.

use bit_diffusion::metrics::bits::N_BINS;
use egui::{Color32, ColorImage, TextureHandle, TextureOptions, Ui, Vec2, lerp};
use egui_plot::{GridInput, GridMark, PlotImage, PlotPoint, VLine};

use super::spread::Spread;
use crate::{controls, theme::Ink};

/// A heat map on the screen; its texture is made anew only when the spreads or the colours change.
#[derive(Default)]
pub(crate) struct HeatMap {
    shown: Vec<Spread>,
    inks: Option<(Color32, Color32)>,
    texture: Option<TextureHandle>,
}

impl HeatMap {
    /// Shows the spreads and a line at step `at`; returns the step that was clicked.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        name: &str,
        ink: Ink,
        spreads: &[Spread],
        at: usize,
        limit: f64,
    ) -> Option<usize> {
        let inks = (ui.visuals().extreme_bg_color, ink.colour(ui));
        if self.texture.is_none() || self.shown != spreads || self.inks != Some(inks) {
            let image = image(spreads, inks);
            match &mut self.texture {
                Some(texture) => texture.set(image, TextureOptions::NEAREST),
                None => self.texture = Some(ui.ctx().load_texture(name, image, TextureOptions::NEAREST)),
            }
            (self.shown, self.inks) = (spreads.to_vec(), Some(inks));
        }
        let texture = self.texture.as_ref()?.id();
        let n_steps = spreads.len();
        // Step k, from 1 on, fills the column from k − ½ to k + ½.
        let centre = PlotPoint::new(0.5 * (n_steps as f64 + 1.0), 0.0);
        let size = Vec2::new(n_steps as f32, 2.0 * limit as f32);
        let line = Ink::Clock.colour(ui);
        let plot = controls::still_plot(name).height(150.0).show_grid(false).set_margin_fraction(Vec2::ZERO);
        let whole = |_: GridInput| (-2..=2).map(|value| GridMark { value: f64::from(value), step_size: 1.0 }).collect();
        let shown = plot
            .x_axis_label("step")
            .custom_y_axes(vec![controls::tight_axis("value")])
            .y_grid_spacer(whole)
            .show(ui, |plot| {
                plot.image(PlotImage::new(name, texture, centre, size).allow_hover(false));
                plot.vline(VLine::new("shown step", at as f64 + 1.0).color(line).width(2.0).allow_hover(false));
                plot.pointer_coordinate()
            });
        controls::name(&shown.response, name);
        let response = shown
            .response
            .on_hover_text("How the bits part: the brighter, the more bits have this value. Click to go to a step");
        let step = shown.inner.map(|point| (point.x.round() as usize).clamp(1, n_steps) - 1);
        step.filter(|_| response.clicked() || response.dragged())
    }
}

/// One column a step, the highest value on top.
fn image(spreads: &[Spread], (background, ink): (Color32, Color32)) -> ColorImage {
    let mut image = ColorImage::filled([spreads.len().max(1), N_BINS], background);
    for (step, spread) in spreads.iter().enumerate() {
        let most = spread.shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (bin, share) in spread.shares.iter().enumerate() {
            // The square root keeps the rare values visible beside the heaps.
            let strength = (share / most).sqrt() as f32;
            image[(step, N_BINS - 1 - bin)] = mix(background, ink, strength);
        }
    }
    image
}

fn mix(from: Color32, to: Color32, share: f32) -> Color32 {
    let channel = |a: u8, b: u8| lerp(f32::from(a)..=f32::from(b), share).round() as u8;
    Color32::from_rgb(channel(from.r(), to.r()), channel(from.g(), to.g()), channel(from.b(), to.b()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_of_each_step_has_the_full_colour() {
        let heap = |bin: usize| {
            let mut shares = [0.0; N_BINS];
            shares[bin] = 0.5;
            Spread { shares, decided: 0.0 }
        };
        let image = image(&[heap(0), heap(N_BINS - 1)], (Color32::BLACK, Color32::WHITE));
        assert_eq!((image[(0, N_BINS - 1)], image[(1, 0)]), (Color32::WHITE, Color32::WHITE));
        assert_eq!((image[(0, 0)], image[(1, N_BINS - 1)]), (Color32::BLACK, Color32::BLACK));
    }
}
