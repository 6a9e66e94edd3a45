//! The Inception-v3 of the FID, with the tensor names of pytorch-fid's `pt_inception-2015-12-05`.
//!
//! It is Szegedy et al. 2016 as TensorFlow's graph of 2015 had it, which differs from others in three ways: average pooling leaves the
//! padding out of the average, the last block takes a maximum where the one before takes an average, and there are 1,008 classes.
//! Features are the average over the last feature map.
//!
//! Deliberately absent: the classifier, and the shallower features that pytorch-fid offers too.

use burn::tensor::{
    Tensor,
    activation::relu,
    module::{avg_pool2d, interpolate, max_pool2d},
    ops::{AvgPoolOptions, InterpolateMode, InterpolateOptions, MaxPoolOptions},
};
use safetensors::SafeTensors;

use super::{
    FeatureError,
    weights::{Conv, Weights, Window},
};

/// The number of features.
pub(super) const DIM: usize = 2048;

/// A tensor that every Inception-v3 has.
pub(super) const MARK: &str = "Mixed_7c.branch_pool.conv.weight";

/// The width and height that pictures are brought to.
const SIZE: usize = 299;

const N_CLASSES: usize = 1008;
const EPSILON: f64 = 1e-3;

/// `Ok` if an Inception is that of the FID and not torchvision's, whose tensors have the same names but for the auxiliary classifier.
pub(super) fn check_fid(tensors: &SafeTensors<'_>) -> Result<(), FeatureError> {
    let auxiliary = tensors.names().into_iter().filter(|name| name.starts_with("AuxLogits.")).min();
    let found = match (auxiliary, tensors.tensor("fc.weight")) {
        (Some(name), _) => format!("it has an auxiliary classifier ({name})"),
        (None, Err(_)) => "it has no fc.weight".to_owned(),
        (None, Ok(view)) if view.shape() != [N_CLASSES, DIM] => format!("its fc.weight has shape {:?}", view.shape()),
        (None, Ok(_)) => return Ok(()),
    };
    Err(FeatureError::OtherInception { found })
}

/// The window of a convolution, by what it does to the picture's size.
#[derive(Debug, Clone, Copy)]
enum Kernel {
    /// Of this height and width, padded so that the size stays.
    Same(usize, usize),
    /// 3×3 without padding: two pixels less.
    Inner,
    /// 3×3 without padding, every second pixel.
    Halve,
}

impl Kernel {
    fn window(self) -> Window {
        match self {
            Self::Same(height, width) => Window { size: [height, width], stride: 1, padding: [height / 2, width / 2] },
            Self::Inner => Window { size: [3, 3], stride: 1, padding: [0, 0] },
            Self::Halve => Window { size: [3, 3], stride: 2, padding: [0, 0] },
        }
    }
}

/// What a branch begins with; all 3×3.
#[derive(Debug, Clone, Copy)]
enum Pool {
    /// Nothing.
    None,
    /// The average, over the picture only and not its padding.
    Average,
    /// The maximum.
    Max,
    /// The maximum at every second pixel, without padding.
    Halve,
}

impl Pool {
    fn forward(self, x: Tensor<4>) -> Tensor<4> {
        let max = MaxPoolOptions::new([3, 3]);
        match self {
            Self::None => x,
            Self::Average => {
                let options = AvgPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
                avg_pool2d(x, options.with_count_include_pad(false))
            }
            Self::Max => max_pool2d(x, max.with_stride([1, 1]).with_padding([1, 1])),
            Self::Halve => max_pool2d(x, max.with_stride([2, 2])),
        }
    }
}

/// A layer's name in its block, its number of channels and its window.
type Layer = (&'static str, usize, Kernel);

/// How a branch is made: a pool, layers one after another, then perhaps layers side by side.
struct Plan<'a>(Pool, &'a [Layer], &'a [Layer]);

/// One way through a block.
#[derive(Debug, Clone)]
struct Branch {
    pool: Pool,
    chain: Vec<Conv>,
    fork: Vec<Conv>,
}

/// Branches side by side, whose channels stand one after another in the output.
#[derive(Debug, Clone)]
struct Block(Vec<Branch>);

impl Block {
    fn forward(&self, x: &Tensor<4>) -> Tensor<4> {
        let mut outputs = Vec::new();
        for Branch { pool, chain, fork } in &self.0 {
            let x = chain.iter().fold(pool.forward(x.clone()), |x, conv| relu(conv.forward(x)));
            if fork.is_empty() {
                outputs.push(x);
            } else {
                outputs.extend(fork.iter().map(|conv| relu(conv.forward(x.clone()))));
            }
        }
        Tensor::cat(outputs, 1)
    }
}

/// Makes one block after another.
struct Builder<'a> {
    weights: &'a Weights<'a>,
    /// The number of channels so far.
    n_channels: usize,
    blocks: Vec<Block>,
}

impl Builder<'_> {
    /// Adds a block; its layers are called `{prefix}{layer}`.
    fn block(&mut self, prefix: &str, plans: &[Plan<'_>]) -> Result<(), FeatureError> {
        let layer = |&(name, to, kernel): &Layer, from: usize| {
            let name = format!("{prefix}{name}");
            self.weights.conv([&format!("{name}.conv"), &format!("{name}.bn")], [from, to], kernel.window(), EPSILON)
        };
        let mut n_channels = 0;
        let mut branches = Vec::new();
        for &Plan(pool, chain_plan, fork_plan) in plans {
            let mut from = self.n_channels;
            let mut chain = Vec::new();
            for plan in chain_plan {
                chain.push(layer(plan, from)?);
                from = plan.1;
            }
            let fork = fork_plan.iter().map(|plan| layer(plan, from)).collect::<Result<Vec<_>, _>>()?;
            n_channels += if fork.is_empty() { from } else { fork_plan.iter().map(|plan| plan.1).sum() };
            branches.push(Branch { pool, chain, fork });
        }
        self.n_channels = n_channels;
        self.blocks.push(Block(branches));
        Ok(())
    }

    /// pytorch-fid's `FIDInceptionA`.
    fn a(&mut self, prefix: &str, n_pooled: usize) -> Result<(), FeatureError> {
        let one = Kernel::Same(1, 1);
        let three = Kernel::Same(3, 3);
        self.block(
            prefix,
            &[
                Plan(Pool::None, &[("branch1x1", 64, one)], &[]),
                Plan(Pool::None, &[("branch5x5_1", 48, one), ("branch5x5_2", 64, Kernel::Same(5, 5))], &[]),
                Plan(
                    Pool::None,
                    &[("branch3x3dbl_1", 64, one), ("branch3x3dbl_2", 96, three), ("branch3x3dbl_3", 96, three)],
                    &[],
                ),
                Plan(Pool::Average, &[("branch_pool", n_pooled, one)], &[]),
            ],
        )
    }

    /// torchvision's `InceptionB`.
    fn b(&mut self, prefix: &str) -> Result<(), FeatureError> {
        let double = [
            ("branch3x3dbl_1", 64, Kernel::Same(1, 1)),
            ("branch3x3dbl_2", 96, Kernel::Same(3, 3)),
            ("branch3x3dbl_3", 96, Kernel::Halve),
        ];
        self.block(
            prefix,
            &[
                Plan(Pool::None, &[("branch3x3", 384, Kernel::Halve)], &[]),
                Plan(Pool::None, &double, &[]),
                Plan(Pool::Halve, &[], &[]),
            ],
        )
    }

    /// pytorch-fid's `FIDInceptionC`.
    fn c(&mut self, prefix: &str, n_inner: usize) -> Result<(), FeatureError> {
        let (one, wide, tall) = (Kernel::Same(1, 1), Kernel::Same(1, 7), Kernel::Same(7, 1));
        let single = [("branch7x7_1", n_inner, one), ("branch7x7_2", n_inner, wide), ("branch7x7_3", 192, tall)];
        let double = [
            ("branch7x7dbl_1", n_inner, one),
            ("branch7x7dbl_2", n_inner, tall),
            ("branch7x7dbl_3", n_inner, wide),
            ("branch7x7dbl_4", n_inner, tall),
            ("branch7x7dbl_5", 192, wide),
        ];
        self.block(
            prefix,
            &[
                Plan(Pool::None, &[("branch1x1", 192, one)], &[]),
                Plan(Pool::None, &single, &[]),
                Plan(Pool::None, &double, &[]),
                Plan(Pool::Average, &[("branch_pool", 192, one)], &[]),
            ],
        )
    }

    /// torchvision's `InceptionD`.
    fn d(&mut self, prefix: &str) -> Result<(), FeatureError> {
        let one = Kernel::Same(1, 1);
        let seven = [
            ("branch7x7x3_1", 192, one),
            ("branch7x7x3_2", 192, Kernel::Same(1, 7)),
            ("branch7x7x3_3", 192, Kernel::Same(7, 1)),
            ("branch7x7x3_4", 192, Kernel::Halve),
        ];
        self.block(
            prefix,
            &[
                Plan(Pool::None, &[("branch3x3_1", 192, one), ("branch3x3_2", 320, Kernel::Halve)], &[]),
                Plan(Pool::None, &seven, &[]),
                Plan(Pool::Halve, &[], &[]),
            ],
        )
    }

    /// pytorch-fid's `FIDInceptionE_1` with an average, `FIDInceptionE_2` with a maximum.
    fn e(&mut self, prefix: &str, pool: Pool) -> Result<(), FeatureError> {
        let (one, wide, tall) = (Kernel::Same(1, 1), Kernel::Same(1, 3), Kernel::Same(3, 1));
        self.block(
            prefix,
            &[
                Plan(Pool::None, &[("branch1x1", 320, one)], &[]),
                Plan(
                    Pool::None,
                    &[("branch3x3_1", 384, one)],
                    &[("branch3x3_2a", 384, wide), ("branch3x3_2b", 384, tall)],
                ),
                Plan(
                    Pool::None,
                    &[("branch3x3dbl_1", 448, one), ("branch3x3dbl_2", 384, Kernel::Same(3, 3))],
                    &[("branch3x3dbl_3a", 384, wide), ("branch3x3dbl_3b", 384, tall)],
                ),
                Plan(pool, &[("branch_pool", 192, one)], &[]),
            ],
        )
    }
}

/// The network.
#[derive(Debug, Clone)]
pub(super) struct Inception {
    blocks: Vec<Block>,
}

impl Inception {
    pub fn load(weights: &Weights<'_>) -> Result<Self, FeatureError> {
        let mut builder = Builder { weights, n_channels: 3, blocks: Vec::new() };
        let stem: [(Pool, &[Layer]); 3] = [
            (
                Pool::None,
                &[
                    ("Conv2d_1a_3x3", 32, Kernel::Halve),
                    ("Conv2d_2a_3x3", 32, Kernel::Inner),
                    ("Conv2d_2b_3x3", 64, Kernel::Same(3, 3)),
                ],
            ),
            (Pool::Halve, &[("Conv2d_3b_1x1", 80, Kernel::Same(1, 1)), ("Conv2d_4a_3x3", 192, Kernel::Inner)]),
            (Pool::Halve, &[]),
        ];
        for (pool, layers) in stem {
            builder.block("", &[Plan(pool, layers, &[])])?;
        }
        for (prefix, n_pooled) in [("Mixed_5b.", 32), ("Mixed_5c.", 64), ("Mixed_5d.", 64)] {
            builder.a(prefix, n_pooled)?;
        }
        builder.b("Mixed_6a.")?;
        for (prefix, n_inner) in [("Mixed_6b.", 128), ("Mixed_6c.", 160), ("Mixed_6d.", 160), ("Mixed_6e.", 192)] {
            builder.c(prefix, n_inner)?;
        }
        builder.d("Mixed_7a.")?;
        builder.e("Mixed_7b.", Pool::Average)?;
        builder.e("Mixed_7c.", Pool::Max)?;
        assert_eq!(builder.n_channels, DIM, "the plans above make 2,048 features");
        Ok(Self { blocks: builder.blocks })
    }

    /// # Shapes
    /// - `pictures`: `[b, 3, h, w]`, from 0 to 255; output: `[b, 2048]`
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<2> {
        let resize = InterpolateOptions::new(InterpolateMode::Bilinear).with_align_corners(false);
        let pictures = interpolate(pictures.div_scalar(255.0), resize.with_output_size([SIZE, SIZE]));
        let pictures = pictures.mul_scalar(2.0).sub_scalar(1.0);
        let x = self.blocks.iter().fold(pictures, |x, block| block.forward(&x));
        let [batch, channels, height, width] = x.dims();
        x.reshape([batch, channels, height * width]).mean_dim(2).reshape([batch, channels])
    }
}
