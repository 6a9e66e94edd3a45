//! Numbers as bits: what each encoding makes of a value, and what it keeps of the order (appendix C). A part of the bits panel.

use bit_diffusion::bits::{Codec, Encoding, hamming};
use egui::{Grid, RichText, Slider, Ui};
use egui_plot::{Legend, Line};

use crate::{controls, theme};

/// The encodings that are binary codes.
pub(crate) const CODES: [Encoding; 3] = [Encoding::Uint8, Encoding::Gray, Encoding::Uint8Rand];

/// One encoding and its statistics, worked out once.
struct Row {
    codec: Codec,
    statistics: Vec<hamming::HammingAt>,
    correlation: f64,
}

/// A value and its codes above, the order that they keep below.
pub(crate) struct Codes {
    value: u32,
    rows: Vec<Row>,
}

impl Default for Codes {
    fn default() -> Self {
        let rows = CODES.into_iter().map(|encoding| {
            let codec = Codec::pixels(encoding);
            let statistics = hamming::by_difference(&codec).collect();
            Row { statistics, correlation: hamming::correlation(&codec).unwrap_or(0.0), codec }
        });
        Self { value: 100, rows: rows.collect() }
    }
}

impl Codes {
    pub fn ui(&mut self, ui: &mut Ui) {
        ui.heading("Numbers as bits");
        ui.label("A colour value from 0 to 255 takes 8 bits. Click a bit to flip it, and the value becomes the one that the flipped code stands for.");
        ui.add_space(4.0);
        ui.scope(|ui| {
            ui.spacing_mut().slider_width = (ui.available_width() - 110.0).clamp(80.0, 300.0);
            ui.add(Slider::new(&mut self.value, 0..=255).text("value"));
        });
        ui.add_space(4.0);
        egui::ScrollArea::horizontal().id_salt("codes").show(ui, |ui| self.table_ui(ui));
        ui.add_space(12.0);
        ui.strong("Does a code keep the order?");
        ui.label(
            "For every pair of values: how far apart they are, and how many bits differ on average. In UINT8 and Gray code near values tend to \
             share bits; after the shuffle nothing of the order is left, so each value is only a name.",
        );
        self.hamming_ui(ui);
    }

    fn table_ui(&mut self, ui: &mut Ui) {
        let value = self.value;
        let mut chosen = None;
        // All bits of a code are in reach of a phone's width.
        let is_narrow = controls::is_narrow(ui);
        let (width, gap) = if is_narrow { (18.0, 4.0) } else { (34.0, 10.0) };
        Grid::new("codes").striped(true).spacing([gap, 6.0]).min_col_width(width).show(ui, |ui| {
            ui.label("");
            for k in 0..8 {
                ui.weak(if is_narrow { k.to_string() } else { format!("bit {k}") });
            }
            ui.weak("flipping each bit leads to");
            ui.end_row();
            for row in &self.rows {
                let code = row.codec.codes()[value as usize];
                let reached = |k: u32| row.codec.symbols()[(code ^ (1 << k)) as usize];
                ui.label(RichText::new(row.codec.encoding().label()).strong());
                for k in 0..8 {
                    let is_one = (code >> k) & 1 == 1;
                    let text = RichText::new(if is_one { "1" } else { "0" }).monospace();
                    let bit = egui::Button::selectable(is_one, text).min_size([width, 0.0].into());
                    let hint = format!(
                        "bit {k} of {value} in {}: flip it to get {}",
                        row.codec.encoding().label(),
                        reached(k)
                    );
                    if ui.add(bit).on_hover_text(hint).clicked() {
                        chosen = Some(reached(k));
                    }
                }
                let values: Vec<String> = (0..8).map(|k| reached(k).to_string()).collect();
                ui.label(values.join(", "));
                ui.end_row();
            }
        });
        if let Some(chosen) = chosen {
            self.value = chosen;
        }
    }

    fn hamming_ui(&self, ui: &mut Ui) {
        let inks: [egui::Color32; CODES.len()] = std::array::from_fn(|index| theme::series(ui, index));
        let shown = controls::still_plot("hamming")
            .legend(Legend::default())
            .height(260.0)
            .x_axis_label("difference of the values")
            .y_axis_label("differing bits")
            .include_y(0.0)
            .include_y(8.0)
            .show(ui, |plot| {
                for (row, ink) in self.rows.iter().zip(inks) {
                    let name = format!("{}, correlation {:.2}", row.codec.encoding().label(), row.correlation);
                    let means: Vec<[f64; 2]> =
                        row.statistics.iter().map(|at| [at.difference as f64, at.mean]).collect();
                    plot.line(Line::new(name, means).color(ink).width(2.0));
                }
            });
        controls::name(&shown.response, "How many bits differ, against how far apart two values are, in three codes");
    }
}
