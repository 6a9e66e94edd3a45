//! The demo models: networks that this project's own trainer made on a processor, part of the program.
//!
//! `assets/SOURCES.md` says how each was trained and how good it is. Only models that a program names are linked into it.

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
    ShapesGray,
    /// Shapes in shuffled bits.
    ShapesRand,
    /// CIFAR-10 by class.
    Cifar10Small,
}

impl Demo {
    /// Every demo model.
    pub const ALL: [Self; 4] = [Self::ShapesUint8, Self::ShapesGray, Self::ShapesRand, Self::Cifar10Small];

    /// The model's name: that of the preset it was trained with.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ShapesUint8 => "shapes-uint8",
            Self::ShapesGray => "shapes-gray",
            Self::ShapesRand => "shapes-rand",
            Self::Cifar10Small => "cifar10-small",
        }
    }

    /// The file, to be given to [`crate::checkpoint::load_network`].
    #[must_use]
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::ShapesUint8 => include_bytes!("../../assets/models/shapes-uint8.safetensors"),
            Self::ShapesGray => include_bytes!("../../assets/models/shapes-gray.safetensors"),
            Self::ShapesRand => include_bytes!("../../assets/models/shapes-rand.safetensors"),
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
