//! The paper's Figure 2: how the estimate of one step reaches the next, without self-conditioning and with it.

use bit_diffusion::self_cond::SelfCond;
use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Response, Sense, Stroke, Ui, Vec2, pos2, vec2};

use crate::theme::Ink;

const FONT: f32 = 13.0;
/// Half the width and height of the box around a name.
const BOX: Vec2 = vec2(25.0, 11.0);

/// What a diagram needs to know of the step that is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The step, from 0.
    pub step: usize,
    /// The clock.
    pub t_now: f64,
    pub t_next: f64,
}

/// Draws one of the two diagrams, with the step that is shown highlighted.
///
/// Three states above, from noisier to cleaner, and the two estimates between them below. The step that is shown is the second: from the
/// state in the middle to its estimate, and on to the next state.
pub(crate) fn ui(ui: &mut Ui, strategy: SelfCond, now: Moment, size: Vec2) -> Response {
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let painter = ui.painter_at(rect);
    let plain = ui.visuals().weak_text_color();
    let text = ui.visuals().strong_text_color();
    let (state, estimate, told) = (Ink::State.colour(ui), Ink::Estimate.colour(ui), Ink::Clock.colour(ui));
    let at = |x: f32, y: f32| pos2(rect.left() + x * rect.width(), rect.top() + y * rect.height());

    // The outer boxes stay inside, however narrow it is.
    let edge = (42.0 / rect.width()).clamp(0.14, 0.3);
    let states = [at(edge, 0.2), at(0.5, 0.2), at(1.0 - edge, 0.2)];
    let estimates = [at(0.32, 0.7), at(0.68, 0.7)];
    // The step before.
    arrow(&painter, states[0], estimates[0], plain, 1.0);
    arrow(&painter, estimates[0], states[1], plain, 1.0);
    arrow(&painter, states[0], states[1], plain, 1.0);
    // The step that is shown.
    arrow(&painter, states[1], estimates[1], text, 2.0);
    arrow(&painter, estimates[1], states[2], text, 2.0);
    arrow(&painter, states[1], states[2], text, 2.0);
    let is_first = now.step == 0;
    match strategy {
        SelfCond::Off => {}
        SelfCond::Previous | SelfCond::Momentum { .. } if is_first => {
            painter.text(at(0.5, 0.7), Align2::CENTER_CENTER, "zeros", FontId::proportional(FONT), told);
        }
        SelfCond::Previous | SelfCond::Momentum { .. } => arrow(&painter, estimates[0], estimates[1], told, 2.5),
        // Its own first estimate: a loop below.
        SelfCond::SelfGuidance { .. } => {
            let [from, low, to] =
                [estimates[1] + vec2(12.0, BOX.y), estimates[1] + vec2(0.0, 30.0), estimates[1] + vec2(-12.0, BOX.y)];
            painter.line_segment([from, low], Stroke::new(2.5, told));
            painter.arrow(low, to - low, Stroke::new(2.5, told));
        }
    }

    name(&painter, states[0], if is_first { "…" } else { "x_t before" }, state, plain);
    name(&painter, states[1], if is_first { "noise" } else { "x_t" }, state, text);
    name(&painter, states[2], "x_t next", state, plain);
    name(&painter, estimates[0], if is_first { "…" } else { "x_pred" }, estimate, plain);
    name(&painter, estimates[1], "x_pred", estimate, text);
    let small = FontId::proportional(10.5);
    painter.text(
        states[1] - vec2(0.0, 14.0),
        Align2::CENTER_BOTTOM,
        format!("t = {:.3}", now.t_now),
        small.clone(),
        text,
    );
    painter.text(states[2] - vec2(0.0, 14.0), Align2::CENTER_BOTTOM, format!("t = {:.3}", now.t_next), small, text);
    response
}

/// A name in a box.
fn name(painter: &Painter, at: Pos2, text: &str, border: Color32, colour: Color32) {
    let galley = painter.layout_no_wrap(text.to_owned(), FontId::proportional(FONT), colour);
    let half = BOX.max(galley.size() / 2.0 + vec2(5.0, 2.0));
    let rect = Rect::from_center_size(at, half * 2.0);
    painter.rect(
        rect,
        4.0,
        painter.ctx().global_style().visuals.panel_fill,
        Stroke::new(1.5, border),
        egui::StrokeKind::Inside,
    );
    painter.galley(at - galley.size() / 2.0, galley, colour);
}

/// An arrow that ends at the edge of the box it points to.
fn arrow(painter: &Painter, from: Pos2, to: Pos2, colour: Color32, width: f32) {
    let way = to - from;
    // Where the line enters the box.
    let share = |half: f32, length: f32| if length.abs() > 0.1 { half / length.abs() } else { f32::INFINITY };
    let inside = share(BOX.x + 8.0, way.x).min(share(BOX.y + 3.0, way.y)).min(0.45);
    let start = from + way * inside;
    painter.arrow(start, way * (1.0 - 2.0 * inside), Stroke::new(width, colour));
}
