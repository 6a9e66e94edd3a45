//! Our own kernels, each beside a twin in plain tensor operations.
//!
//! The functions here and in `layers` take any device: on the CPU they run the kernels, on a graphics card those of `gpu`, elsewhere (and wherever a
//! kernel does not fit the shapes) the twin, burn's own operations. `extension` and `layer_ops` tie the kernels into burn's dispatch and its gradients.
//!
//! | kernel | what it does |
//! |---|---|
//! | `conv`, `conv_backward`, `packed` | convolutions, their gradients, their weights as they want them |
//! | `winograd` | those of 3 × 3 taps with a quarter of the multiplications |
//! | `norm` | group normalisation with all that follows it |
//! | `product` | matrix products: linear layers, convolutions of one pixel |
//! | `attention` | attention of tokens and of pixels |
//! | `tokens`, `planes` | what happens to each token, and to each plane of pixels |
//! | `adam` | a step of training, for each weight |
//! | `step` | the end of a sampler's step |
//! | `fused` | layers with what follows them, joined tensors |
//! | `histogram` | how analog bits are spread, without reading them back |
//! | `exp`, `vectors` | functions and loops in vectors |
//! | `gpu` | all of these in WGSL, and pictures for a screen that never leave the card |
//!
//! Deliberately absent: anything a network could not do without. Every result is that of the twin, up to rounding.

mod adam;
mod attention;
mod conv;
mod conv_backward;
mod exp;
mod extension;
mod fused;
mod gpu;
mod histogram;
mod layer_ops;
mod layers;
mod norm;
mod packed;
mod planes;
mod product;
mod step;
mod tokens;
mod tracked;
mod vectors;
mod winograd;

use std::cell::Cell;

use burn::{
    backend::Dispatch,
    nn::{GroupNorm, conv::Conv2d},
    tensor::{Device, Tensor, activation::silu},
};

pub use self::adam::{Learner, Learning, sum_of_squares};
use self::{extension::KernelOps, norm::Activation};
pub use self::{
    fused::{conv2d_onto, join, linear_onto, linear_silu},
    histogram::histogram,
    layers::{TOKEN_EPSILON, attention, attention_to_pixels, double, gelu, layer_norm, linear, sum_scaled},
    step::{MOST_OTHERS, finish_step},
};
pub(crate) use self::{
    gpu::{Pixels, pixels},
    step::mix,
};

thread_local! {
    static TWINS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `run` with the twins in place of the kernels, on this thread: what the kernels are compared with.
pub fn with_twins<T>(run: impl FnOnce() -> T) -> T {
    let before = TWINS.replace(true);
    let result = run();
    TWINS.set(before);
    result
}

/// `x ∗ weight + bias` with a layer's settings.
///
/// # Shapes
/// - `x`: `[b, from, h, w]`; output: `[b, to, h/stride, w/stride]`
#[must_use]
pub fn conv2d(layer: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    if let (true, true, Some(bias)) = (fits(layer), gpu::has(&x), &layer.bias) {
        return gpu::conv2d(layer, bias.val(), x);
    }
    let (true, true, Some(bias)) = (fits(layer), is_on_cpu(&x), &layer.bias) else {
        return layer.forward(x);
    };
    let [weight, bias] = [layer.weight.val().into_dispatch(), bias.val().into_dispatch()];
    Tensor::from_dispatch(Dispatch::convolve(x.into_dispatch(), weight, bias, layer.stride[0]))
}

/// Whether there are kernels for a layer's settings.
fn fits(layer: &Conv2d) -> bool {
    let [size, other] = layer.kernel_size;
    let [stride, stride_other] = layer.stride;
    size == other
        && stride == stride_other
        && matches!((size, stride), (1 | 3, 1) | (3, 2))
        && layer.dilation == [1, 1]
        && layer.groups == 1
}

/// Group normalisation alone.
#[must_use]
pub fn group_norm(layer: &GroupNorm, x: Tensor<4>) -> Tensor<4> {
    if let Some(y) = gpu::group_norm(layer, &x, None, Activation::None) {
        return y;
    }
    match parameters(layer, &x) {
        None => layer.forward(x),
        Some((weight, bias)) => {
            let [x, weight, bias] = [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()];
            Tensor::from_dispatch(Dispatch::normalise(x, weight, bias, layer.num_groups, layer.epsilon))
        }
    }
}

/// Group normalisation and then `SiLU`.
#[must_use]
pub fn group_norm_silu(layer: &GroupNorm, x: Tensor<4>) -> Tensor<4> {
    if let Some(y) = gpu::group_norm(layer, &x, None, Activation::Silu) {
        return y;
    }
    match parameters(layer, &x) {
        None => silu(layer.forward(x)),
        Some((weight, bias)) => {
            let [x, weight, bias] = [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()];
            Tensor::from_dispatch(Dispatch::normalise_silu(x, weight, bias, layer.num_groups, layer.epsilon))
        }
    }
}

/// Group normalisation, `·(1 + scale) + shift`, and then `SiLU`.
///
/// # Shapes
/// - `x`: `[b, c, h, w]`; `scale_shift`: `[b, 2·c]`, all scales first
#[must_use]
pub fn group_norm_modulated_silu(layer: &GroupNorm, x: Tensor<4>, scale_shift: Tensor<2>) -> Tensor<4> {
    if let Some(y) = gpu::group_norm(layer, &x, Some(&scale_shift), Activation::Silu) {
        return y;
    }
    match parameters(layer, &x) {
        None => {
            let [batch, channels, ..] = x.dims();
            let parts = scale_shift.reshape([batch, 2 * channels, 1, 1]).chunk(2, 1);
            silu(layer.forward(x) * (parts[0].clone() + 1.0) + parts[1].clone())
        }
        Some((weight, bias)) => {
            let [x, weight, bias] = [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()];
            let scale_shift = scale_shift.into_dispatch();
            let y = Dispatch::normalise_modulated_silu(x, weight, bias, scale_shift, layer.num_groups, layer.epsilon);
            Tensor::from_dispatch(y)
        }
    }
}

/// Weight and bias of a layer, if the kernel can be used.
fn parameters(layer: &GroupNorm, x: &Tensor<4>) -> Option<(Tensor<1>, Tensor<1>)> {
    let weights = layer.gamma.as_ref().zip(layer.beta.as_ref());
    weights.filter(|_| is_on_cpu(x)).map(|(weight, bias)| (weight.val(), bias.val()))
}

/// Does work as one of the threads that share the CPU's kernels, if it is for the CPU: called from any other thread, each of a network's many small
/// operations would have to wake them up and wait for them.
pub(crate) fn on_the_cores<R: Send>(device: &Device, work: impl FnOnce() -> R + Send) -> R {
    if device.clone().inner() == Device::flex() { rayon::scope(|_| work()) } else { work() }
}

fn is_on_cpu<const D: usize>(x: &Tensor<D>) -> bool {
    !TWINS.get() && x.device().inner() == Device::flex()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use burn::{
        nn::{GroupNormConfig, PaddingConfig2d, conv::Conv2dConfig},
        tensor::Gradients,
    };

    /// A device on which gradients are kept.
    pub fn device() -> Device {
        Device::flex().autodiff()
    }

    pub fn normal<const D: usize>(seed: u64, shape: [usize; D]) -> Tensor<D> {
        Rng::new(seed).normal_tensor(shape, &device()).require_grad()
    }

    #[track_caller]
    pub fn assert_close<const D: usize>(ours: Tensor<D>, twin: Tensor<D>, what: &str) {
        assert_eq!(ours.dims(), twin.dims(), "{what}");
        let [ours, twin]: [Vec<f32>; 2] = [ours, twin].map(|tensor| tensor.into_data().try_to_vec().unwrap());
        // Sums of a few hundred numbers near 1, in another order.
        let limit = 1e-4 * twin.iter().fold(1.0, |max: f32, v| max.max(v.abs()));
        for (i, (a, b)) in ours.iter().zip(&twin).enumerate() {
            assert!((a - b).abs() <= limit, "{what}: element {i} is {a}, the twin says {b}");
        }
    }

    /// The gradients of `Σ y·r` for a fixed random r.
    pub fn backward<const D: usize>(y: Tensor<D>) -> Gradients {
        let r = Rng::new(99).normal_tensor(y.dims(), &device());
        (y * r).sum().backward()
    }

    #[track_caller]
    pub fn assert_same_gradient<const D: usize>(of: &Tensor<D>, ours: &Gradients, twin: &Gradients, what: &str) {
        let [ours, twin] = [ours, twin].map(|gradients| of.grad(gradients).expect("the result depends on it"));
        assert_close(ours, twin, what);
    }

    #[test]
    fn convolutions_agree_with_their_twin() {
        // [batch, from, to, height, width], kernel, stride; sizes that do and do not fill vectors and tiles.
        let cases = [
            ([2, 3, 5, 6, 6], 3, 1),
            ([1, 4, 33, 7, 7], 3, 1),
            ([2, 5, 40, 16, 16], 3, 2),
            ([3, 11, 40, 8, 8], 1, 1),
            ([1, 8, 16, 5, 3], 1, 1),
            ([2, 3, 20, 9, 13], 3, 1),
            ([1, 3, 8, 4, 4], 3, 2),
            ([1, 2, 70, 1, 1], 3, 1),
            ([1, 3, 9, 15, 15], 3, 2),
            // By Winograd's trick, there, back, and for the weights.
            ([2, 16, 40, 8, 8], 3, 1),
            ([2, 20, 16, 16, 16], 3, 2),
            ([4, 17, 33, 15, 17], 3, 1),
        ];
        for (shape @ [batch, from, to, height, width], size, stride) in cases {
            let padding = size / 2;
            let mut layer = Conv2dConfig::new([from, to], [size, size])
                .with_stride([stride, stride])
                .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
                .init(&device());
            layer.bias = layer.bias.map(|bias| bias.map(|_| normal(3, [to])));
            let what = format!("{shape:?}, kernel {size}, stride {stride}");
            let x = normal(1, [batch, from, height, width]);
            let (ours, twin) = (conv2d(&layer, x.clone()), layer.forward(x.clone()));
            assert_close(ours.clone(), twin.clone(), &what);
            let (ours, twin) = (backward(ours), backward(twin));
            assert_same_gradient(&x, &ours, &twin, &format!("{what}, gradient of x"));
            assert_same_gradient(&layer.weight.val(), &ours, &twin, &format!("{what}, gradient of the weights"));
            let bias = layer.bias.as_ref().unwrap().val();
            assert_same_gradient(&bias, &ours, &twin, &format!("{what}, gradient of the bias"));
        }
    }

    #[test]
    fn a_convolution_takes_tensors_in_any_order() {
        let layer = Conv2dConfig::new([3, 4], [1, 1]).init(&Device::flex());
        let x = Rng::new(1).normal_tensor([2, 5, 6, 3], &Device::flex()).permute([0, 3, 1, 2]).narrow(0, 1, 1);
        assert_close(conv2d(&layer, x.clone()), layer.forward(x), "permuted and cut");
    }

    #[test]
    fn normalisations_agree_with_their_twin() {
        for (shape @ [batch, channels, ..], groups) in [([2, 8, 3, 3], 2), ([1, 32, 8, 8], 8), ([3, 6, 1, 5], 1)] {
            let mut layer = GroupNormConfig::new(groups, channels).init(&device());
            layer.gamma = layer.gamma.map(|gamma| gamma.map(|_| normal(3, [channels])));
            layer.beta = layer.beta.map(|beta| beta.map(|_| normal(4, [channels])));
            let (weight, bias) = (layer.gamma.as_ref().unwrap().val(), layer.beta.as_ref().unwrap().val());
            let x = normal(1, shape);
            let scale_shift = normal(2, [batch, 2 * channels]);
            // A graph is used up by its gradients, so each result has its own.
            let plain = || layer.forward(x.clone());
            let modulated = || {
                let parts = scale_shift.clone().reshape([batch, 2 * channels, 1, 1]).chunk(2, 1);
                silu(plain() * (parts[0].clone() + 1.0) + parts[1].clone())
            };
            let pairs = [
                ("norm", group_norm(&layer, x.clone()), plain()),
                ("norm, silu", group_norm_silu(&layer, x.clone()), silu(plain())),
                ("modulated", group_norm_modulated_silu(&layer, x.clone(), scale_shift.clone()), modulated()),
            ];
            for (name, ours, twin) in pairs {
                let what = format!("{name} of {shape:?} in {groups} groups");
                assert_close(ours.clone(), twin.clone(), &what);
                let (ours, twin) = (backward(ours), backward(twin));
                assert_same_gradient(&x, &ours, &twin, &format!("{what}, gradient of x"));
                assert_same_gradient(&weight, &ours, &twin, &format!("{what}, gradient of the weight"));
                assert_same_gradient(&bias, &ours, &twin, &format!("{what}, gradient of the bias"));
                if name == "modulated" {
                    assert_same_gradient(&scale_shift, &ours, &twin, &format!("{what}, gradient of scale and shift"));
                }
            }
        }
    }
}
