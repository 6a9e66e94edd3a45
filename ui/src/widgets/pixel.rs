//! One pixel of a picture: its analog bits as bars against the threshold, and the value that they stand for.

use bit_diffusion::engine::{ModelInfo, View};
use egui::{Align2, FontId, Rect, Sense, Stroke, Ui, Vec2, pos2};

use super::{reading::bits_at, sheet::Hovered};
use crate::theme::Ink;

/// More analog bits than this are not drawn.
const MAX_BARS: usize = 16;
const BAR: f32 = 17.0;
const HEIGHT: f32 = 56.0;
/// The bars end here, in scales.
const LIMIT: f32 = 2.0;

/// The bits of each channel of a pixel.
pub(crate) fn ui(ui: &mut Ui, view: &View, info: &ModelInfo, at: Hovered) {
    let Hovered { picture, x, y } = at;
    if picture >= view.pictures.n || x.max(y) >= info.size {
        return;
    }
    ui.set_max_width(220.0);
    ui.strong(format!("Sample {}, column {}, row {}", picture + 1, x + 1, y + 1));
    let names: &[&str] = if info.channels == 1 { &["grey"] } else { &["red", "green", "blue"] };
    for (channel, name) in names.iter().enumerate() {
        let bits = bits_at(view, info, picture, channel, y * info.size + x);
        let value = info.codec.decode(&bits).ok().and_then(|values| values.first().copied()).unwrap_or_default();
        if bits.len() <= MAX_BARS {
            let digits: Vec<&str> = bits.iter().map(|bit| if *bit > 0.0 { "1" } else { "0" }).collect();
            ui.label(format!("{name}: value {value}, bits {}", digits.join(" ")));
            bars_ui(ui, &bits, info.codec.scale() as f32);
        } else {
            ui.label(format!("{name}: value {value}, the highest of {} numbers", bits.len()));
        }
    }
    ui.weak("Bit 0 first. Above the line, the threshold 0, a bit is a 1; the thin lines are the two values that clean bits have.");
}

fn bars_ui(ui: &mut Ui, bits: &[f32], scale: f32) {
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
