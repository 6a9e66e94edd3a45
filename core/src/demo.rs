//! The demo models: networks that this project's own trainer made on a processor, part of the program.
//!
//! `assets/SOURCES.md` says how each was trained and how good it is. A page has the first one only: with all of them it would be twice as
//! long to load.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Error;

/// A network that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Demo {
    /// Shapes in base-2 bits.
    #[default]
    ShapesUint8,
    /// Shapes in Gray code.
    #[cfg(not(target_arch = "wasm32"))]
    ShapesGray,
    /// Shapes in shuffled bits.
    #[cfg(not(target_arch = "wasm32"))]
    ShapesRand,
    /// CIFAR-10 by class.
    #[cfg(not(target_arch = "wasm32"))]
    Cifar10Small,
}

impl Demo {
    /// Every demo model.
    #[cfg(not(target_arch = "wasm32"))]
    pub const ALL: [Self; 4] = [Self::ShapesUint8, Self::ShapesGray, Self::ShapesRand, Self::Cifar10Small];

    /// Every demo model.
    #[cfg(target_arch = "wasm32")]
    pub const ALL: [Self; 1] = [Self::ShapesUint8];

    /// The model's name: that of the preset it was trained with.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ShapesUint8 => "shapes-uint8",
            #[cfg(not(target_arch = "wasm32"))]
            Self::ShapesGray => "shapes-gray",
            #[cfg(not(target_arch = "wasm32"))]
            Self::ShapesRand => "shapes-rand",
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cifar10Small => "cifar10-small",
        }
    }

    /// The file, to be given to [`crate::checkpoint::load_network`].
    #[must_use]
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::ShapesUint8 => include_bytes!("../../assets/models/shapes-uint8.safetensors"),
            #[cfg(not(target_arch = "wasm32"))]
            Self::ShapesGray => include_bytes!("../../assets/models/shapes-gray.safetensors"),
            #[cfg(not(target_arch = "wasm32"))]
            Self::ShapesRand => include_bytes!("../../assets/models/shapes-rand.safetensors"),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cifar10Small => include_bytes!("../../assets/models/cifar10-small.safetensors"),
        }
    }
}

impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl FromStr for Demo {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|demo| demo.label() == text).ok_or_else(|| {
            let labels: Vec<&str> = Self::ALL.into_iter().map(Self::label).collect();
            Error::argument("demo model", text, format!("one of {}", labels.join(", ")))
        })
    }
}
