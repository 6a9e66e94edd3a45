//! The clock against the state: two tracks from noise to data, one for what the network is told, one for where the state is.

use bit_diffusion::sampler::Settings;
use egui::{Align2, FontId, Pos2, Rect, Sense, Stroke, Ui, Vec2, pos2};

use crate::{controls, theme::Ink};

/// Steps beyond this many are not drawn one by one: their lines would merge.
const MOST_LINES: usize = 120;

/// The time that the network is told at a step, and the time that the state was taken to by the step before.
fn times(settings: &Settings, step: usize) -> (f64, f64) {
    let (told, _) = settings.times(step as f64);
    let state = if step == 0 { 1.0 } else { settings.times(step as f64 - 1.0).1 };
    (told, state)
}

/// Draws the tracks over the width that there is; `current` is the step to point out.
pub(crate) fn show(ui: &mut Ui, settings: &Settings, current: Option<usize>) {
    let font = FontId::proportional(12.0);
    let size = Vec2::new(ui.available_width(), 140.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let inner = Rect::from_min_max(rect.min + Vec2::new(14.0, 22.0), rect.max - Vec2::new(14.0, 56.0));
    let [clock, state] = [inner.top(), inner.bottom()];
    let [told_ink, state_ink] = [Ink::Clock, Ink::State].map(|ink| ink.colour(ui));
    let text_ink = ui.visuals().weak_text_color();
    let x_of = |t: f64| inner.left() + (1.0 - t as f32) * inner.width();
    let at = |t: f64, y: f32| pos2(x_of(t), y);
    let painter = ui.painter_at(rect);

    let rule = |y: f32, colour: egui::Color32| {
        painter
            .line_segment([pos2(inner.left(), y), pos2(inner.right(), y)], Stroke::new(1.0, colour.gamma_multiply(0.5)))
    };
    rule(clock, told_ink);
    rule(state, state_ink);
    let left = pos2(inner.left() - 8.0, rect.top());
    painter.text(left, Align2::LEFT_TOP, "The clock: the time that the network is told, t_now", font.clone(), told_ink);
    let below = |x: f32, line: f32| pos2(x, state + 7.0 + 15.0 * line);
    painter.text(
        below(inner.left() - 8.0, 0.0),
        Align2::LEFT_TOP,
        "The state: how noisy it really is",
        font.clone(),
        state_ink,
    );
    painter.text(below(inner.left() - 8.0, 1.0), Align2::LEFT_TOP, "t = 1, noise", font.clone(), text_ink);
    painter.text(below(inner.right() + 8.0, 1.0), Align2::RIGHT_TOP, "t = 0, data", font.clone(), text_ink);

    let n_steps = settings.n_steps;
    let every = n_steps.div_ceil(MOST_LINES).max(1);
    let point = |step: usize, is_current: bool| {
        let (told, at_state) = times(settings, step);
        let (from, to): (Pos2, Pos2) = (at(told, clock), at(at_state, state));
        let (radius, width, strength) = if is_current { (5.0, 2.5, 1.0) } else { (2.5, 1.0, 0.35) };
        let link = ui.visuals().text_color().gamma_multiply(strength);
        painter.line_segment([from, to], Stroke::new(width, link));
        painter.circle_filled(from, radius, told_ink);
        painter.circle_filled(to, radius, state_ink);
    };
    (0..n_steps).step_by(every).for_each(|step| point(step, false));
    let name = match current.filter(|step| *step < n_steps) {
        None => "The clock against the state".to_owned(),
        Some(step) => {
            point(step, true);
            let (told, at_state) = times(settings, step);
            let text = format!("step {}: told t = {told:.2}, the state is at t = {at_state:.2}", step + 1);
            let left = below(inner.left() - 8.0, 2.0);
            painter.text(left, Align2::LEFT_TOP, &text, font, ui.visuals().text_color());
            format!("The clock against the state, {text}")
        }
    };
    controls::name(&response, &name);
    response.on_hover_text(
        "Each slanted line is one step. Without a time difference the two times are the same and the lines are upright; with it, the state \
         runs ahead and the network is told of more noise than there is.\n\n\
         told: t_now = 1 − step/steps\nstate after the step: t_next = max(1 − (step + 1 + td)/steps, 0)",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_runs_ahead_by_the_time_difference() {
        let settings = Settings { n_steps: 10, td: 2.0, ..Settings::default() };
        let (told, state) = times(&settings, 0);
        assert!((told - 1.0).abs() < 1e-12 && (state - 1.0).abs() < 1e-12, "{told} {state}");
        let (told, state) = times(&settings, 3);
        assert!((told - 0.7).abs() < 1e-12 && (state - 0.5).abs() < 1e-12, "{told} {state}");
        // It cannot run past the data.
        assert!(times(&settings, 9).1.abs() < 1e-12);
    }
}
