//! The pictures that are captioned: scenes of shapes or photographs to choose from, and the one that was chosen, large.

use bit_diffusion::engine::{CaptionPictures, Event, PictureSheet};
use egui::{Color32, Rect, Stroke, StrokeKind, Ui, Vec2, vec2};

use super::rows::Made;
use crate::{
    theme::Ink,
    widgets::{SheetView, sheet::columns},
};

/// Pictures on the screen.
#[derive(Default)]
pub(super) struct Gallery {
    /// Those to choose from, as the captioner sees them.
    choice: Option<(CaptionPictures, PictureSheet)>,
    /// A person's own picture, as the captioner sees it.
    own: Option<PictureSheet>,
    view: SheetView,
    /// The chosen picture, cut out of this sheet.
    large: Option<(PictureSheet, usize, PictureSheet)>,
    large_view: SheetView,
}

impl Gallery {
    /// Takes note of the pictures that captioners look at.
    pub fn on_event(&mut self, event: &Event) {
        let Event::CaptionsStarted { request, pictures, .. } = event else { return };
        match &request.pictures {
            several @ (CaptionPictures::Shapes { .. } | CaptionPictures::Photographs) => {
                self.choice = Some((several.clone(), pictures.clone()));
            }
            CaptionPictures::File { .. } => self.own = Some(pictures.clone()),
        }
    }

    /// Another picture of one's own is on its way.
    pub fn forget_own(&mut self) {
        self.own = None;
    }

    /// The pictures that are on the screen.
    pub fn shown(&self) -> Vec<PictureSheet> {
        [&self.large_view, &self.view].into_iter().filter_map(|view| view.shown().cloned()).collect()
    }

    /// The chosen picture: the one with this number, or where that is `None` a person's own.
    pub fn large_ui(&mut self, ui: &mut Ui, name: &str, chosen: Option<usize>, side: f32) {
        let (sheet, index) = match (chosen, &self.choice, &self.own) {
            (Some(chosen), Some((_, sheet)), _) if chosen < sheet.n => (sheet, chosen),
            (None, _, Some(own)) => (own, 0),
            _ => {
                // As large as the picture will be, so that nothing jumps.
                ui.allocate_ui(Vec2::splat(side), |ui| ui.centered_and_justified(Ui::spinner));
                return;
            }
        };
        if !self.large.as_ref().is_some_and(|(of, at, _)| of == sheet && *at == index) {
            let one = PictureSheet { n: 1, pixels: sheet.picture(index).into(), ..*sheet };
            self.large = Some((sheet.clone(), index, one));
        }
        if let Some((_, _, one)) = &self.large {
            self.large_view.show(ui, name, one, side);
        }
    }

    /// All pictures to choose from, scenes framed by whether their caption is true; says which one was clicked.
    pub fn choice_ui(&mut self, ui: &mut Ui, made: Option<&Made>, chosen: Option<usize>, side: f32) -> Option<usize> {
        let Some((pictures, sheet)) = &self.choice else {
            ui.allocate_ui(Vec2::splat(side), |ui| ui.centered_and_justified(Ui::spinner));
            return None;
        };
        let made = made.filter(|made| made.request.pictures == *pictures);
        let name = match pictures {
            CaptionPictures::Photographs => "The photographs to choose from",
            _ => "The scenes to choose from",
        };
        let (response, hovered) = self.view.show(ui, name, sheet, side);
        let caption = |index: usize| made.and_then(|made| made.caption(index));
        let place = |index: usize| frame(response.rect, sheet, index);
        for index in 0..sheet.n {
            if let Some(is_true) = caption(index).and_then(|caption| caption.is_true) {
                let ink = if is_true { Ink::One } else { Ink::Zero };
                outline(ui, place(index), 2.0, ink.colour(ui));
            }
        }
        if let Some(index) = chosen.filter(|index| *index < sheet.n) {
            outline(ui, place(index).expand(1.0), 4.0, ui.visuals().strong_text_color());
        }
        let at = hovered?.picture;
        let is_clicked = response.clicked();
        if let Some(caption) = caption(at) {
            response.on_hover_text_at_pointer(&caption.text);
        }
        is_clicked.then_some(at)
    }
}

fn outline(ui: &Ui, rect: Rect, width: f32, colour: Color32) {
    ui.painter().rect_stroke(rect, 1.0, Stroke::new(width, colour), StrokeKind::Inside);
}

/// Where a picture of a sheet is drawn, and half of the gap around it.
fn frame(rect: Rect, sheet: &PictureSheet, index: usize) -> Rect {
    let columns = columns(sheet.n);
    let rows = sheet.n.div_ceil(columns);
    // The gaps are one pixel wide, and there is one less than there are pictures.
    let pixel = rect.width() / (columns * (sheet.size + 1) - 1) as f32;
    let pitch = pixel * (sheet.size + 1) as f32;
    debug_assert!(rect.height() <= pitch * rows as f32 + 1.0, "a sheet has no more than its rows");
    let min = rect.min + vec2((index % columns) as f32, (index / columns) as f32) * pitch;
    Rect::from_min_size(min, Vec2::splat(pitch - pixel)).expand(0.5 * pixel)
}

#[cfg(test)]
mod tests {
    use egui::pos2;

    use super::*;

    #[test]
    fn frames_lie_around_their_pictures() {
        let sheet = PictureSheet { n: 4, size: 4, channels: 1, pixels: vec![0; 64].into() };
        // Nine pixels of ten points: four, a gap, four.
        let rect = Rect::from_min_size(pos2(0.0, 0.0), Vec2::splat(90.0));
        assert_eq!(frame(rect, &sheet, 0), Rect::from_min_max(pos2(-5.0, -5.0), pos2(45.0, 45.0)));
        assert_eq!(frame(rect, &sheet, 3), Rect::from_min_max(pos2(45.0, 45.0), pos2(95.0, 95.0)));
    }
}
