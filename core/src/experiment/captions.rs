//! Training runs of captioners by name: the paper's, and small ones for a processor.
//!
//! A captioner's vocabulary comes with its data, so that a preset is completed by one.

use std::{fmt, str::FromStr};

use crate::{
    Error,
    data::shapes,
    model::{
        CaptionerConfig, Eye, Method, Output,
        features::{EncoderConfig, EncoderLayer},
    },
    objective::Loss,
    text::{Vocabulary, Words},
    train::TrainConfig,
};

/// A training run of a captioner by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptionPreset {
    /// Scenes of shapes, by bit diffusion.
    ShapesCaptions,
    /// Scenes of shapes, one word after the other.
    ShapesCaptionsAutoregressive,
    /// COCO, by bit diffusion, small enough for a processor.
    CocoSmall,
    /// COCO, one word after the other, small enough for a processor.
    CocoSmallAutoregressive,
    /// COCO seen by a pretrained encoder, by bit diffusion, small enough for a processor.
    CocoFeatures,
    /// COCO seen by a pretrained encoder, one word after the other, small enough for a processor.
    CocoFeaturesAutoregressive,
    /// The paper's COCO captioner.
    Coco,
    /// The paper's autoregressive baseline.
    CocoAutoregressive,
}

impl CaptionPreset {
    /// Every preset, the quickest first.
    pub const ALL: [Self; 8] = [
        Self::ShapesCaptions,
        Self::ShapesCaptionsAutoregressive,
        Self::CocoSmall,
        Self::CocoSmallAutoregressive,
        Self::CocoFeatures,
        Self::CocoFeaturesAutoregressive,
        Self::Coco,
        Self::CocoAutoregressive,
    ];

    /// The preset's name, as on the command line.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ShapesCaptions => "shapes-captions",
            Self::ShapesCaptionsAutoregressive => "shapes-captions-ar",
            Self::CocoSmall => "coco-small",
            Self::CocoSmallAutoregressive => "coco-small-ar",
            Self::CocoFeatures => "coco-features",
            Self::CocoFeaturesAutoregressive => "coco-features-ar",
            Self::Coco => "coco",
            Self::CocoAutoregressive => "coco-ar",
        }
    }

    /// What the run is, in a sentence.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::ShapesCaptions => "Captions of shapes by bit diffusion; needs no data and trains on a processor.",
            Self::ShapesCaptionsAutoregressive => "Captions of shapes one word after the other: the baseline.",
            Self::CocoSmall => {
                "COCO captions by bit diffusion, with an eye that learns to see what EfficientNet-lite0 does; needs --features, made with --size 192."
            }
            Self::CocoSmallAutoregressive => "The same COCO captions one word after the other: the baseline.",
            Self::CocoFeatures => {
                "COCO captions of what EfficientNet-lite0 sees; needs --features, made with --size 192."
            }
            Self::CocoFeaturesAutoregressive => "The same one word after the other: the baseline.",
            Self::Coco => "The paper's COCO captioner (BLEU-4 34.7 at 20 steps); needs --tokenizer and --features.",
            Self::CocoAutoregressive => "The paper's autoregressive baseline (BLEU-4 33.9).",
        }
    }

    /// How many steps such a run is meant to have.
    #[must_use]
    pub fn n_steps(self) -> usize {
        match self {
            Self::ShapesCaptions => 8_000,
            Self::ShapesCaptionsAutoregressive => 2_000,
            Self::CocoSmall | Self::CocoSmallAutoregressive | Self::CocoFeatures => 20_000,
            Self::CocoFeaturesAutoregressive => 4_000,
            Self::Coco | Self::CocoAutoregressive => 100_000,
        }
    }

    /// How many words the run's own vocabulary has at most, if it makes one of its captions.
    #[must_use]
    pub fn max_words(self) -> Option<usize> {
        match self {
            Self::CocoSmall | Self::CocoSmallAutoregressive | Self::CocoFeatures | Self::CocoFeaturesAutoregressive => {
                // With the end, the padding and the unknown word they fill eleven bits.
                Some((1 << 11) - 3)
            }
            _ => None,
        }
    }

    /// The vocabulary of the run, where that is known without data; else one of its size.
    #[must_use]
    pub fn usual_vocabulary(self) -> Vocabulary {
        let n_tokens = self.max_words().unwrap_or(32_000);
        match self {
            Self::ShapesCaptions | Self::ShapesCaptionsAutoregressive => Vocabulary::Words(Words::shapes()),
            _ => Vocabulary::SentencePiece { n_tokens, eos: 1, pad: 0, fingerprint: 0 },
        }
    }

    /// Everything that decides the run with a vocabulary, short of the data.
    #[must_use]
    pub fn config(self, vocabulary: Vocabulary) -> TrainConfig<CaptionerConfig> {
        let method = match self {
            Self::ShapesCaptions | Self::CocoSmall | Self::CocoFeatures | Self::Coco => Method::BitDiffusion,
            _ => Method::Autoregressive,
        };
        match self {
            Self::ShapesCaptions | Self::ShapesCaptionsAutoregressive => {
                let eye = Eye::convolutions(shapes::SIZE, &[32, 48, 64]);
                let network = CaptionerConfig {
                    method,
                    length: 20,
                    width: 128,
                    n_layers: 3,
                    n_heads: 4,
                    dropout: 0.0,
                    ..CaptionerConfig::paper(vocabulary, eye)
                };
                let config = TrainConfig { learning_rate: 1e-3, n_warmup_steps: 200, ..small(network) };
                // Left is not right.
                TrainConfig { batch_size: 64, micro_batch_size: 64, flips: false, ..config }
            }
            Self::CocoSmall | Self::CocoSmallAutoregressive => {
                let teacher = Some(EncoderConfig { size: 192, layer: EncoderLayer::Last });
                let eye = Eye::Convolutions { size: 96, widths: vec![24, 48, 96, 320], stride: 2, teacher };
                let run = photographs(method, vocabulary, eye);
                let network = CaptionerConfig { n_draws: 3, ..run.network };
                TrainConfig { network, batch_size: 32, micro_batch_size: 32, ..run }
            }
            Self::CocoFeatures | Self::CocoFeaturesAutoregressive => photographs(method, vocabulary, features_of(192)),
            Self::Coco | Self::CocoAutoregressive => {
                let eye = features_of(224);
                let network = CaptionerConfig { method, ..CaptionerConfig::paper(vocabulary, eye) };
                TrainConfig { learning_rate: 3e-4, ..TrainConfig::new(network) }
            }
        }
    }
}

/// An eye for what the encoder sees in pictures of this size: a place for every 32 pixels.
fn features_of(size: usize) -> Eye {
    Eye::Features { name: "EfficientNet-lite0".to_owned(), side: size / 32, channels: 320 }
}

/// A run on COCO that a processor can afford. Its decoder is told which word each is rather than its bits: so it learns to write
/// sentences in thousands of steps, where by ℓ₂ it does not. Small bits drown in noise sooner, so that there is more to guess from the picture.
fn photographs(method: Method, vocabulary: Vocabulary, eye: Eye) -> TrainConfig<CaptionerConfig> {
    let network = CaptionerConfig {
        method,
        length: 20,
        width: 256,
        n_layers: 4,
        n_heads: 4,
        dropout: 0.0,
        scale: 0.4,
        output: Output::SoftmaxFactorised,
        loss: Loss::SoftmaxCrossEntropy,
        ..CaptionerConfig::paper(vocabulary, eye)
    };
    let config = TrainConfig { learning_rate: 1e-3, n_warmup_steps: 500, ..small(network) };
    TrainConfig { batch_size: 64, micro_batch_size: 64, ..config }
}

/// A run that a processor can afford.
fn small(network: CaptionerConfig) -> TrainConfig<CaptionerConfig> {
    TrainConfig {
        batch_size: 32,
        micro_batch_size: 32,
        ema_decay: 0.999,
        class_dropout: 0.0,
        ..TrainConfig::new(network)
    }
}

impl fmt::Display for CaptionPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

impl FromStr for CaptionPreset {
    type Err = Error;

    fn from_str(label: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|preset| preset.label() == label);
        found.ok_or_else(|| {
            let labels: Vec<&str> = Self::ALL.into_iter().map(Self::label).collect();
            Error::argument("preset", label, format!("one of {}", labels.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_has_its_own_name() {
        for preset in CaptionPreset::ALL {
            preset.config(preset.usual_vocabulary()).validate().unwrap_or_else(|error| panic!("{preset}: {error}"));
            assert_eq!(preset.label().parse(), Ok(preset));
        }
        let error = "caption".parse::<CaptionPreset>().unwrap_err().to_string();
        assert!(error.contains("shapes-captions-ar"), "{error}");
    }

    #[test]
    fn the_papers_captioner_has_960_bits() {
        let network = CaptionPreset::Coco.config(CaptionPreset::Coco.usual_vocabulary()).network;
        assert_eq!((network.n_layers, network.width, network.length), (6, 512, 64));
        assert_eq!(network.length * network.codec().unwrap().bits_per_symbol(), 960);
    }
}
