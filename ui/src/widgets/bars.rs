//! Analog bits as bars against the threshold.

use egui::{Align2, FontId, Rect, Sense, Stroke, Ui, Vec2, pos2};

use crate::theme::Ink;

/// More analog bits than this do not fit.
pub(crate) const MOST: usize = 16;
const BAR: f32 = 17.0;
const HEIGHT: f32 = 56.0;
/// The bars end here, in scales.
const LIMIT: f32 = 2.0;

/// Draws the bars, bit 0 first; `scale` is the value that a clean 1 has.
pub(crate) fn ui(ui: &mut Ui, bits: &[f32], scale: f32) {
    let size = Vec2::new(BAR * bits.len() as f32, HEIGHT);
    let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
    let painter = ui.painter_at(rect);
    let text = ui.visuals().text_color();
    let y_of = |bit: f32| rect.center().y - (bit / scale).clamp(-LIMIT, LIMIT) / LIMIT * rect.height() / 2.0;
    for (k, bit) in bits.iter().enumerate() {
        let left = rect.left() + k as f32 * BAR;
        let ink = if *bit > 0.0 { Ink::One } else { Ink::Zero };
        let bar = Rect::from_two_pos(pos2(left + 2.0, y_of(0.0)), pos2(left + BAR - 2.0, y_of(*bit)));
        painter.rect_filled(bar, 1.0, ink.colour(ui));
        let (end, align) =
            if *bit > 0.0 { (rect.bottom(), Align2::CENTER_BOTTOM) } else { (rect.top(), Align2::CENTER_TOP) };
        painter.text(pos2(left + BAR / 2.0, end), align, k, FontId::proportional(9.0), text);
    }
    painter.hline(rect.x_range(), y_of(0.0), Stroke::new(1.5, text));
    for mode in [scale, -scale] {
        painter.hline(rect.x_range(), y_of(mode), Stroke::new(0.5, ui.visuals().weak_text_color()));
    }
}
