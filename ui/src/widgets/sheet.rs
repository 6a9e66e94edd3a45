//! A grid of pictures as one texture, made anew only when the pictures change.

use bit_diffusion::engine::{LivePicture, PictureSheet};
use egui::{
    Color32, ColorImage, Image, Rect, Response, Sense, TextureHandle, TextureId, TextureOptions, Ui,
    load::SizedTexture, pos2,
};

use crate::session::BindTexture;

/// Between pictures, in pixels of the pictures.
const GAP: usize = 1;

/// A grid of pictures on the screen.
#[derive(Default)]
pub(crate) struct SheetView {
    /// What the texture was made of.
    shown: Option<PictureSheet>,
    texture: Option<TextureHandle>,
    /// The texture of another's making that was shown last, and its name.
    live: Option<(LivePicture, TextureId)>,
}

/// A pixel of a picture that the pointer is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hovered {
    /// Which picture.
    pub picture: usize,
    /// Its column.
    pub x: usize,
    /// Its row.
    pub y: usize,
}

/// Columns of the grid: about as many as rows.
pub(crate) fn columns(n: usize) -> usize {
    ((n as f64).sqrt().ceil() as usize).max(1)
}

impl SheetView {
    /// The pictures that were shown last.
    pub fn shown(&self) -> Option<&PictureSheet> {
        self.shown.as_ref()
    }

    /// Shows the pictures in a square of `side` points; says which pixel the pointer is over. `name` is for screen readers.
    pub fn show(&mut self, ui: &mut Ui, name: &str, sheet: &PictureSheet, side: f32) -> (Response, Option<Hovered>) {
        let is_same = self.shown.as_ref().is_some_and(|shown| {
            std::sync::Arc::ptr_eq(&shown.pixels, &sheet.pixels) && (shown.n, shown.size) == (sheet.n, sheet.size)
        });
        if !is_same {
            let image = colour_image(sheet);
            match &mut self.texture {
                Some(texture) => texture.set(image, TextureOptions::NEAREST),
                None => self.texture = Some(ui.ctx().load_texture(name, image, TextureOptions::NEAREST)),
            }
            self.shown = Some(sheet.clone());
        }
        let texture = self.texture.as_ref().expect("it was made above");
        draw(ui, name, sheet, SizedTexture::from_handle(texture), side)
    }

    /// Shows other pictures of the same sizes, which the card has drawn itself.
    pub fn show_live(
        &mut self,
        ui: &mut Ui,
        name: &str,
        sheet: &PictureSheet,
        (picture, bind): (&LivePicture, &mut BindTexture),
        side: f32,
    ) -> (Response, Option<Hovered>) {
        let id = match &self.live {
            Some((bound, id)) if bound == picture => *id,
            before => bind(picture, before.as_ref().map(|(_, id)| *id)),
        };
        self.live = Some((picture.clone(), id));
        let [width, height] = picture.size();
        draw(ui, name, sheet, SizedTexture::new(id, [width as f32, height as f32]), side)
    }
}

/// Draws the grid of a sheet.
fn draw(
    ui: &mut Ui,
    name: &str,
    sheet: &PictureSheet,
    texture: SizedTexture,
    side: f32,
) -> (Response, Option<Hovered>) {
    let size = texture.size * (side / texture.size.max_elem());
    let image = Image::from_texture(SizedTexture { size, ..texture }).alt_text(name).sense(Sense::click_and_drag());
    // What shows in the gaps: bright pictures would merge with a bright background.
    let gaps = ui.visuals().widgets.noninteractive.bg_stroke.color;
    let response = ui.add(image.bg_fill(gaps));
    let hovered = response.hover_pos().and_then(|at| pixel_at(sheet, response.rect, at));
    (response, hovered)
}

/// The pixel at a place on the screen.
fn pixel_at(sheet: &PictureSheet, rect: Rect, at: egui::Pos2) -> Option<Hovered> {
    let columns = columns(sheet.n);
    let pitch = sheet.size + GAP;
    let pixels = (columns * pitch - GAP) as f32;
    let place = (at - rect.min) / rect.width() * pixels;
    let place = pos2(place.x.max(0.0), place.y.max(0.0));
    let (column, row) = (place.x as usize, place.y as usize);
    let picture = row / pitch * columns + column / pitch;
    let (x, y) = (column % pitch, row % pitch);
    (picture < sheet.n && column / pitch < columns && x < sheet.size && y < sheet.size).then_some(Hovered {
        picture,
        x,
        y,
    })
}

/// The grid, with gaps that let the background through.
pub(crate) fn colour_image(sheet: &PictureSheet) -> ColorImage {
    let columns = columns(sheet.n);
    let rows = sheet.n.div_ceil(columns).max(1);
    let pitch = sheet.size + GAP;
    let mut image = ColorImage::filled([columns * pitch - GAP, rows * pitch - GAP], Color32::TRANSPARENT);
    for index in 0..sheet.n {
        let (left, top) = (index % columns * pitch, index / columns * pitch);
        for (i, pixel) in sheet.picture(index).chunks_exact(sheet.channels).enumerate() {
            let [r, g, b] = if let [r, g, b] = *pixel { [r, g, b] } else { [pixel[0]; 3] };
            image[(left + i % sheet.size, top + i / sheet.size)] = Color32::from_rgb(r, g, b);
        }
    }
    image
}
