//! Pictures as files: a grid as PNG, a chain of grids as GIF.

use std::io::Cursor;

use anyhow::{Result, ensure};
use image::{
    Delay, DynamicImage, Frame, ImageFormat, Rgb, RgbImage,
    codecs::gif::{GifEncoder, Repeat},
    imageops::{self, FilterType},
};

/// The least width of one picture on a sheet, in pixels; smaller ones are enlarged.
const CELL: usize = 64;

/// Between pictures, in pixels.
const GAP: usize = 4;

const BACKGROUND: Rgb<u8> = Rgb([128, 128, 128]);

/// Pictures of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pictures {
    /// Colour channels: 3, or 1 for grey.
    pub channels: usize,
    /// Width and height, in pixels.
    pub size: usize,
    /// The number of colour values.
    pub alphabet: usize,
    /// Colour values of all pictures, one after the other, each `[channels, size, size]`.
    pub values: Vec<u32>,
}

impl Pictures {
    /// The values of each picture.
    pub fn each(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.values.chunks_exact(self.channels * self.size * self.size)
    }

    /// The first `n` pictures, or all if there are fewer.
    pub fn first(&self, n: usize) -> Self {
        let length = (n * self.channels * self.size * self.size).min(self.values.len());
        Self { values: self.values[..length].to_vec(), ..*self }
    }
}

/// All pictures on one sheet, row by row, about as wide as high, each enlarged by a whole number.
pub(crate) fn grid(pictures: &Pictures) -> RgbImage {
    let n = pictures.each().len();
    let columns = ((n as f64).sqrt().ceil() as usize).max(1);
    let rows = n.div_ceil(columns).max(1);
    let zoom = CELL.div_ceil(pictures.size);
    let pitch = pictures.size * zoom + GAP;
    let mut sheet = RgbImage::from_pixel((columns * pitch + GAP) as u32, (rows * pitch + GAP) as u32, BACKGROUND);
    for (i, values) in pictures.each().enumerate() {
        let (left, top) = (GAP + i % columns * pitch, GAP + i / columns * pitch);
        let side = (pictures.size * zoom) as u32;
        let large = imageops::resize(&one(pictures, values), side, side, FilterType::Nearest);
        imageops::replace(&mut sheet, &large, left as i64, top as i64);
    }
    sheet
}

fn one(pictures: &Pictures, values: &[u32]) -> RgbImage {
    let (size, area) = (pictures.size, pictures.size * pictures.size);
    let top = (pictures.alphabet - 1) as u32;
    RgbImage::from_fn(size as u32, size as u32, |x, y| {
        let pixel = y as usize * size + x as usize;
        // A grey picture shows its one channel three times.
        Rgb([0, 1, 2].map(|channel| {
            let value = values[channel.min(pictures.channels - 1) * area + pixel];
            ((value * 255 + top / 2) / top) as u8
        }))
    })
}

/// Two pictures beside each other.
pub(crate) fn beside(left: &RgbImage, right: &RgbImage) -> RgbImage {
    let mut both = RgbImage::from_pixel(left.width() + right.width(), left.height().max(right.height()), BACKGROUND);
    imageops::replace(&mut both, left, 0, 0);
    imageops::replace(&mut both, right, i64::from(left.width()), 0);
    both
}

/// The bytes of a PNG file.
pub(crate) fn png(picture: &RgbImage) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png)?;
    Ok(bytes.into_inner())
}

/// The bytes of a GIF file that shows the pictures one after the other, for about `seconds`, and rests on the last.
pub(crate) fn gif(pictures: Vec<RgbImage>, seconds: f64) -> Result<Vec<u8>> {
    ensure!(!pictures.is_empty(), "a GIF needs a picture");
    let n = pictures.len();
    // Browsers show nothing faster than 50 pictures a second.
    let milliseconds = ((seconds * 1000.0 / n as f64) as u32).max(20);
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new_with_speed(&mut bytes, 10);
    encoder.set_repeat(Repeat::Infinite)?;
    for (i, picture) in pictures.into_iter().enumerate() {
        let wait = if i + 1 == n { 2000 } else { milliseconds };
        let picture = DynamicImage::ImageRgb8(picture).into_rgba8();
        encoder.encode_frame(Frame::from_parts(picture, 0, 0, Delay::from_numer_denom_ms(wait, 1)))?;
    }
    drop(encoder);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_shows_each_picture_in_its_place() {
        // Three grey pictures of 2 × 2 with values of 0 to 3.
        let pictures = Pictures { channels: 1, size: 2, alphabet: 4, values: vec![0, 1, 2, 3, 3, 3, 3, 3, 1, 1, 1, 1] };
        let sheet = grid(&pictures);
        let pitch = 68;
        assert_eq!(sheet.dimensions(), (2 * pitch + 4, 2 * pitch + 4));
        let at = |x: u32, y: u32| sheet.get_pixel(x, y).0[0];
        assert_eq!([at(4, 4), at(4 + 63, 4), at(4, 4 + 63), at(4 + 63, 4 + 63)], [0, 85, 170, 255]);
        assert_eq!((at(4 + pitch, 4), at(4, 4 + pitch)), (255, 85));
        assert_eq!((at(0, 0), at(4 + pitch, 4 + pitch)), (128, 128));
        assert_eq!(pictures.first(1).values, [0, 1, 2, 3]);
    }

    #[test]
    fn files_can_be_read_back() {
        let picture = RgbImage::from_fn(8, 4, |x, y| Rgb([x as u8 * 30, y as u8 * 60, 7]));
        let back = image::load_from_memory_with_format(&png(&picture).unwrap(), ImageFormat::Png).unwrap();
        assert_eq!(back.into_rgb8(), picture);
        let bytes = gif(vec![picture.clone(), picture], 1.0).unwrap();
        let back = image::load_from_memory_with_format(&bytes, ImageFormat::Gif).unwrap();
        assert_eq!((back.width(), back.height()), (8, 4));
        assert!(gif(Vec::new(), 1.0).is_err());
    }
}
