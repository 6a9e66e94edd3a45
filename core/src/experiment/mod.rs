//! Experiments: training runs by name, one for each row of the paper's tables of pictures, and small ones for a processor. Those of
//! captioners are in `captions`.
//!
//! Deliberately absent: the data, which a program brings, and what to sample with. Where the paper is silent, the settings follow the
//! authors' released code.

mod captions;

use std::{fmt, str::FromStr};

pub use captions::CaptionPreset;

use crate::{
    Error,
    bits::Encoding,
    data::{cifar10, shapes},
    model::{Output, UNetConfig},
    objective::Prediction,
    train::TrainConfig,
};

/// A training run by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Shapes, base-2 bits.
    ShapesUint8,
    /// Shapes, Gray code.
    ShapesGray,
    /// Shapes, shuffled bits.
    ShapesRand,
    /// MNIST, small enough for a processor.
    MnistSmall,
    /// CIFAR-10 by class, small enough for a processor.
    Cifar10Small,
    /// The paper's CIFAR-10 without classes, base-2 bits.
    Cifar10Uint8,
    /// The paper's CIFAR-10 without classes, Gray code.
    Cifar10Gray,
    /// The paper's CIFAR-10 without classes, shuffled bits.
    Cifar10Rand,
    /// The paper's CIFAR-10 without classes, its baseline without bits.
    Cifar10Continuous,
    /// The paper's CIFAR-10 by class, base-2 bits.
    Cifar10ClassesUint8,
    /// The paper's CIFAR-10 by class, Gray code.
    Cifar10ClassesGray,
    /// The paper's CIFAR-10 by class, shuffled bits.
    Cifar10ClassesRand,
    /// The paper's CIFAR-10 by class, its baseline without bits.
    Cifar10ClassesContinuous,
    /// The paper's ImageNet 64×64 by class, base-2 bits.
    Imagenet64Uint8,
    /// The paper's ImageNet 64×64 by class, Gray code.
    Imagenet64Gray,
    /// The paper's ImageNet 64×64 by class, shuffled bits.
    Imagenet64Rand,
    /// The paper's ImageNet 64×64 by class, its baseline without bits.
    Imagenet64Continuous,
}

impl Preset {
    /// Every preset, the quickest first.
    pub const ALL: [Self; 17] = [
        Self::ShapesUint8,
        Self::ShapesGray,
        Self::ShapesRand,
        Self::MnistSmall,
        Self::Cifar10Small,
        Self::Cifar10Uint8,
        Self::Cifar10Gray,
        Self::Cifar10Rand,
        Self::Cifar10Continuous,
        Self::Cifar10ClassesUint8,
        Self::Cifar10ClassesGray,
        Self::Cifar10ClassesRand,
        Self::Cifar10ClassesContinuous,
        Self::Imagenet64Uint8,
        Self::Imagenet64Gray,
        Self::Imagenet64Rand,
        Self::Imagenet64Continuous,
    ];

    /// The preset's name, as on the command line.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ShapesUint8 => "shapes-uint8",
            Self::ShapesGray => "shapes-gray",
            Self::ShapesRand => "shapes-rand",
            Self::MnistSmall => "mnist-small",
            Self::Cifar10Small => "cifar10-small",
            Self::Cifar10Uint8 => "cifar10-uint8",
            Self::Cifar10Gray => "cifar10-gray",
            Self::Cifar10Rand => "cifar10-rand",
            Self::Cifar10Continuous => "cifar10-continuous",
            Self::Cifar10ClassesUint8 => "cifar10-classes-uint8",
            Self::Cifar10ClassesGray => "cifar10-classes-gray",
            Self::Cifar10ClassesRand => "cifar10-classes-rand",
            Self::Cifar10ClassesContinuous => "cifar10-classes-continuous",
            Self::Imagenet64Uint8 => "imagenet64-uint8",
            Self::Imagenet64Gray => "imagenet64-gray",
            Self::Imagenet64Rand => "imagenet64-rand",
            Self::Imagenet64Continuous => "imagenet64-continuous",
        }
    }

    /// What the run is, in a sentence.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::ShapesUint8 => "Shapes in base-2 bits; needs no data and trains on a processor.",
            Self::ShapesGray => "Shapes in Gray code.",
            Self::ShapesRand => "Shapes in shuffled bits, where a bit says nothing of a colour's order.",
            Self::MnistSmall => "MNIST digits by class, small enough for a processor.",
            Self::Cifar10Small => "CIFAR-10 by class, small enough for a processor.",
            Self::Cifar10Uint8 => "The paper's CIFAR-10 in base-2 bits (FID 3.48).",
            Self::Cifar10Gray => "The paper's CIFAR-10 in Gray code (FID 3.86).",
            Self::Cifar10Rand => "The paper's CIFAR-10 in shuffled bits (FID 6.93).",
            Self::Cifar10Continuous => "The paper's CIFAR-10 without bits, its baseline (FID 3.14).",
            Self::Cifar10ClassesUint8 => "The paper's CIFAR-10 by class in base-2 bits (FID 2.72).",
            Self::Cifar10ClassesGray => "The paper's CIFAR-10 by class in Gray code (FID 2.94).",
            Self::Cifar10ClassesRand => "The paper's CIFAR-10 by class in shuffled bits (FID 6.43).",
            Self::Cifar10ClassesContinuous => "The paper's CIFAR-10 by class without bits, its baseline (FID 2.95).",
            Self::Imagenet64Uint8 => "The paper's ImageNet 64×64 in base-2 bits (FID 4.84).",
            Self::Imagenet64Gray => "The paper's ImageNet 64×64 in Gray code (FID 5.14).",
            Self::Imagenet64Rand => "The paper's ImageNet 64×64 in shuffled bits (FID 8.76).",
            Self::Imagenet64Continuous => "The paper's ImageNet 64×64 without bits, its baseline (FID 3.43).",
        }
    }

    /// The preset of a name.
    pub fn from_label(label: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|preset| preset.label() == label);
        found.ok_or_else(|| {
            let labels: Vec<&str> = Self::ALL.into_iter().map(Self::label).collect();
            Error::argument("preset", label, format!("one of {}", labels.join(", ")))
        })
    }

    /// How many steps such a run is meant to have.
    #[must_use]
    pub fn n_steps(self) -> usize {
        match self.family() {
            Family::Shapes => 4_000,
            Family::Mnist => 10_000,
            Family::Cifar10Small => 40_000,
            Family::Cifar10 | Family::Cifar10Classes => 1_500_000,
            Family::Imagenet64 => 500_000,
        }
    }

    /// Everything that decides the run, short of the data.
    #[must_use]
    pub fn config(self) -> TrainConfig {
        let network = match self.family() {
            Family::Shapes => UNetConfig {
                size: shapes::SIZE,
                width: 32,
                multipliers: vec![1, 2],
                n_blocks: 2,
                attention_sizes: vec![8],
                head_dim: 32,
                ..UNetConfig::cifar10()
            },
            Family::Mnist => UNetConfig {
                size: 28,
                channels: 1,
                width: 32,
                multipliers: vec![1, 2, 2],
                n_blocks: 2,
                attention_sizes: vec![14, 7],
                head_dim: 32,
                n_classes: 10,
                ..UNetConfig::cifar10()
            },
            Family::Cifar10Small => UNetConfig {
                width: 32,
                multipliers: vec![1, 2, 4],
                n_blocks: 2,
                attention_sizes: vec![8],
                head_dim: 32,
                n_classes: cifar10::CLASSES.len(),
                ..UNetConfig::cifar10()
            },
            Family::Cifar10 => UNetConfig::cifar10(),
            Family::Cifar10Classes => UNetConfig { n_classes: cifar10::CLASSES.len(), ..UNetConfig::cifar10() },
            Family::Imagenet64 => UNetConfig::imagenet64(),
        };
        let data = self.family().data().to_owned();
        let mut config = TrainConfig { data, ..TrainConfig::new(with_encoding(network, self.encoding())) };
        if self.family() == Family::Shapes {
            // All three alike but for the code, so that they can be compared; 768 logits a pixel would also take most of the time.
            config.network.output = Output::Linear;
        }
        let small = |config| TrainConfig { batch_size: 32, micro_batch_size: 32, ema_decay: 0.999, ..config };
        match self.family() {
            Family::Shapes => small(TrainConfig { learning_rate: 1e-3, n_warmup_steps: 200, ..config }),
            // A mirrored digit is none.
            Family::Mnist => small(TrainConfig { learning_rate: 1e-3, n_warmup_steps: 500, flips: false, ..config }),
            Family::Cifar10Small => {
                let config = small(TrainConfig { learning_rate: 5e-4, n_warmup_steps: 500, ..config });
                // Few steps are what a processor can afford: smaller ones, but more of them.
                TrainConfig { batch_size: 16, micro_batch_size: 16, ..config }
            }
            Family::Cifar10 | Family::Cifar10Classes => {
                // Only the baseline without bits drops features.
                let dropout = if self.encoding() == Encoding::Continuous { 0.3 } else { 0.0 };
                TrainConfig {
                    micro_batch_size: 32,
                    network: UNetConfig { dropout, ..config.network.clone() },
                    ..config
                }
            }
            Family::Imagenet64 => {
                let learning_rate = if self.encoding() == Encoding::Uint8Rand { 1e-4 } else { 2e-4 };
                TrainConfig { learning_rate, batch_size: 1024, micro_batch_size: 16, ..config }
            }
        }
    }

    fn family(self) -> Family {
        match self {
            Self::ShapesUint8 | Self::ShapesGray | Self::ShapesRand => Family::Shapes,
            Self::MnistSmall => Family::Mnist,
            Self::Cifar10Small => Family::Cifar10Small,
            Self::Cifar10Uint8 | Self::Cifar10Gray | Self::Cifar10Rand | Self::Cifar10Continuous => Family::Cifar10,
            Self::Cifar10ClassesUint8
            | Self::Cifar10ClassesGray
            | Self::Cifar10ClassesRand
            | Self::Cifar10ClassesContinuous => Family::Cifar10Classes,
            Self::Imagenet64Uint8 | Self::Imagenet64Gray | Self::Imagenet64Rand | Self::Imagenet64Continuous => {
                Family::Imagenet64
            }
        }
    }

    fn encoding(self) -> Encoding {
        match self {
            Self::ShapesUint8
            | Self::MnistSmall
            | Self::Cifar10Small
            | Self::Cifar10Uint8
            | Self::Cifar10ClassesUint8
            | Self::Imagenet64Uint8 => Encoding::Uint8,
            Self::ShapesGray | Self::Cifar10Gray | Self::Cifar10ClassesGray | Self::Imagenet64Gray => Encoding::Gray,
            Self::ShapesRand | Self::Cifar10Rand | Self::Cifar10ClassesRand | Self::Imagenet64Rand => {
                Encoding::Uint8Rand
            }
            Self::Cifar10Continuous | Self::Cifar10ClassesContinuous | Self::Imagenet64Continuous => {
                Encoding::Continuous
            }
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(label: &str) -> Result<Self, Error> {
        Self::from_label(label)
    }
}

/// Presets that differ in their encoding only.
#[derive(PartialEq)]
enum Family {
    Shapes,
    Mnist,
    Cifar10Small,
    Cifar10,
    Cifar10Classes,
    Imagenet64,
}

impl Family {
    /// The name of the data that the presets are meant for.
    fn data(&self) -> &'static str {
        match self {
            Self::Shapes => shapes::NAME,
            Self::Mnist => "mnist",
            Self::Cifar10Small | Self::Cifar10 | Self::Cifar10Classes => "cifar10",
            Self::Imagenet64 => "imagenet64",
        }
    }
}

/// The network for an encoding: a softmax over values for shuffled bits, the noise predicted where there are no bits.
fn with_encoding(network: UNetConfig, encoding: Encoding) -> UNetConfig {
    let (output, prediction) = match encoding {
        Encoding::Uint8Rand => (Output::SoftmaxFactorised, Prediction::X0),
        // The paper's baseline is DDPM, which predicts the noise.
        Encoding::Continuous => (Output::Linear, Prediction::Eps),
        Encoding::Uint8 | Encoding::Gray | Encoding::OneHot => (Output::Linear, Prediction::X0),
    };
    UNetConfig { encoding, output, prediction, ..network }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_has_its_own_name() {
        for preset in Preset::ALL {
            preset.config().validate().unwrap_or_else(|error| panic!("{preset}: {error}"));
            assert_eq!(Preset::from_label(preset.label()), Ok(preset));
            let others = Preset::ALL.into_iter().filter(|other| *other != preset);
            for other in others {
                assert_ne!(other.config(), preset.config(), "{preset} and {other}");
            }
        }
        let error = Preset::from_label("cifar").unwrap_err().to_string();
        assert!(error.contains("cifar10-uint8"), "{error}");
    }

    #[test]
    fn the_papers_numbers() {
        let cifar = Preset::Cifar10Uint8.config();
        assert!((cifar.learning_rate - 1e-4).abs() < 1e-12 && cifar.batch_size == 128);
        assert!(cifar.network.dropout == 0.0 && Preset::Cifar10Continuous.config().network.dropout > 0.2);
        let imagenet = [Preset::Imagenet64Uint8, Preset::Imagenet64Gray, Preset::Imagenet64Rand].map(Preset::config);
        let rates = imagenet.each_ref().map(|config| config.learning_rate);
        assert!(rates[0] > 1.9e-4 && rates[1] > 1.9e-4 && rates[2] < 1.1e-4, "{rates:?}");
        assert!(imagenet.iter().all(|config| config.batch_size == 1024 && config.network.n_classes == 1000));
        assert_eq!(imagenet[2].network.output, Output::SoftmaxFactorised);
        // The paper says 51 and 240 million, and leaves out how it counts: with all that it describes there are a few more.
        assert_eq!(cifar.network.n_parameters() / 1_000_000, 52);
        assert_eq!(imagenet[0].network.n_parameters() / 1_000_000, 247);
    }

    #[test]
    fn a_processor_can_hold_the_small_ones() {
        for preset in [Preset::ShapesUint8, Preset::MnistSmall, Preset::Cifar10Small] {
            let n = preset.config().network.n_parameters();
            assert!(n < 6_000_000, "{preset} has {n} weights");
        }
    }
}
