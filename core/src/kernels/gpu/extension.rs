//! The kernels as operations of burn's dispatch, with their gradients.

use burn::backend::{
    Autodiff, Backend, Cube,
    autodiff::{
        NodeId,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    tensor::FloatTensor,
};
use burn_cubecl::tensor::CubeTensor;

use super::{
    conv, histogram,
    norm::{Given, Norm},
    product::{Onto, connect},
    program::{dims, in_order},
    step, tokens,
    update::{self, AdamNumbers},
};
use crate::kernels::{norm::Activation, step::StepNumbers};

/// What needs no gradients: what happens to parameters and to states, and layers with what follows them where nobody learns.
#[backend_extension(Cube)]
pub(in crate::kernels) trait GpuWithoutGradients: Backend {
    /// One step of Adam: the next weight, its moments, and its average.
    fn gpu_adam(
        weight: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        average: FloatTensor<Self>,
        numbers: AdamNumbers,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// `a·x + b·y`.
    fn gpu_mix(x: FloatTensor<Self>, y: FloatTensor<Self>, a: f32, b: f32) -> FloatTensor<Self>;

    /// Adds the squares of all numbers of `x` to `sums`, some to each.
    fn gpu_add_squares(sums: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The end of a sampler's step: the clipped estimate and the next state.
    fn gpu_finish_step(
        estimate: FloatTensor<Self>,
        x_t: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        numbers: StepNumbers,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// `SiLU(x·weight + bias)`; `[…, from]` → `[…, to]`.
    fn gpu_connect_silu(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `onto + x·weight + bias`; `[…, from]` → `[…, to]`.
    fn gpu_connect_onto(
        onto: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// `(onto + x ∗ weight + bias)·scale`, padded by half the kernel's size.
    fn gpu_convolve_onto(
        onto: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        stride: usize,
        scale: f32,
    ) -> FloatTensor<Self>;

    /// The channels of both, `[b, c + d, …]`.
    fn gpu_join(first: FloatTensor<Self>, second: FloatTensor<Self>) -> FloatTensor<Self>;

    /// How many numbers fall into each of `n_bins` between ±`limit`, and last, how many into none.
    fn gpu_histogram(x: FloatTensor<Self>, n_bins: usize, limit: f32) -> FloatTensor<Self>;
}

impl GpuWithoutGradients for Cube {
    fn gpu_adam(
        weight: CubeTensor,
        gradient: CubeTensor,
        first: CubeTensor,
        second: CubeTensor,
        average: CubeTensor,
        numbers: AdamNumbers,
    ) -> (CubeTensor, CubeTensor, CubeTensor, CubeTensor) {
        update::adam(weight, gradient, [first, second, average], numbers).into()
    }

    fn gpu_mix(x: CubeTensor, y: CubeTensor, a: f32, b: f32) -> CubeTensor {
        update::mix(x, y, a, b)
    }

    fn gpu_add_squares(sums: CubeTensor, x: CubeTensor) -> CubeTensor {
        update::add_squares(sums, x)
    }

    fn gpu_finish_step(
        estimate: CubeTensor,
        x_t: CubeTensor,
        first: CubeTensor,
        second: CubeTensor,
        numbers: StepNumbers,
    ) -> (CubeTensor, CubeTensor) {
        step::finish(estimate, x_t, [first, second], numbers).into()
    }

    fn gpu_connect_silu(x: CubeTensor, weight: CubeTensor, bias: CubeTensor) -> CubeTensor {
        connect([x, weight, bias], Activation::Silu, None)
    }

    fn gpu_connect_onto(onto: CubeTensor, x: CubeTensor, weight: CubeTensor, bias: CubeTensor) -> CubeTensor {
        connect([x, weight, bias], Activation::None, Some(onto))
    }

    fn gpu_convolve_onto(
        onto: CubeTensor,
        x: CubeTensor,
        weight: CubeTensor,
        bias: CubeTensor,
        stride: usize,
        scale: f32,
    ) -> CubeTensor {
        let onto = in_order(onto);
        conv::forward_onto(x, weight, bias, stride, Some(Onto { tensor: &onto, scale }))
    }

    fn gpu_join(first: CubeTensor, second: CubeTensor) -> CubeTensor {
        tokens::join(first, second)
    }

    fn gpu_histogram(x: CubeTensor, n_bins: usize, limit: f32) -> CubeTensor {
        histogram::histogram(x, n_bins, limit)
    }
}

/// What a graphics card can do beyond burn's own operations.
#[backend_extension(Cube, Autodiff)]
pub(in crate::kernels) trait GpuOps: Backend {
    /// `x ∗ weight + bias`, padded by half the kernel's size.
    fn gpu_convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        stride: usize,
    ) -> FloatTensor<Self>;

    /// Group normalisation.
    fn gpu_normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self>;

    /// Group normalisation, scale and shift.
    fn gpu_normalise_modulated(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        scale_shift: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self>;
}

impl GpuOps for Cube {
    fn gpu_convolve(x: CubeTensor, weight: CubeTensor, bias: CubeTensor, stride: usize) -> CubeTensor {
        conv::forward(x, weight, bias, stride)
    }

    fn gpu_normalise(x: CubeTensor, weight: CubeTensor, bias: CubeTensor, norm: Norm) -> CubeTensor {
        norm.forward(Given { x, weight, bias, scale_shift: None })
    }

    fn gpu_normalise_modulated(
        x: CubeTensor,
        weight: CubeTensor,
        bias: CubeTensor,
        scale_shift: CubeTensor,
        norm: Norm,
    ) -> CubeTensor {
        norm.forward(Given { x, weight, bias, scale_shift: Some(scale_shift) })
    }
}

#[derive(Debug)]
struct ConvolveBackward;

impl Backward<Cube, 3> for ConvolveBackward {
    /// The input, the weights, and the stride.
    type State = (NodeId, NodeId, usize);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let [node_x, node_weight, node_bias] = ops.parents;
        let dy = grads.consume::<Cube>(&ops.node);
        let (x, weight, stride) = ops.state;
        let x: CubeTensor = checkpointer.retrieve_node_output(x);
        let weight: CubeTensor = checkpointer.retrieve_node_output(weight);
        let (x_dims, weight_dims) = (dims(&x), dims(&weight));
        if let Some(node) = node_x {
            grads.register::<Cube>(node.id, conv::x_backward(x_dims, weight, dy.clone(), stride));
        }
        if let Some(node) = node_weight {
            grads.register::<Cube>(node.id, conv::w_backward(x, weight_dims, dy.clone(), stride));
        }
        if let Some(node) = node_bias {
            grads.register::<Cube>(node.id, conv::bias_backward(dy));
        }
    }
}

#[derive(Debug)]
struct NormBackward;

impl Backward<Cube, 3> for NormBackward {
    /// The input, weight and bias.
    type State = ([NodeId; 3], Norm);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let (given, norm) = ops.state;
        let [x, weight, bias] = given.map(|node| checkpointer.retrieve_node_output::<CubeTensor>(node));
        let found = norm.backward(Given { x, weight, bias, scale_shift: None }, dy);
        for (node, gradient) in ops.parents.into_iter().zip([found.x, found.weight, found.bias]) {
            if let Some(node) = node {
                grads.register::<Cube>(node.id, gradient);
            }
        }
    }
}

impl Backward<Cube, 4> for NormBackward {
    /// The input, weight, bias, and scale and shift.
    type State = ([NodeId; 4], Norm);

    fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let (given, norm) = ops.state;
        let [x, weight, bias, scale_shift] = given.map(|node| checkpointer.retrieve_node_output::<CubeTensor>(node));
        let found = norm.backward(Given { x, weight, bias, scale_shift: Some(scale_shift) }, dy);
        for (node, gradient) in ops.parents.into_iter().zip([found.x, found.weight, found.bias, found.scale_shift]) {
            if let Some(node) = node {
                grads.register::<Cube>(node.id, gradient);
            }
        }
    }
}

impl<C: CheckpointStrategy> GpuOps for Autodiff<Cube, C> {
    fn gpu_convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        stride: usize,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let y = conv::forward(x.primitive().clone(), weight.primitive().clone(), bias.primitive().clone(), stride);
        match ConvolveBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = (prep.checkpoint(&x), prep.checkpoint(&weight), stride);
                prep.finish(state, y)
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn gpu_normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [given_x, given_weight, given_bias] = [&x, &weight, &bias].map(|tensor| tensor.primitive().clone());
        let y = norm.forward(Given { x: given_x, weight: given_weight, bias: given_bias, scale_shift: None });
        match Backward::<Cube, 3>::prepare::<C>(NormBackward, nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let given = [&x, &weight, &bias].map(|tensor| prep.checkpoint(tensor));
                prep.finish((given, norm), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn gpu_normalise_modulated(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        scale_shift: FloatTensor<Self>,
        norm: Norm,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node(), scale_shift.node()];
        let [given_x, given_weight, given_bias, given_scale_shift] =
            [&x, &weight, &bias, &scale_shift].map(|tensor| tensor.primitive().clone());
        let given = Given { x: given_x, weight: given_weight, bias: given_bias, scale_shift: Some(given_scale_shift) };
        let y = norm.forward(given);
        match Backward::<Cube, 4>::prepare::<C>(NormBackward, nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let given = [&x, &weight, &bias, &scale_shift].map(|tensor| prep.checkpoint(tensor));
                prep.finish((given, norm), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }
}
