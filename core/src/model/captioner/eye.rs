//! The eye of a captioner: a picture, or the features that another network made of one, as tokens to look at.

use burn::{
    module::Module,
    nn::{GroupNorm, LayerNorm, Linear, conv::Conv2d},
    tensor::{Device, Tensor, TensorData},
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    kernels::{conv2d, group_norm_silu, layer_norm, linear},
    model::{features::EncoderConfig, layers::Init},
};

/// What turns a picture into tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Eye {
    /// Convolutions that learn with the captioner; each stage after the first halves the picture.
    Convolutions {
        /// Width and height of the pictures, in pixels.
        size: usize,
        /// The number of features of each stage.
        widths: Vec<usize>,
        /// The stride of the first stage: 1, or 2 to halve large pictures at once.
        #[serde(default = "no_stride")]
        stride: usize,
        /// The pretrained encoder whose features the last stage learns to see as well, if any. It is needed in training only.
        #[serde(default)]
        teacher: Option<EncoderConfig>,
    },
    /// Features of a picture that another network has made, and that stay as they are.
    Features {
        /// The network, as a person knows it.
        name: String,
        /// Rows and columns of the grid of features.
        side: usize,
        /// Features of each place.
        channels: usize,
    },
}

fn no_stride() -> usize {
    1
}

impl Eye {
    /// Convolutions that learn from captions alone, the first stage at the size of the pictures.
    #[must_use]
    pub fn convolutions(size: usize, widths: &[usize]) -> Self {
        Self::Convolutions { size, widths: widths.to_vec(), stride: no_stride(), teacher: None }
    }

    /// Rows and columns of the grid of tokens.
    #[must_use]
    pub fn side(&self) -> usize {
        match self {
            Self::Convolutions { size, widths, stride, .. } => (size / stride.max(&1)) >> (widths.len().max(1) - 1),
            Self::Features { side, .. } => *side,
        }
    }

    /// How many numbers it takes a picture: `[3, size, size]`, or `[channels, side, side]`.
    #[must_use]
    pub fn input_shape(&self) -> [usize; 3] {
        match self {
            Self::Convolutions { size, .. } => [3, *size, *size],
            Self::Features { side, channels, .. } => [*channels, *side, *side],
        }
    }

    /// The features of pictures that training needs: those that the eye is given, or those that it learns to see. `[channels, side, side]`.
    #[must_use]
    pub fn features_shape(&self) -> Option<[usize; 3]> {
        match self {
            Self::Convolutions { teacher: None, .. } => None,
            Self::Convolutions { .. } | Self::Features { .. } => Some([self.channels(), self.side(), self.side()]),
        }
    }

    /// How an encoder has to look at pictures for this eye; `None` if it needs no encoder, or an unknown one.
    #[must_use]
    pub fn encoder(&self) -> Option<EncoderConfig> {
        match self {
            Self::Convolutions { .. } => None,
            Self::Features { side, channels, .. } => EncoderConfig::of_grid(*side, *channels),
        }
    }

    /// Checks every number.
    pub fn validate(&self) -> Result<(), Error> {
        let check = |name: &'static str, value: usize| {
            let is_allowed = (1..=4096).contains(&value);
            is_allowed.then_some(()).ok_or_else(|| Error::argument(name, value, "from 1 to 4096"))
        };
        match self {
            Self::Convolutions { size, widths, stride, teacher } => {
                check("picture size", *size)?;
                check("stages of the eye", widths.len())?;
                if !matches!(stride, 1 | 2) {
                    return Err(Error::argument("stride of the eye", stride, "1 or 2"));
                }
                if let Some(teacher) = teacher {
                    let (ours, theirs) = (self.side().pow(2), teacher.n_tokens());
                    if (ours, self.channels()) != (theirs, teacher.channels()) {
                        let allowed = format!("{theirs} of {} features, as its teacher has", teacher.channels());
                        return Err(Error::argument(
                            "tokens of the eye",
                            format!("{ours} of {} features", self.channels()),
                            allowed,
                        ));
                    }
                }
                let halvings = widths.len() - 1 + usize::from(*stride == 2);
                if halvings > 12 || !size.is_multiple_of(1 << halvings) {
                    let allowed = format!("divisible by 2 once for each of {halvings} halvings");
                    return Err(Error::argument("picture size", size, allowed));
                }
                match widths.iter().find(|width| **width > 4096 || **width == 0 || !width.is_multiple_of(4)) {
                    Some(width) => Err(Error::argument("width of the eye", width, "a multiple of 4 from 4 to 4096")),
                    None => Ok(()),
                }
            }
            Self::Features { side, channels, .. } => {
                check("rows of features", *side)?;
                check("features of a place", *channels)
            }
        }
    }

    fn channels(&self) -> usize {
        match self {
            Self::Convolutions { widths, .. } => widths.last().copied().unwrap_or(0),
            Self::Features { channels, .. } => *channels,
        }
    }

    /// The number of weights of an eye whose tokens have `width` features.
    pub(super) fn n_parameters(&self, width: usize) -> u64 {
        let conv = |from: usize, to: usize, size: usize| (from * size * size + 1) as u64 * to as u64;
        let stages = match self {
            Self::Features { .. } => 0,
            Self::Convolutions { widths, .. } => {
                let steps = widths.windows(2).map(|pair| conv(pair[0], pair[1], 3));
                let blocks = widths.iter().map(|&width| 2 * conv(width, width, 3) + 4 * width as u64);
                conv(3, widths.first().copied().unwrap_or(0), 3) + steps.chain(blocks).sum::<u64>()
            }
        };
        stages + conv(self.channels(), width, 1) + 2 * width as u64
    }

    pub(super) fn init(&self, width: usize, init: &mut Init<'_>) -> EyeLayers {
        let mut stages = Vec::new();
        if let Self::Convolutions { widths, stride, .. } = self {
            let mut from = 3;
            for (i, &to) in widths.iter().enumerate() {
                let enter = init.conv([from, to], 3, if i == 0 { *stride } else { 2 }, 1.0);
                stages.push(Stage { enter, block: Block::new(to, init) });
                from = to;
            }
        }
        EyeLayers {
            stages,
            project: init.linear(self.channels(), width),
            norm: init.layer_norm(width),
            side: self.side(),
        }
    }
}

/// A residual block that knows no noise level.
#[derive(Module, Debug)]
struct Block {
    norm_1: GroupNorm,
    conv_1: Conv2d,
    norm_2: GroupNorm,
    conv_2: Conv2d,
}

impl Block {
    fn new(width: usize, init: &mut Init<'_>) -> Self {
        Self {
            norm_1: init.norm(width),
            conv_1: init.conv_3([width, width]),
            norm_2: init.norm(width),
            conv_2: init.conv_3_zero([width, width]),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let hidden = conv2d(&self.conv_1, group_norm_silu(&self.norm_1, x.clone()));
        x + conv2d(&self.conv_2, group_norm_silu(&self.norm_2, hidden))
    }
}

#[derive(Module, Debug)]
struct Stage {
    enter: Conv2d,
    block: Block,
}

/// The weights of an [`Eye`].
#[derive(Module, Debug)]
pub(super) struct EyeLayers {
    stages: Vec<Stage>,
    project: Linear,
    norm: LayerNorm,
    side: usize,
}

impl EyeLayers {
    /// What the stages see, before it becomes tokens.
    ///
    /// # Shapes
    /// - `pictures`: `[b, 3, size, size]` in ±1, or features `[b, channels, side, side]`; output: `[b, side², channels]`
    pub fn see(&self, pictures: Tensor<4>) -> Tensor<3> {
        let x = self.stages.iter().fold(pictures, |x, stage| stage.block.forward(conv2d(&stage.enter, x)));
        let [batch, channels, ..] = x.dims();
        x.reshape([batch, channels, self.side * self.side]).swap_dims(1, 2)
    }

    /// The tokens of what was seen: `Linear`, layer normalisation, two-dimensional sine and cosine positions.
    ///
    /// # Shapes
    /// - `seen`: `[b, side², channels]`; output: `[b, side², width]`
    pub fn tokens(&self, seen: Tensor<3>) -> Tensor<3> {
        let tokens = layer_norm(&self.norm, linear(&self.project, seen));
        let width = tokens.dims()[2];
        let positions = positions(self.side, width, &tokens.device());
        tokens + positions
    }
}

/// How far what an eye sees is from what its teacher does, as a mean square. Each place of the teacher's is shifted and scaled to mean 0 and
/// variance 1, so that the strongest of its features do not decide alone.
///
/// # Shapes
/// - `seen`: `[b, side², channels]`; `taught`: `[b, channels, side, side]`; result: `[1]`
pub(super) fn imitation_loss(seen: Tensor<3>, taught: Tensor<4>) -> Tensor<1> {
    let [batch, n, channels] = seen.dims();
    let taught = taught.reshape([batch, channels, n]).swap_dims(1, 2);
    let centred = taught.clone() - taught.mean_dim(2);
    let spread = centred.clone().square().mean_dim(2).add_scalar(1e-5).sqrt();
    (seen - centred / spread).square().mean()
}

/// Sines and cosines of the column in the first half of the features and of the row in the second; `[1, side², width]`.
fn positions(side: usize, width: usize, device: &Device) -> Tensor<3> {
    let quarter = width / 4;
    let wave = |place: usize, i: usize| {
        let angle = place as f64 * 10_000_f64.powf(-(i as f64) / quarter.max(1) as f64);
        [angle.sin() as f32, angle.cos() as f32]
    };
    let mut values = vec![0.0_f32; side * side * width];
    for (token, values) in values.chunks_exact_mut(width).enumerate() {
        for (half, place) in [token % side, token / side].into_iter().enumerate() {
            for i in 0..quarter {
                values[2 * (half * quarter + i)..][..2].copy_from_slice(&wave(place, i));
            }
        }
    }
    Tensor::from_data(TensorData::new(values, [1, side * side, width]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eye_that_sees_what_its_teacher_sees_has_nothing_to_learn() {
        // One place with the features 1 and 5, of which 3 is the mean and 2 the spread; seen the wrong way round, each is 2 off.
        let place = |values: [f32; 2]| TensorData::new(values.to_vec(), [1, 1, 2]);
        let taught = Tensor::from_data(TensorData::new(vec![1.0_f32, 5.0], [1, 2, 1, 1]), &Device::flex());
        for (seen, expected) in [([-1.0, 1.0], 0.0), ([1.0, -1.0], 4.0)] {
            let seen = Tensor::from_data(place(seen), &Device::flex());
            let loss: f32 = imitation_loss(seen, taught.clone()).into_scalar();
            assert!((loss - expected).abs() < 1e-4, "{loss}");
        }
    }

    #[test]
    fn an_eye_has_a_teacher_that_looks_the_same_way() {
        let teacher = EncoderConfig::of_grid(6, 320);
        let eye = |size, last| Eye::Convolutions { size, widths: vec![8, 8, 8, last], stride: 2, teacher };
        assert_eq!(eye(96, 320).validate(), Ok(()));
        assert_eq!((eye(96, 320).side(), eye(96, 320).features_shape()), (6, Some([320, 6, 6])));
        for wrong in [eye(64, 320), eye(96, 64)] {
            assert!(wrong.validate().unwrap_err().to_string().contains("as its teacher has"), "{wrong:?}");
        }
        let old = r#"{"Convolutions":{"size":8,"widths":[8,12]}}"#;
        assert_eq!(serde_json::from_str::<Eye>(old).unwrap(), Eye::convolutions(8, &[8, 12]));
    }

    #[test]
    fn every_place_has_its_own_position() {
        let values: Vec<f32> = positions(4, 16, &Device::flex()).into_data().try_to_vec().unwrap();
        let rows: Vec<&[f32]> = values.chunks_exact(16).collect();
        for (i, row) in rows.iter().enumerate() {
            assert!(rows[..i].iter().all(|other| other != row), "{i}");
        }
        // Column 1, row 0: the sine of 1 first, and the row's sine is 0.
        assert!((rows[1][0] - 1_f32.sin()).abs() < 1e-6 && rows[1][8].abs() < 1e-6, "{:?}", rows[1]);
    }
}
