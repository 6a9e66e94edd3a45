//! Layers together with what follows them, and tensors joined: on a graphics card in one launch where nobody learns from it, elsewhere one after the other.
//!
//! Deliberately absent: gradients. Where they are wanted, the parts have their own.

use burn::{
    backend::Dispatch,
    nn::{Linear, conv::Conv2d},
    tensor::{Tensor, activation::silu},
};

use super::{
    conv2d, fits,
    gpu::{self, GpuWithoutGradients as _},
    linear, sum_scaled,
};

/// Whether one launch can do it.
fn at_once<const D: usize>(x: &Tensor<D>) -> bool {
    !x.is_autodiff() && gpu::has(x)
}

/// The channels of both.
///
/// # Shapes
/// - `first`: `[b, c, …]`; `second`: `[b, d, …]`; output: `[b, c + d, …]`
#[must_use]
pub fn join<const D: usize>(first: Tensor<D>, second: Tensor<D>) -> Tensor<D> {
    if !at_once(&first) {
        return Tensor::cat(vec![first, second], 1);
    }
    Tensor::from_dispatch(Dispatch::gpu_join(first.into_dispatch(), second.into_dispatch()))
}

/// `SiLU(x·weight + bias)`.
///
/// # Shapes
/// - `x`: `[…, from]`; output: `[…, to]`
#[must_use]
pub fn linear_silu<const D: usize>(layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    let (true, Some(bias)) = (at_once(&x), &layer.bias) else {
        return silu(linear(layer, x));
    };
    let [weight, bias] = [layer.weight.val().into_dispatch(), bias.val().into_dispatch()];
    Tensor::from_dispatch(Dispatch::gpu_connect_silu(x.into_dispatch(), weight, bias))
}

/// `onto + x·weight + bias`.
///
/// # Shapes
/// - `x`: `[…, from]`; `onto` and output: `[…, to]`
#[must_use]
pub fn linear_onto<const D: usize>(onto: Tensor<D>, layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    let (true, Some(bias)) = (at_once(&x), &layer.bias) else {
        return onto + linear(layer, x);
    };
    let [weight, bias] = [layer.weight.val().into_dispatch(), bias.val().into_dispatch()];
    Tensor::from_dispatch(Dispatch::gpu_connect_onto(onto.into_dispatch(), x.into_dispatch(), weight, bias))
}

/// `(onto + x ∗ weight + bias)·scale`, with a layer's settings.
///
/// # Shapes
/// - `x`: `[b, from, h, w]`; `onto` and output: `[b, to, h/stride, w/stride]`
#[must_use]
pub fn conv2d_onto(onto: Tensor<4>, layer: &Conv2d, x: Tensor<4>, scale: f64) -> Tensor<4> {
    let (true, Some(bias)) = (at_once(&x) && fits(layer), &layer.bias) else {
        return sum_scaled(onto, conv2d(layer, x), scale);
    };
    let [onto, x] = [onto, x].map(Tensor::into_dispatch);
    let [weight, bias] = [layer.weight.val().into_dispatch(), bias.val().into_dispatch()];
    Tensor::from_dispatch(Dispatch::gpu_convolve_onto(onto, x, weight, bias, layer.stride[0], scale as f32))
}
