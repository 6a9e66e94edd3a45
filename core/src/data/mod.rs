//! Data to learn and to test with.
//!
//! Every data set is a [`Pictures`]: `shapes` makes its pictures; `cifar10`, `mnist` and `imagenet64` read the official files, one
//! picture at a time, from anything that can be read and searched: a file on a desktop, bytes in a browser; `folder` decodes and
//! resizes picture files. `compose` puts several of them together. `caption` says in words what a scene of shapes shows.
//!
//! Pictures with captions are [`CaptionedPictures`]: the shapes again, and `coco`, an archive of photographs and a table.
//!
//! Deliberately absent: downloads and the file system.

pub mod caption;
mod captioned;
pub mod cifar10;
pub mod coco;
mod compose;
pub mod folder;
pub mod imagenet64;
pub mod mnist;
mod npy;
mod records;
mod resize;
pub mod shapes;
mod tar;

pub use captioned::{Captioned, CaptionedPictures, CaptionedShapes};
pub use compose::{Concat, Padded};
pub use records::DataError;
pub(crate) use records::{Records, read_at};

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Colour values, channel by channel, each row by row.
    pub pixels: Vec<u8>,
    /// What it shows.
    pub class: usize,
}

/// A data set of square pictures of one size, read one at a time.
pub trait Pictures {
    /// The data set in a word, for the settings of what is trained on it.
    fn name(&self) -> &'static str {
        "pictures"
    }

    /// The number of pictures; at least 1.
    fn n_examples(&self) -> usize;

    /// Colour values of a pixel: 1 (grey) or 3 (red, green, blue).
    fn channels(&self) -> usize;

    /// The width and the height of a picture, in pixels.
    fn size(&self) -> usize;

    /// The number of classes; 0 if the data have none, and then every picture's class is 0.
    fn n_classes(&self) -> usize;

    /// Reads one picture, of `channels · size · size` values.
    fn read(&mut self, index: usize) -> Result<Picture, DataError>;
}

impl<P: Pictures + ?Sized> Pictures for Box<P> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn n_examples(&self) -> usize {
        (**self).n_examples()
    }

    fn channels(&self) -> usize {
        (**self).channels()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn n_classes(&self) -> usize {
        (**self).n_classes()
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        (**self).read(index)
    }
}
