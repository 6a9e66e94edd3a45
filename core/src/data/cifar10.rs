//! CIFAR-10 (Krizhevsky 2009), from its official binary batches, `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`.
//!
//! A record is one byte for the class and 3 × 32 × 32 colour values, red first; there is no header.

use std::io::{Read, Seek};

use super::{DataError, Picture, Pictures, records::Records};

/// The width and height of a picture, in pixels.
pub const SIZE: usize = 32;

/// What the classes are called.
pub const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// One binary batch; [`super::Concat`] makes one data set of several.
#[derive(Debug)]
pub struct Cifar10<R> {
    records: Records<R>,
}

impl<R: Read + Seek> Cifar10<R> {
    /// Opens a batch; `file` is its name, for messages.
    pub fn open(source: R, file: &str) -> Result<Self, DataError> {
        Ok(Self { records: Records::open(source, file, 0, 1 + 3 * SIZE * SIZE)? })
    }
}

impl<R: Read + Seek> Pictures for Cifar10<R> {
    fn name(&self) -> &'static str {
        "cifar10"
    }

    /// 10,000 in the official files.
    fn n_examples(&self) -> usize {
        self.records.n_entries
    }

    fn channels(&self) -> usize {
        3
    }

    fn size(&self) -> usize {
        SIZE
    }

    fn n_classes(&self) -> usize {
        CLASSES.len()
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        let mut pixels = self.records.read(index)?;
        let class = usize::from(pixels.remove(0));
        if class >= CLASSES.len() {
            return Err(self.records.error(index, format!("the class is {class}, but must be from 0 to 9")));
        }
        Ok(Picture { pixels, class })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn two_pictures() -> Vec<u8> {
        let picture = |class: u8| std::iter::once(class).chain((0..3072).map(move |i| (i % 251) as u8 ^ class));
        picture(3).chain(picture(9)).collect()
    }

    #[test]
    fn pictures_and_classes() {
        let mut batch = Cifar10::open(Cursor::new(two_pictures()), "test.bin").unwrap();
        assert_eq!(batch.n_examples(), 2);
        let second = batch.read(1).unwrap();
        assert_eq!((second.class, second.pixels.len(), second.pixels[0], second.pixels[3071]), (9, 3072, 9, 50));
        assert_eq!(batch.read(0).unwrap().class, 3);
        assert!(batch.read(2).unwrap_err().to_string().contains("no example 2"));
    }

    #[test]
    fn broken_files_say_where() {
        let bytes = two_pictures();
        for end in 0..bytes.len() {
            let opened = Cifar10::open(Cursor::new(&bytes[..end]), "test.bin");
            assert_eq!(opened.is_ok(), end == 3073, "{end} bytes");
        }
        let mut wrong = bytes;
        wrong[3073] = 10;
        let error = Cifar10::open(Cursor::new(wrong), "test.bin").unwrap().read(1).unwrap_err();
        assert_eq!(error.to_string(), "the class is 10, but must be from 0 to 9, at byte 3073 of test.bin");
    }
}
