//! The kernels for graphics cards: WGSL from `shaders/`, in burn's own queue.
//!
//! `program` turns a shader into something that burn can launch; `conv`, `winograd`, `norm`, `product`, `attention`, `tokens`, `step`, `histogram`, `pixels` and `update` know which
//! shaders make up an operation; `extension` and `layer_ops` tie the operations into burn's dispatch and its gradients.
//!
//! Deliberately absent: anything that a card may lack. The shaders keep to what WebGPU guarantees: 16 KB of shared memory, 256 invocations
//! a workgroup, 8 buffers, no subgroups.

mod attention;
mod conv;
mod extension;
mod histogram;
mod kept;
mod layer_ops;
mod norm;
mod pixels;
mod pointwise;
mod product;
mod program;
mod step;
mod tokens;
mod update;
mod winograd;
mod written_out;

use burn::{
    backend::{CubeDevice, Dispatch, DispatchDevice},
    nn::{GroupNorm, conv::Conv2d},
    tensor::{DType, Tensor},
};

pub(crate) use self::pixels::{Pixels, pixels};
use self::{extension::GpuOps, norm::Norm};
pub(super) use self::{extension::GpuWithoutGradients, layer_ops::GpuLayerOps, update::AdamNumbers};
use super::{TWINS, norm::Activation};

/// Whether a tensor lies where the shaders can be used, and they are wanted.
pub(super) fn has<const D: usize>(x: &Tensor<D>) -> bool {
    let is_wgpu = matches!(x.device().inner().as_dispatch(), DispatchDevice::Cube(CubeDevice::Wgpu(_)));
    !TWINS.get() && is_wgpu && x.dtype() == DType::F32 && x.dims().iter().all(|&size| size > 0)
}

/// `x ∗ weight + bias`, for a layer that fits.
pub(super) fn conv2d(layer: &Conv2d, bias: Tensor<1>, x: Tensor<4>) -> Tensor<4> {
    let [x, weight, bias] = [x.into_dispatch(), layer.weight.val().into_dispatch(), bias.into_dispatch()];
    Tensor::from_dispatch(Dispatch::gpu_convolve(x, weight, bias, layer.stride[0]))
}

/// Group normalisation, `·(1 + scale) + shift` if given, and the activation; `None` where the shaders cannot be used.
pub(super) fn group_norm(
    layer: &GroupNorm,
    x: &Tensor<4>,
    scale_shift: Option<&Tensor<2>>,
    activation: Activation,
) -> Option<Tensor<4>> {
    let (weight, bias) = layer.gamma.as_ref().zip(layer.beta.as_ref()).filter(|_| has(x))?;
    let norm = Norm { groups: layer.num_groups, epsilon: layer.epsilon, activation };
    let [x, weight, bias] = [x.clone().into_dispatch(), weight.val().into_dispatch(), bias.val().into_dispatch()];
    Some(Tensor::from_dispatch(match scale_shift {
        None => Dispatch::gpu_normalise(x, weight, bias, norm),
        Some(scale_shift) => {
            Dispatch::gpu_normalise_modulated(x, weight, bias, scale_shift.clone().into_dispatch(), norm)
        }
    }))
}
