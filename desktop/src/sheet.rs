//! Pictures as whole numbers, on their way to a file.
//!
//! Deliberately absent: how they are laid out there, which is the core's `picture_file`.

use std::io::Cursor;

use anyhow::Result;
use bit_diffusion::{engine::PictureSheet, picture_file};
use image::{ImageFormat, RgbImage};

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
    /// The first `n` pictures, or all if there are fewer.
    pub fn first(&self, n: usize) -> Self {
        let length = (n * self.channels * self.size * self.size).min(self.values.len());
        Self { values: self.values[..length].to_vec(), ..*self }
    }

    /// The same as values of 0 to 255, pixel by pixel.
    pub fn sheet(&self) -> PictureSheet {
        PictureSheet::of(&self.values, self.size, self.channels, self.alphabet)
    }

    /// The bytes of a PNG file of them all.
    pub fn png(&self) -> Result<Vec<u8>> {
        Ok(picture_file::png(&vec![vec![self.sheet()]])?)
    }
}

/// The bytes of a PNG file of a plot.
pub(crate) fn plot_png(picture: &RgbImage) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png)?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_pixels() {
        // Two grey pictures of 2 × 2 with values of 0 to 3, and a coloured one of one pixel.
        let grey = Pictures { channels: 1, size: 2, alphabet: 4, values: vec![0, 1, 2, 3, 3, 3, 3, 3] };
        assert_eq!(*grey.sheet().pixels, [0, 85, 170, 255, 255, 255, 255, 255]);
        assert_eq!((grey.sheet().n, grey.first(1).values), (2, vec![0, 1, 2, 3]));
        let colour = Pictures { channels: 3, size: 2, alphabet: 256, values: (0..12).collect() };
        assert_eq!(*colour.sheet().pixels, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
        let back = image::load_from_memory_with_format(&grey.png().unwrap(), ImageFormat::Png).unwrap().into_rgb8();
        assert_eq!((back.dimensions(), back.get_pixel(67, 4).0), ((2 * 68 + 4, 68 + 4), [85; 3]));
    }
}
