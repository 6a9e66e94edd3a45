//! The demo models: networks that this project's own trainer made on a processor.
//!
//! `assets/SOURCES.md` says how each was trained and how good it is. They are part of the program; a page fetches those that are used, because
//! with all of them it would be twice as long to load.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Error, model::Method};

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
    /// Captions of shapes, by bit diffusion.
    ShapesCaptions,
    /// Captions of shapes, one word after the other.
    ShapesCaptionsAutoregressive,
    /// Captions of photographs, by bit diffusion.
    CocoSmall,
}

/// Photographs to caption that come with the program, each with a name; `assets/SOURCES.md` says whose they are.
pub const PHOTOGRAPHS: [(&str, &[u8]); 6] = [
    ("cat.jpg", include_bytes!("../../assets/photographs/cat.jpg")),
    ("coffee.jpg", include_bytes!("../../assets/photographs/coffee.jpg")),
    ("astronaut.jpg", include_bytes!("../../assets/photographs/astronaut.jpg")),
    ("pagoda.jpg", include_bytes!("../../assets/photographs/pagoda.jpg")),
    ("flower.jpg", include_bytes!("../../assets/photographs/flower.jpg")),
    ("camera.jpg", include_bytes!("../../assets/photographs/camera.jpg")),
];

impl Demo {
    /// Every demo model.
    pub const ALL: [Self; 7] = [
        Self::ShapesUint8,
        Self::ShapesGray,
        Self::ShapesRand,
        Self::Cifar10Small,
        Self::ShapesCaptions,
        Self::ShapesCaptionsAutoregressive,
        Self::CocoSmall,
    ];

    /// Those that make pictures.
    pub const PICTURES: [Self; 4] = [Self::ShapesUint8, Self::ShapesGray, Self::ShapesRand, Self::Cifar10Small];

    /// Those that write captions, and how; those of shapes first.
    pub const CAPTIONERS: [(Self, Method); 3] = [
        (Self::ShapesCaptions, Method::BitDiffusion),
        (Self::ShapesCaptionsAutoregressive, Method::Autoregressive),
        (Self::CocoSmall, Method::BitDiffusion),
    ];

    /// The model's name: that of the preset it was trained with.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ShapesUint8 => "shapes-uint8",
            Self::ShapesGray => "shapes-gray",
            Self::ShapesRand => "shapes-rand",
            Self::Cifar10Small => "cifar10-small",
            Self::ShapesCaptions => "shapes-captions",
            Self::ShapesCaptionsAutoregressive => "shapes-captions-ar",
            Self::CocoSmall => "coco-small",
        }
    }

    /// Whether it looks at photographs rather than at shapes.
    #[must_use]
    pub fn sees_photographs(self) -> bool {
        self == Self::CocoSmall
    }

    /// The name of its file in `assets/models`, and beside the page.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{}.safetensors", self.label())
    }

    /// The file, to be given to [`crate::checkpoint::load_network`]; empty in a browser, which fetches it.
    #[must_use]
    pub fn bytes(self) -> &'static [u8] {
        #[cfg(target_arch = "wasm32")]
        return &[];
        #[cfg(not(target_arch = "wasm32"))]
        match self {
            Self::ShapesUint8 => include_bytes!("../../assets/models/shapes-uint8.safetensors"),
            Self::ShapesGray => include_bytes!("../../assets/models/shapes-gray.safetensors"),
            Self::ShapesRand => include_bytes!("../../assets/models/shapes-rand.safetensors"),
            Self::Cifar10Small => include_bytes!("../../assets/models/cifar10-small.safetensors"),
            Self::ShapesCaptions => include_bytes!("../../assets/models/shapes-captions.safetensors"),
            Self::ShapesCaptionsAutoregressive => include_bytes!("../../assets/models/shapes-captions-ar.safetensors"),
            Self::CocoSmall => include_bytes!("../../assets/models/coco-small.safetensors"),
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
