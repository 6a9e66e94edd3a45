//! Data to learn and to test with.
//!
//! `shapes` makes its pictures; `cifar10` and `mnist` read the official files, one picture at a time, from anything that can be
//! read and searched: a file on a desktop, bytes in a browser. Deliberately absent: downloads.

pub mod cifar10;
pub mod mnist;
mod records;
pub mod shapes;

pub use records::DataError;

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Colour values, channel by channel, each row by row.
    pub pixels: Vec<u8>,
    /// What it shows.
    pub class: usize,
}
