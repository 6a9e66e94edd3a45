//! How good the estimates of chains are, step by step: a plot that is also a timeline.

use std::sync::Arc;

use bit_diffusion::engine::{Frame, ShapesScore};
use egui::{Color32, Ui};
use egui_plot::{Line, VLine};

use crate::controls;

/// One chain of the plot.
pub(crate) struct Series<'a> {
    pub name: &'a str,
    pub frames: &'a [Arc<Frame>],
    pub colour: Color32,
}

/// What is plotted of a step, in percent.
fn percent(frame: &Frame) -> f64 {
    100.0 * frame.x_pred.score.map_or(frame.x_pred.share_near_modes, |score| score.scenes)
}

/// A score in words.
pub(crate) fn words(score: Option<ShapesScore>) -> Option<String> {
    let ShapesScore { off_palette, scenes } = score?;
    Some(format!("{:.1}% of pixels in a wrong colour, {:.0}% flawless scenes", 100.0 * off_palette, 100.0 * scenes))
}

/// Draws the chains, each in the colour of its title, over `n_steps` steps; says which step was clicked or dragged to.
pub(crate) fn ui(
    ui: &mut Ui,
    id: &str,
    series: &[Series<'_>],
    shown: usize,
    n_steps: usize,
    height: f32,
) -> Option<usize> {
    let has_score = series.iter().any(|one| one.frames.iter().any(|frame| frame.x_pred.score.is_some()));
    let (text, hint) = if has_score {
        (
            "Flawless scenes among the estimates, % at each step",
            "Every pixel has to be right, so one wrong bit counts; click to go to a step",
        )
    } else {
        (
            "Bits of the estimate that are decided, % at each step",
            "Decided: nearer than 0.1 to −1 or 1; click to go to a step",
        )
    };
    ui.weak(text).on_hover_text(hint);
    let plot = controls::still_plot(id).height(height).include_y(0.0).include_y(100.0);
    let plot = plot.include_x(1.0).include_x(n_steps.max(2) as f64);
    let line_colour = ui.visuals().text_color();
    let drawn = plot.show(ui, |plot| {
        for one in series {
            let points: Vec<[f64; 2]> =
                one.frames.iter().map(|frame| [(frame.step + 1) as f64, percent(frame)]).collect();
            plot.line(Line::new(one.name, points).color(one.colour).width(2.0));
        }
        plot.vline(VLine::new("", (shown + 1) as f64).color(line_colour));
        plot.pointer_coordinate()
    });
    controls::name(&drawn.response, text);
    let is_pressed = drawn.response.clicked() || drawn.response.dragged();
    let at = drawn.inner.filter(|_| is_pressed)?;
    Some((at.x.round().max(1.0) as usize).min(n_steps.max(1)) - 1)
}
