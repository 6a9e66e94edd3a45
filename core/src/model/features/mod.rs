//! Feature networks: pictures as vectors that a Fréchet or kernel distance ([`crate::metrics`]) can compare, or as a grid of tokens that a
//! captioner looks at ([`ImageEncoder`]).
//!
//! Two networks to compare by are known, each recognised by the names of its tensors in a safetensors file: a CIFAR-10 classifier, and the Inception
//! of the FID. `bench/features_to_safetensors.py` writes such files from PyTorch's.
//!
//! Deliberately absent: training (batch normalisation is folded into the convolutions on loading), the weights, and paths.

mod cache;
mod efficientnet;
mod inception;
mod resnet56;
mod weights;

use burn::tensor::{Device, Tensor};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

pub use cache::{CacheInfo, TokenCache};
pub use efficientnet::{EncoderConfig, EncoderLayer, ImageEncoder};

use self::{inception::Inception, resnet56::ResNet56, weights::Weights};

/// Why a file is no feature network, or why a network cannot look at these pictures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeatureError {
    /// No safetensors file, or one that was cut off.
    #[error(
        "this is no complete safetensors file ({0}); convert a PyTorch file with `python3 bench/features_to_safetensors.py IN OUT`, or \
         get the file again"
    )]
    Unreadable(String),
    /// Some other network.
    #[error(
        "these are no weights of a known feature network ({found}); known are the CIFAR-10 ResNet-56 of akamaster/pytorch_resnet_cifar10 \
         and the FID Inception of pytorch-fid, converted with `python3 bench/features_to_safetensors.py IN OUT`"
    )]
    Unknown {
        /// What the file has instead.
        found: String,
    },
    /// The Inception of another program, whose features are not those of the FID.
    #[error(
        "this is an Inception, but not that of the FID: {found}, where the FID's has an fc.weight of shape [1008, 2048]; use \
         pytorch-fid's pt_inception-2015-12-05"
    )]
    OtherInception {
        /// What gives it away.
        found: String,
    },
    /// Part of the network is not there.
    #[error("the file has no {name}, which a {network} needs; convert the whole state dict again")]
    Missing {
        /// The tensor.
        name: String,
        /// The network that the file seemed to have.
        network: &'static str,
    },
    /// A tensor of another shape.
    #[error("{name} has shape {found:?}, but must have {expected:?}; this is a network of another size")]
    Shape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that it must have.
        expected: Vec<usize>,
    },
    /// Values that cannot be weights.
    #[error("{name} {problem}; get the file again, or convert it again")]
    Values {
        /// The tensor.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A size that the encoder cannot work at.
    #[error(
        "the encoder would look at pictures of {found} × {found}, but must at 1 to {max} pixels each way; 224 is what it knows"
    )]
    EncoderSize {
        /// The size.
        found: usize,
        /// The largest that makes sense.
        max: usize,
    },
    /// Pictures that the network was not made for.
    #[error("the pictures have shape {found:?}, but a {network} takes {expected}")]
    Pictures {
        /// Their shape.
        found: Vec<usize>,
        /// The network.
        network: &'static str,
        /// What it takes, in words.
        expected: &'static str,
    },
}

/// The feature networks that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FeatureNetwork {
    /// A ResNet-56 that tells CIFAR-10's classes apart (He et al. 2016); 64 features and 10 logits.
    CifarResNet56,
    /// The Inception-v3 of the FID (Heusel et al. 2017), as pytorch-fid has it; 2,048 features.
    FidInception,
}

impl FeatureNetwork {
    /// Every network.
    pub const ALL: [Self; 2] = [Self::CifarResNet56, Self::FidInception];

    /// The network's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::CifarResNet56 => "CIFAR-10 ResNet-56",
            Self::FidInception => "FID Inception",
        }
    }

    /// The number of features of a picture.
    #[must_use]
    pub fn dim(self) -> usize {
        match self {
            Self::CifarResNet56 => resnet56::DIM,
            Self::FidInception => inception::DIM,
        }
    }

    /// The network whose weights a safetensors file holds, by the names of its tensors, and those weights.
    pub fn load(bytes: &[u8], device: &Device) -> Result<Features, FeatureError> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| FeatureError::Unreadable(error.to_string()))?;
        let network = Self::detect(&tensors)?;
        let weights = Weights { tensors, network: network.label(), device: device.clone().inner() };
        let layers = match network {
            Self::CifarResNet56 => Layers::ResNet56(Box::new(ResNet56::load(&weights)?)),
            Self::FidInception => Layers::Inception(Inception::load(&weights)?),
        };
        Ok(Features { network, layers })
    }

    fn detect(tensors: &SafeTensors<'_>) -> Result<Self, FeatureError> {
        let mut names = tensors.names();
        if names.contains(&resnet56::MARK) {
            return Ok(Self::CifarResNet56);
        }
        if names.contains(&inception::MARK) {
            return inception::check_fid(tensors).map(|()| Self::FidInception);
        }
        names.sort_unstable();
        let found = match names.as_slice() {
            [] => "the file has no tensors".to_owned(),
            [first, ..] => format!("{} tensors, the first is {first:?}", names.len()),
        };
        Err(FeatureError::Unknown { found })
    }
}

/// A feature network with its weights.
#[derive(Debug, Clone)]
pub struct Features {
    network: FeatureNetwork,
    layers: Layers,
}

#[derive(Debug, Clone)]
enum Layers {
    ResNet56(Box<ResNet56>),
    Inception(Inception),
}

impl Features {
    /// Which network it is.
    #[must_use]
    pub fn network(&self) -> FeatureNetwork {
        self.network
    }

    /// The number of features of a picture.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.network.dim()
    }

    /// `Ok` if [`Self::forward`] takes pictures of this shape.
    pub fn accepts(&self, shape: [usize; 4]) -> Result<(), FeatureError> {
        let [batch, channels, height, width] = shape;
        let (fits, expected) = match self.network {
            FeatureNetwork::CifarResNet56 => {
                let size = resnet56::SIZE;
                (
                    batch > 0 && [channels, height, width] == [3, size, size],
                    "colour pictures of 32 × 32, [b, 3, 32, 32]",
                )
            }
            FeatureNetwork::FidInception => {
                (batch > 0 && channels == 3 && height > 0 && width > 0, "colour pictures of any size, [b, 3, h, w]")
            }
        };
        let network = self.network.label();
        if fits { Ok(()) } else { Err(FeatureError::Pictures { found: shape.to_vec(), network, expected }) }
    }

    /// The features of pictures, whose values are colour values from 0 to 255, not yet normalised in any way.
    ///
    /// What the network wants (its mean and spread, a size of 299 × 299) is done here. The pictures are on the device that the network
    /// was loaded on. The Inception needs some 40 MB a picture: batches of 8 to 32 are enough to keep a device busy.
    ///
    /// # Shapes
    /// - `pictures`: `[b, 3, h, w]`, one that [`Self::accepts`]; output: `[b, dim]`
    #[must_use]
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<2> {
        if let Err(error) = self.accepts(pictures.dims()) {
            panic!("{error}");
        }
        // No gradient is ever wanted here.
        let pictures = if pictures.is_autodiff() { pictures.inner() } else { pictures };
        match &self.layers {
            Layers::ResNet56(network) => network.forward(pictures),
            Layers::Inception(network) => network.forward(pictures),
        }
    }

    /// What a classifier makes of features: one logit a class, the largest is its guess. `None` for a network that is none.
    ///
    /// # Shapes
    /// - `features`: `[b, dim]`, from [`Self::forward`]; output: `[b, classes]`
    #[must_use]
    pub fn logits(&self, features: Tensor<2>) -> Option<Tensor<2>> {
        match &self.layers {
            Layers::ResNet56(network) => Some(network.logits(features)),
            Layers::Inception(_) => None,
        }
    }
}
