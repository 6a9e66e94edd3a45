//! Encodings: discrete symbols as analog bits, and back.
//!
//! [`Encoding`] names the ways to write a symbol of an alphabet of K as numbers; a [`Codec`] does it for one K and scale,
//! on slices ([`Codec::encode`]) and on tensors ([`Codec::encode_tensor`]). [`hamming`] measures what an encoding
//! keeps of the order of its symbols.
//!
//! Deliberately absent: pictures and words. A symbol is a whole number here.

mod codec;
pub mod hamming;
mod tensor;

use serde::{Deserialize, Serialize};

pub use codec::{Codec, MAX_ALPHABET};

/// How a symbol is written as real numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Encoding {
    /// The symbol in base 2, lowest bit first (Algorithm 3).
    #[default]
    Uint8,
    /// The reflected Gray code: neighbouring symbols differ in one bit.
    Gray,
    /// Base 2 after a fixed random permutation of the alphabet: a bit says nothing of the order.
    Uint8Rand,
    /// K numbers, of which the symbol's own is high (appendix B).
    OneHot,
    /// No bits: the value itself, scaled to −1…1. The paper's baseline, ordinary diffusion on pixels.
    Continuous,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: [Self; 5] = [Self::Uint8, Self::Gray, Self::Uint8Rand, Self::OneHot, Self::Continuous];

    /// The encoding's name, as in the paper.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Uint8 => "UINT8",
            Self::Gray => "Gray code",
            Self::Uint8Rand => "UINT8 (RAND)",
            Self::OneHot => "one-hot",
            Self::Continuous => "continuous",
        }
    }
}
