//! Picture files, PNG or JPEG, each decoded, cut to a square and resized when it is read.
//!
//! Deliberately absent: the file system. The caller lists the files and reads them: from a disk, an archive, or a drop onto a
//! page. A hostile file cannot exhaust the memory: see [`MAX_SIDE`] and [`MAX_DECODED_BYTES`].

use std::{
    fmt,
    io::{self, Cursor},
};

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::{DataError, Picture, Pictures, resize::centre_square};

/// The largest width or height of a picture file, in pixels.
pub const MAX_SIDE: u32 = 8192;

/// The most that a decoded picture file may take, in bytes.
pub const MAX_DECODED_BYTES: u64 = 256 << 20;

/// A picture file: its name, which the reader is called with and messages show, and its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// What the picture shows.
    pub class: usize,
}

/// Picture files as a data set; `F` gives the bytes of the file of a name.
pub struct Folder<F> {
    entries: Vec<Entry>,
    n_classes: usize,
    channels: usize,
    size: usize,
    read_file: F,
}

impl<F: FnMut(&str) -> io::Result<Vec<u8>>> Folder<F> {
    /// A data set of files, at least one, in the given order.
    ///
    /// Every class must be below `n_classes`; if that is 0, there are no classes and all must be 0. The pictures come out with
    /// 1 channel (grey) or 3, and `size` × `size` pixels.
    pub fn new(
        entries: Vec<Entry>,
        n_classes: usize,
        channels: usize,
        size: usize,
        read_file: F,
    ) -> Result<Self, DataError> {
        let mismatch = |reason| Err(DataError::Mismatch { reason });
        if entries.is_empty() {
            return mismatch("there are no picture files, but there must be at least one".to_owned());
        }
        if let Some(entry) = entries.iter().find(|entry| entry.class >= n_classes.max(1)) {
            let reason =
                format!("the class is {}, but must be below {}, of {}", entry.class, n_classes.max(1), entry.name);
            return mismatch(reason);
        }
        if !matches!(channels, 1 | 3) {
            return mismatch(format!("the pictures would have {channels} channels, but must have 1 or 3"));
        }
        if !(1..=MAX_SIDE as usize).contains(&size) {
            return mismatch(format!(
                "the pictures would have {size} × {size} pixels, but must have 1 to {MAX_SIDE} each way"
            ));
        }
        Ok(Self { entries, n_classes, channels, size, read_file })
    }
}

impl<F> fmt::Debug for Folder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder")
            .field("entries", &self.entries)
            .field("n_classes", &self.n_classes)
            .field("channels", &self.channels)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl<F: FnMut(&str) -> io::Result<Vec<u8>>> Pictures for Folder<F> {
    fn n_examples(&self) -> usize {
        self.entries.len()
    }

    fn channels(&self) -> usize {
        self.channels
    }

    fn size(&self) -> usize {
        self.size
    }

    fn n_classes(&self) -> usize {
        self.n_classes
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        let n_examples = self.entries.len();
        let Entry { name, class } = self.entries.get(index).ok_or(DataError::Index { index, n_examples })?;
        let bytes = (self.read_file)(name).map_err(|source| DataError::Io { source, offset: 0, file: name.clone() })?;
        let mut pixels = read_square(&bytes, self.size, name)?;
        if self.channels == 1 {
            pixels = grey(&pixels);
        }
        Ok(Picture { pixels, class: *class })
    }
}

/// The square in the middle of a PNG or JPEG file, in colour, at a size of its own; `file` is its name, for messages.
///
/// # Shapes
/// - result: `[3, size, size]`
pub fn read_square(bytes: &[u8], size: usize, file: &str) -> Result<Vec<u8>, DataError> {
    let image = decode(bytes).map_err(|reason| DataError::Decode { reason, file: file.to_owned() })?;
    let shape = [image.height() as usize, image.width() as usize];
    Ok(centre_square(&over_white(image), shape, size))
}

/// The picture of a PNG or JPEG file, upright, or what is wrong with it.
fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let format = image::guess_format(bytes).ok();
    let Some(format @ (ImageFormat::Png | ImageFormat::Jpeg)) = format else {
        return Err("it is neither a PNG nor a JPEG; convert it to one of them".to_owned());
    };
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let read = || {
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        reader.limits(limits.clone());
        let mut decoder = reader.into_decoder()?;
        limits.clone().reserve(decoder.total_bytes())?;
        // A picture whose note on its orientation is broken is still a picture.
        let orientation = decoder.orientation().ok();
        let mut image = DynamicImage::from_decoder(decoder)?;
        if let Some(orientation) = orientation {
            image.apply_orientation(orientation);
        }
        Ok(image)
    };
    let image = read().map_err(|error: image::ImageError| match error {
        image::ImageError::Limits(_) => format!(
            "it is too large; make it at most {MAX_SIDE} pixels each way and {} MiB decoded",
            MAX_DECODED_BYTES >> 20
        ),
        other => other.to_string(),
    })?;
    if image.width() == 0 || image.height() == 0 {
        return Err("it has no pixels".to_owned());
    }
    Ok(image)
}

/// The red, green and blue values of a picture, pixel by pixel; what is transparent shows white behind it.
fn over_white(image: DynamicImage) -> Vec<u8> {
    if !image.color().has_alpha() {
        return image.into_rgb8().into_raw();
    }
    let composite = |value: u8, alpha: u8| {
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8
    };
    let pixels = image.into_rgba8().into_raw();
    pixels.as_chunks().0.iter().flat_map(|&[r, g, b, a]| [r, g, b].map(|value| composite(value, a))).collect()
}

/// The luminance of a picture of three channels, by the weights of ITU-R BT.709.
///
/// # Shapes
/// - `pixels`: `[3, size, size]`
/// - result: `[1, size, size]`
fn grey(pixels: &[u8]) -> Vec<u8> {
    let n = pixels.len() / 3;
    let weighted =
        |i: usize| 2126 * u32::from(pixels[i]) + 7152 * u32::from(pixels[n + i]) + 722 * u32::from(pixels[2 * n + i]);
    (0..n).map(|i| ((weighted(i) + 5000) / 10_000) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{Rgb, RgbImage, Rgba, RgbaImage};

    fn png(image: impl Into<DynamicImage>) -> Vec<u8> {
        encoded(image, ImageFormat::Png)
    }

    fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(vec![]);
        image.into().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// One file, read.
    fn read(bytes: &[u8], channels: usize, size: usize) -> Result<Picture, DataError> {
        let entries = vec![Entry { name: "a.png".to_owned(), class: 2 }];
        Folder::new(entries, 3, channels, size, |_| Ok(bytes.to_vec()))?.read(0)
    }

    #[test]
    fn files_are_read_by_name_and_have_their_class() {
        let entries = ["red", "blue"].iter().zip(0..).map(|(name, class)| Entry { name: (*name).to_owned(), class });
        let entries = entries.collect();
        let mut folder = Folder::new(entries, 2, 3, 2, |name| match name {
            "red" => Ok(png(RgbImage::from_pixel(5, 3, Rgb([200, 10, 20])))),
            "blue" => Err(io::ErrorKind::NotFound.into()),
            other => panic!("{other}"),
        })
        .unwrap();
        assert_eq!((folder.n_examples(), folder.channels(), folder.size(), folder.n_classes()), (2, 3, 2, 2));
        let red = folder.read(0).unwrap();
        assert_eq!(red, Picture { pixels: vec![200, 200, 200, 200, 10, 10, 10, 10, 20, 20, 20, 20], class: 0 });
        assert!(folder.read(1).unwrap_err().to_string().ends_with("in blue"));
        assert!(matches!(folder.read(2), Err(DataError::Index { index: 2, n_examples: 2 })));
    }

    #[test]
    fn jpegs_are_pictures_too() {
        let jpeg = encoded(RgbImage::from_pixel(20, 24, Rgb([128, 128, 128])), ImageFormat::Jpeg);
        let picture = read(&jpeg, 3, 4).unwrap();
        assert_eq!(picture.pixels.len(), 48);
        assert!(picture.pixels.iter().all(|value| value.abs_diff(128) <= 2), "{picture:?}");
    }

    #[test]
    fn a_photograph_stands_upright() {
        let image = RgbImage::from_fn(16, 16, |x, _| if x < 8 { Rgb([0; 3]) } else { Rgb([255; 3]) });
        let jpeg = encoded(image, ImageFormat::Jpeg);
        // After the first marker, Exif's note of one entry: the orientation (0x112) is 6, to be turned right by a quarter.
        let mut exif = b"\xFF\xE1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0".to_vec();
        exif.extend(b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0");
        let turned = [&jpeg[..2], &exif, &jpeg[2..]].concat();
        let dark = |bytes: &[u8]| read(bytes, 1, 2).unwrap().pixels.iter().map(|&v| v < 128).collect::<Vec<_>>();
        assert_eq!(dark(&jpeg), [true, false, true, false]);
        assert_eq!(dark(&turned), [true, true, false, false]);
    }

    #[test]
    fn what_is_transparent_is_white() {
        let mut image = RgbaImage::from_pixel(2, 2, Rgba([0, 100, 200, 0]));
        image.put_pixel(0, 0, Rgba([0, 100, 200, 255]));
        image.put_pixel(1, 0, Rgba([0, 100, 200, 51]));
        let pixels = read(&png(image), 3, 2).unwrap().pixels;
        // 51 is a fifth: 255 · ⅘ + value · ⅕.
        assert_eq!(pixels, [0, 204, 255, 255, 100, 224, 255, 255, 200, 244, 255, 255]);
    }

    #[test]
    fn grey_is_luminance() {
        assert_eq!(grey(&[255, 0, 0, 77, 0, 255, 0, 77, 0, 0, 255, 77]), [54, 182, 18, 77]);
        let picture = read(&png(RgbImage::from_pixel(3, 3, Rgb([0, 255, 0]))), 1, 2).unwrap();
        assert_eq!(picture, Picture { pixels: vec![182; 4], class: 2 });
        // A file that is grey itself.
        let luma = image::GrayImage::from_pixel(2, 2, image::Luma([9]));
        assert_eq!(read(&png(luma), 1, 1).unwrap().pixels, [9]);
    }

    #[test]
    fn a_file_cut_short_anywhere_is_an_error_or_a_picture() {
        let image = RgbImage::from_fn(9, 8, |x, y| Rgb([x as u8 * 20, y as u8 * 30, 7]));
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let bytes = encoded(image.clone(), format);
            for end in 0..bytes.len() {
                match read(&bytes[..end], 3, 4) {
                    Ok(picture) => assert_eq!(picture.pixels.len(), 48),
                    Err(error) => assert!(error.to_string().ends_with("in a.png"), "{error}"),
                }
            }
            assert!(read(&bytes[..bytes.len() / 4], 3, 4).is_err(), "{format:?}");
            assert!(read(&bytes, 3, 4).is_ok());
        }
    }

    #[test]
    fn a_file_that_claims_to_be_huge_is_refused() {
        let mut bytes = png(RgbImage::new(4, 4));
        // Width and height of a PNG, big-endian, and the checksum of their chunk.
        bytes[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
        bytes[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
        let checksum = crc32fast::hash(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
        let error = read(&bytes, 3, 4).unwrap_err().to_string();
        assert!(error.contains("too large; make it at most 8192 pixels each way"), "{error}");
        assert!(read(&png(RgbImage::new(MAX_SIDE, 1)), 3, 4).is_ok());
        assert!(read(&png(RgbImage::new(MAX_SIDE + 1, 1)), 3, 4).is_err());
        assert!(read(&png(RgbImage::new(1, MAX_SIDE + 1)), 3, 4).is_err());
        // Within the sides, but 8192 · 8192 · 8 bytes.
        bytes[16..20].copy_from_slice(&8192_u32.to_be_bytes());
        bytes[20..24].copy_from_slice(&8192_u32.to_be_bytes());
        (bytes[24], bytes[25]) = (16, 6);
        let checksum = crc32fast::hash(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
        let error = read(&bytes, 3, 4).unwrap_err().to_string();
        assert!(error.contains("256 MiB decoded"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let error = read(b"GIF89a and so on", 3, 4).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot decode the picture: it is neither a PNG nor a JPEG; convert it to one of them, in a.png"
        );
        for (channels, size) in [(2, 4), (0, 4), (3, 0), (3, 8193)] {
            assert!(matches!(read(&[], channels, size), Err(DataError::Mismatch { .. })), "{channels} {size}");
        }
        let new = |class, n_classes| {
            let entries = vec![Entry { name: "x".to_owned(), class }];
            Folder::new(entries, n_classes, 3, 4, |_: &str| Ok(vec![])).map(|_| ())
        };
        assert!(new(0, 0).is_ok() && new(1, 2).is_ok());
        assert!(new(1, 0).is_err() && new(2, 2).is_err());
        assert!(Folder::new(vec![], 0, 3, 4, |_: &str| Ok(vec![])).is_err());
    }
}
