//! One pixel of a picture: its analog bits as bars against the threshold, and the value that they stand for.

use bit_diffusion::engine::{ModelInfo, View};
use egui::Ui;

use super::{bars, reading::bits_at, sheet::Hovered};

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
        if bits.len() <= bars::MOST {
            let digits: Vec<&str> = bits.iter().map(|bit| if *bit > 0.0 { "1" } else { "0" }).collect();
            ui.label(format!("{name}: value {value}, bits {}", digits.join(" ")));
            bars::ui(ui, &bits, info.codec.scale() as f32);
        } else {
            ui.label(format!("{name}: value {value}, the highest of {} numbers", bits.len()));
        }
    }
    ui.weak("Bit 0 first. Above the line, the threshold 0, a bit is a 1; the thin lines are the two values that clean bits have.");
}
