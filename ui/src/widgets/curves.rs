//! The loss and the learning rate of a training run as it goes; the loss on a logarithmic axis.

use bit_diffusion::train::Progress;
use egui::{Ui, Vec2b};
use egui_plot::{GridInput, GridMark, Line, Plot, PlotPoint, PlotPoints};

use crate::{controls, theme::Ink};

/// How much of the running mean is kept at each step.
const SMOOTHNESS: f64 = 0.95;

/// The most points of a line: more do not show.
const MOST_POINTS: usize = 1000;

/// What has been measured so far.
#[derive(Default)]
pub(crate) struct Curves {
    /// log₁₀ of the loss of each step, and of its running mean.
    losses: Vec<PlotPoint>,
    means: Vec<PlotPoint>,
    /// The running mean itself, and the sum of its weights.
    mean: (f64, f64),
    rates: Vec<PlotPoint>,
}

impl Curves {
    /// Takes note of a step.
    pub fn push(&mut self, progress: Progress) {
        let (step, loss) = (progress.n_steps as f64, f64::from(progress.loss));
        let (sum, weight) = self.mean;
        self.mean = (SMOOTHNESS * sum + loss, SMOOTHNESS * weight + 1.0);
        self.losses.push(PlotPoint::new(step, log10(loss)));
        self.means.push(PlotPoint::new(step, log10(self.mean.0 / self.mean.1)));
        self.rates.push(PlotPoint::new(step, progress.learning_rate));
    }

    pub fn is_empty(&self) -> bool {
        self.losses.is_empty()
    }

    /// Every step: its number, the loss of its batch, and its learning rate.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = (f64, f64, f64)> {
        self.losses.iter().zip(&self.rates).map(|(loss, rate)| (loss.x, 10.0_f64.powf(loss.y), rate.y))
    }

    /// Draws both, one above the other, each `height` high or less.
    pub fn ui(&self, ui: &mut Ui, height: f32) {
        let ink = Ink::Estimate.colour(ui);
        ui.strong("Loss").on_hover_text(
            "How far the guesses are from the truth, on a logarithmic axis: each batch, and a running mean",
        );
        if let Some(mean) = self.means.last() {
            ui.label(format!("{:.4} now", 10.0_f64.powf(mean.y)));
        }
        let shown = still("loss")
            .height(height)
            .y_axis_formatter(|mark, _| format!("{}", (1e4 * 10.0_f64.powf(mark.value)).round() / 1e4))
            .y_grid_spacer(|input: GridInput| log_marks(input.bounds))
            .show(ui, |plot| {
                plot.line(Line::new("loss", thin(&self.losses)).color(ink.gamma_multiply(0.35)).width(1.0));
                plot.line(Line::new("mean loss", thin(&self.means)).color(ink).width(2.0));
            });
        controls::name(&shown.response, "The loss at each step");
        ui.strong("Learning rate").on_hover_text("How far each step goes: it rises from 0, then stays");
        let rate_ink = Ink::Clock.colour(ui);
        let shown = still("learning rate").height(0.6 * height).include_y(0.0).x_axis_label("step").show(ui, |plot| {
            plot.line(Line::new("learning rate", thin(&self.rates)).color(rate_ink).width(2.0));
        });
        controls::name(&shown.response, "The learning rate at each step");
    }
}

fn still(name: &str) -> Plot<'_> {
    controls::still_plot(name).auto_bounds(Vec2b::TRUE).include_x(0.0)
}

/// As many points as show.
fn thin(points: &[PlotPoint]) -> PlotPoints<'static> {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.last().copied();
    PlotPoints::Owned(points.iter().step_by(every).copied().chain(last).collect())
}

fn log10(value: f64) -> f64 {
    value.max(1e-9).log10()
}

/// Marks at 1, 2 and 5 times every power of ten that is in sight.
fn log_marks((low, high): (f64, f64)) -> Vec<GridMark> {
    if !(low.is_finite() && high.is_finite()) || high - low > 40.0 {
        return Vec::new();
    }
    let powers = low.floor() as i32..=high.ceil() as i32;
    let marks = powers.flat_map(|power| {
        [(1.0_f64, 1.0), (2.0, 0.3), (5.0, 0.3)]
            .map(|(factor, step_size)| GridMark { value: f64::from(power) + factor.log10(), step_size })
    });
    marks.filter(|mark| (low..=high).contains(&mark.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_equal_losses_is_that_loss() {
        let mut curves = Curves::default();
        for n_steps in 1..=30 {
            curves.push(Progress { n_steps, loss: 0.1, gradient_norm: 1.0, learning_rate: 1e-3 });
        }
        assert!(curves.means.iter().all(|mean| (mean.y + 1.0).abs() < 1e-6));
        assert_eq!((curves.losses.len(), curves.rates.len()), (30, 30));
    }

    #[test]
    fn marks_are_round_numbers() {
        let marks = log_marks((-1.1, 0.1));
        let values: Vec<f64> = marks.iter().map(|mark| (1e3 * 10.0_f64.powf(mark.value)).round() / 1e3).collect();
        assert_eq!(values, [0.1, 0.2, 0.5, 1.0]);
    }
}
