//! Pictures as files: grids of them as PNG, one after the other as GIF. The same layout as the command line's sheets.
//!
//! Deliberately absent: reading, which is [`crate::data`]'s, and writing to a disk.

use std::{
    cell::RefCell,
    io::{self, Cursor, Write},
    rc::Rc,
};

use image::{
    Delay, DynamicImage, Frame, ImageFormat, Rgb, RgbImage,
    codecs::gif::{GifEncoder, Repeat},
    imageops::{self, FilterType},
};

use crate::engine::PictureSheet;

/// The least width of one picture, in pixels; smaller ones are enlarged.
const CELL: usize = 64;

/// Between pictures, in pixels.
const GAP: usize = 4;

const BACKGROUND: Rgb<u8> = Rgb([128, 128, 128]);

/// How long a GIF rests on its last picture, in milliseconds.
const REST: u32 = 2000;

/// Browsers show nothing faster than 50 pictures a second.
const LEAST_DELAY: u32 = 20;

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureFileError {
    /// Nothing was given.
    #[error("there are no pictures yet; wait for the first")]
    Empty,
    /// The format cannot hold them.
    #[error("the pictures cannot be written as a file; make fewer at once: {0}")]
    Format(#[from] image::ImageError),
}

/// Grids of pictures, in rows, one grid beside the other.
pub type Rows = Vec<Vec<PictureSheet>>;

/// The bytes of a PNG file of all grids.
pub fn png(rows: &Rows) -> Result<Vec<u8>, PictureFileError> {
    let mut bytes = Cursor::new(Vec::new());
    page(rows)?.write_to(&mut bytes, ImageFormat::Png)?;
    Ok(bytes.into_inner())
}

/// A GIF file on its way: pages of grids that are shown one after the other. A page takes a moment, so a window adds one a frame.
pub struct Film {
    encoder: GifEncoder<Sink>,
    bytes: Rc<RefCell<Vec<u8>>>,
    delay: u32,
    n_pages: usize,
    n_added: usize,
}

impl Film {
    /// A film of so many pages that takes about so many seconds, rests on the last page and begins again.
    pub fn new(n_pages: usize, seconds: f64) -> Result<Self, PictureFileError> {
        if n_pages == 0 {
            return Err(PictureFileError::Empty);
        }
        let bytes = Rc::default();
        let mut encoder = GifEncoder::new_with_speed(Sink(Rc::clone(&bytes)), 10);
        encoder.set_repeat(Repeat::Infinite)?;
        let delay = ((seconds * 1000.0 / n_pages as f64) as u32).max(LEAST_DELAY);
        Ok(Self { encoder, bytes, delay, n_pages, n_added: 0 })
    }

    /// Adds the next page.
    pub fn add(&mut self, rows: &Rows) -> Result<(), PictureFileError> {
        self.n_added += 1;
        let delay = if self.n_added == self.n_pages { REST } else { self.delay };
        let picture = DynamicImage::ImageRgb8(page(rows)?).into_rgba8();
        let frame = Frame::from_parts(picture, 0, 0, Delay::from_numer_denom_ms(delay, 1));
        Ok(self.encoder.encode_frame(frame)?)
    }

    /// How many pages it has, and how many it will have.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.n_added, self.n_pages)
    }

    /// The bytes of the file.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        // The encoder writes the end of the file as it goes.
        drop(self.encoder);
        self.bytes.take()
    }
}

/// Where the encoder writes to: it keeps its writer for itself.
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All rows, one below the other.
fn page(rows: &Rows) -> Result<RgbImage, PictureFileError> {
    let rows: Vec<RgbImage> = rows.iter().filter(|row| !row.is_empty()).map(|row| beside(row)).collect();
    let width = rows.iter().map(RgbImage::width).max().ok_or(PictureFileError::Empty)?;
    let mut page = RgbImage::from_pixel(width, rows.iter().map(RgbImage::height).sum(), BACKGROUND);
    let mut top = 0;
    for row in &rows {
        imageops::replace(&mut page, row, 0, top);
        top += i64::from(row.height());
    }
    Ok(page)
}

fn beside(sheets: &[PictureSheet]) -> RgbImage {
    let grids: Vec<RgbImage> = sheets.iter().map(grid).collect();
    let height = grids.iter().map(RgbImage::height).max().unwrap_or_default();
    let mut row = RgbImage::from_pixel(grids.iter().map(RgbImage::width).sum(), height, BACKGROUND);
    let mut left = 0;
    for grid in &grids {
        imageops::replace(&mut row, grid, left, 0);
        left += i64::from(grid.width());
    }
    row
}

/// The pictures row by row, about as wide as high, each enlarged by a whole number.
fn grid(sheet: &PictureSheet) -> RgbImage {
    let columns = ((sheet.n as f64).sqrt().ceil() as usize).max(1);
    let rows = sheet.n.div_ceil(columns).max(1);
    let side = sheet.size * CELL.div_ceil(sheet.size);
    let pitch = side + GAP;
    let mut grid = RgbImage::from_pixel((columns * pitch + GAP) as u32, (rows * pitch + GAP) as u32, BACKGROUND);
    for index in 0..sheet.n {
        let values = sheet.picture(index);
        let picture = RgbImage::from_fn(sheet.size as u32, sheet.size as u32, |x, y| {
            let first = (y as usize * sheet.size + x as usize) * sheet.channels;
            // A grey picture shows its one channel three times.
            Rgb([0, 1, 2].map(|channel: usize| values[first + channel.min(sheet.channels - 1)]))
        });
        let picture = imageops::resize(&picture, side as u32, side as u32, FilterType::Nearest);
        let (left, top) = (GAP + index % columns * pitch, GAP + index / columns * pitch);
        imageops::replace(&mut grid, &picture, left as i64, top as i64);
    }
    grid
}

#[cfg(test)]
mod tests {
    use image::{AnimationDecoder as _, codecs::gif::GifDecoder};

    use super::*;

    /// Two grey pictures of 2 × 2.
    fn grey(values: [u8; 8]) -> PictureSheet {
        PictureSheet { n: 2, size: 2, channels: 1, pixels: values.as_slice().into() }
    }

    #[test]
    fn a_png_shows_every_picture_in_its_place() {
        let first = grey([0, 50, 100, 150, 200, 200, 200, 200]);
        let second = PictureSheet { n: 1, size: 1, channels: 3, pixels: [9, 8, 7].as_slice().into() };
        let bytes = png(&vec![vec![first, second.clone()], vec![], vec![second]]).unwrap();
        let page = image::load_from_memory_with_format(&bytes, ImageFormat::Png).unwrap().into_rgb8();
        // Two pictures and one beside each other, one below; each 64 wide, with gaps of 4.
        assert_eq!(page.dimensions(), (2 * 68 + 4 + 68 + 4, 2 * (68 + 4)));
        let at = |x, y| page.get_pixel(x, y).0;
        assert_eq!([at(4, 4), at(67, 4), at(4, 67), at(67, 67)], [[0; 3], [50; 3], [100; 3], [150; 3]]);
        assert_eq!((at(72, 4), at(144, 4), at(4, 76)), ([200; 3], [9, 8, 7], [9, 8, 7]));
        assert_eq!((at(0, 0), at(100, 100)), ([128; 3], [128; 3]));
    }

    #[test]
    fn a_gif_has_a_frame_for_each_page() {
        let mut film = Film::new(3, 0.3).unwrap();
        for value in [0, 128, 255] {
            film.add(&vec![vec![grey([value; 8])]]).unwrap();
        }
        assert_eq!(film.progress(), (3, 3));
        let frames = GifDecoder::new(Cursor::new(film.finish())).unwrap().into_frames().collect_frames().unwrap();
        assert_eq!(frames.len(), 3);
        let delays: Vec<u32> = frames.iter().map(|frame| frame.delay().numer_denom_ms().0).collect();
        assert_eq!(delays, [100, 100, REST]);
        let middles: Vec<u8> = frames.iter().map(|frame| frame.buffer().get_pixel(30, 30).0[0]).collect();
        assert_eq!(middles, [0, 128, 255]);
    }

    #[test]
    fn nothing_is_no_file() {
        assert!(matches!(png(&vec![]), Err(PictureFileError::Empty)));
        assert!(matches!(png(&vec![vec![]]), Err(PictureFileError::Empty)));
        assert!(matches!(Film::new(0, 1.0), Err(PictureFileError::Empty)));
    }
}
