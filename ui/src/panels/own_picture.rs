//! A picture as bit planes, in each of the binary codes: a picture of one's own, or the first sample until there is one.

use bit_diffusion::{
    bits::{Codec, Encoding},
    engine::{Event, PictureSheet},
};
use egui::{Grid, Ui};

use super::codes::CODES;
use crate::widgets::SheetView;

/// Bits of a colour value.
const N_BITS: usize = 8;

/// The side of one plane, in points.
const SIDE: f32 = 88.0;

/// A picture and its planes.
#[derive(Default)]
pub(crate) struct OwnPicture {
    /// What a person brought, and its name.
    brought: Option<(String, PictureSheet)>,
    /// What the planes were made of.
    shown: Option<PictureSheet>,
    view: SheetView,
    /// For each code, each bit from the highest on.
    planes: Vec<(Encoding, Vec<(PictureSheet, SheetView)>)>,
}

impl OwnPicture {
    pub fn on_event(&mut self, event: &Event) {
        if let Event::Picture { name, picture, .. } = event {
            self.brought = Some((name.clone(), picture.clone()));
        }
    }

    /// Draws the planes; `sample` stands in for a picture of one's own.
    pub fn ui(&mut self, ui: &mut Ui, sample: Option<&PictureSheet>) {
        ui.heading("A picture as bits");
        ui.label(
            "Each plane holds one bit of the red, green and blue of every pixel. In UINT8 the highest bits already show the picture; after the \
             shuffle no plane says more than another.",
        );
        let (name, picture) = match (&self.brought, sample) {
            (Some((name, picture)), _) => (name.clone(), Some(picture.clone())),
            (None, sample) => ("the first sample".to_owned(), sample.map(first_picture)),
        };
        if self.brought.is_some() {
            ui.horizontal(|ui| {
                ui.label(format!("This is {name}, at the size of the model's pictures"));
                if ui.small_button("Back to the sample").clicked() {
                    self.brought = None;
                }
            });
        } else {
            ui.label("This is the first sample from above. Open a PNG or JPEG file, or drop it on the window, to see your own");
        }
        let Some(picture) = picture else { return };
        if self.shown.as_ref() != Some(&picture) {
            let planes = |encoding| {
                (0..N_BITS).rev().map(|bit| (plane(&picture, encoding, bit), SheetView::default())).collect()
            };
            self.planes = CODES.into_iter().map(|encoding| (encoding, planes(encoding))).collect();
            self.shown = Some(picture.clone());
        }
        egui::ScrollArea::horizontal().id_salt("planes").show(ui, |ui| {
            Grid::new("planes").spacing([6.0, 6.0]).show(ui, |ui| {
                ui.label("");
                ui.weak("the picture");
                for bit in (0..N_BITS).rev() {
                    ui.weak(format!("bit {bit}"));
                }
                ui.end_row();
                for (row, (encoding, planes)) in self.planes.iter_mut().enumerate() {
                    ui.label(encoding.label());
                    if row == 0 {
                        self.view.show(ui, &name, &picture, SIDE);
                    } else {
                        ui.label("");
                    }
                    for (index, (plane, view)) in planes.iter_mut().enumerate() {
                        let bit = N_BITS - 1 - index;
                        view.show(ui, &format!("bit {bit} of {name} in {}", encoding.label()), plane, SIDE);
                    }
                    ui.end_row();
                }
            });
        });
    }
}

fn first_picture(sheet: &PictureSheet) -> PictureSheet {
    PictureSheet { n: 1, pixels: sheet.picture(0).into(), ..*sheet }
}

/// One bit of every value: full where it is 1, none where it is 0.
fn plane(picture: &PictureSheet, encoding: Encoding, bit: usize) -> PictureSheet {
    let codec = Codec::pixels(encoding);
    let codes = codec.codes();
    let pixels = picture.pixels.iter().map(|&value| if codes[usize::from(value)] >> bit & 1 == 1 { 255 } else { 0 });
    PictureSheet { pixels: pixels.collect(), ..*picture }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_holds_one_bit() {
        let picture = PictureSheet { n: 1, size: 2, channels: 1, pixels: vec![0, 1, 128, 255].into() };
        assert_eq!(*plane(&picture, Encoding::Uint8, 0).pixels, [0, 255, 0, 255]);
        assert_eq!(*plane(&picture, Encoding::Uint8, 7).pixels, [0, 0, 255, 255]);
        // In Gray code 128 is 1100 0000 and 255 is 1000 0000.
        assert_eq!(*plane(&picture, Encoding::Gray, 6).pixels, [0, 0, 255, 0]);
        assert_eq!(*plane(&picture, Encoding::Gray, 7).pixels, [0, 0, 255, 255]);
    }
}
