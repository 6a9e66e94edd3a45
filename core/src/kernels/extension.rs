//! The kernels as operations of burn's dispatch, with their gradients.

use std::borrow::Cow;

use burn::{
    backend::{
        Autodiff, Backend, Flex, TensorMetadata as _,
        autodiff::{
            NodeId,
            checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind},
        },
        backend_extension,
        flex::FlexTensor,
        tensor::FloatTensor,
    },
    tensor::TensorData,
};

use super::{
    conv::{self, Order},
    conv_backward,
    norm::{self, Activation, Affine},
    packed,
};

/// What the CPU can do beyond burn's own operations.
#[backend_extension(Flex, Autodiff)]
pub(super) trait KernelOps: Backend {
    /// `x ∗ weight + bias`, padded by half the kernel's size.
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        stride: usize,
    ) -> FloatTensor<Self>;

    /// Group normalisation.
    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        groups: usize,
        epsilon: f64,
    ) -> FloatTensor<Self>;

    /// Group normalisation and `SiLU`.
    fn normalise_silu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        groups: usize,
        epsilon: f64,
    ) -> FloatTensor<Self>;

    /// Group normalisation, scale and shift, and `SiLU`.
    fn normalise_modulated_silu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        scale_shift: FloatTensor<Self>,
        groups: usize,
        epsilon: f64,
    ) -> FloatTensor<Self>;
}

/// The numbers of a tensor in their order; copied only if they lie in another.
pub(super) fn values(tensor: &FlexTensor) -> Cow<'_, [f32]> {
    match tensor.as_slice::<f32>() {
        Some(values) => Cow::Borrowed(values),
        None => Cow::Owned(tensor.to_contiguous().as_slice::<f32>().expect("now they lie in order").to_vec()),
    }
}

pub(super) fn tensor(values: Vec<f32>, shape: Vec<usize>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

pub(super) fn dims<const D: usize>(tensor: &FlexTensor) -> [usize; D] {
    let shape = tensor.shape();
    std::array::from_fn(|i| shape[i])
}

fn conv_shape(x: &FlexTensor, weight: &FlexTensor, stride: usize) -> conv::Shape {
    let [batch, from, height, width] = dims(x);
    let [to, weight_from, size, _] = dims(weight);
    assert_eq!(from, weight_from, "the weights are for {weight_from} channels, the pictures have {from}");
    conv::Shape { batch, from, to, height, width, size, stride }
}

fn convolve(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor, stride: usize) -> FlexTensor {
    let shape = conv_shape(x, weight, stride);
    let y = conv::forward(shape, &values(x), &packed::weights(weight, shape, Order::Forward), Some(&values(bias)));
    tensor(y, vec![shape.batch, shape.to, shape.out_height(), shape.out_width()])
}

/// What a normalisation is, but for its tensors.
#[derive(Debug, Clone, Copy)]
struct Norm {
    groups: usize,
    epsilon: f64,
    activation: Activation,
}

impl Norm {
    fn shape(&self, x: &FlexTensor) -> norm::Shape {
        let [batch, channels, height, width] = dims(x);
        norm::Shape { batch, channels, area: height * width, groups: self.groups }
    }

    fn affine<'a>(&self, weight: &'a [f32], bias: &'a [f32], scale_shift: &'a [f32]) -> Affine<'a> {
        Affine { weight, bias, scale_shift, epsilon: self.epsilon as f32, activation: self.activation }
    }

    fn forward(
        &self,
        x: &FlexTensor,
        weight: &FlexTensor,
        bias: &FlexTensor,
        scale_shift: Option<&FlexTensor>,
    ) -> FlexTensor {
        let scale_shift = scale_shift.map(values).unwrap_or_default();
        let (weight, bias) = (values(weight), values(bias));
        let y = norm::forward(self.shape(x), &values(x), self.affine(&weight, &bias, &scale_shift));
        tensor(y, x.shape().to_vec())
    }
}

impl KernelOps for Flex {
    fn convolve(x: FlexTensor, weight: FlexTensor, bias: FlexTensor, stride: usize) -> FlexTensor {
        convolve(&x, &weight, &bias, stride)
    }

    fn normalise(x: FlexTensor, weight: FlexTensor, bias: FlexTensor, groups: usize, epsilon: f64) -> FlexTensor {
        Norm { groups, epsilon, activation: Activation::None }.forward(&x, &weight, &bias, None)
    }

    fn normalise_silu(x: FlexTensor, weight: FlexTensor, bias: FlexTensor, groups: usize, epsilon: f64) -> FlexTensor {
        Norm { groups, epsilon, activation: Activation::Silu }.forward(&x, &weight, &bias, None)
    }

    fn normalise_modulated_silu(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        scale_shift: FlexTensor,
        groups: usize,
        epsilon: f64,
    ) -> FlexTensor {
        Norm { groups, epsilon, activation: Activation::Silu }.forward(&x, &weight, &bias, Some(&scale_shift))
    }
}

#[derive(Debug)]
struct ConvolveBackward;

impl Backward<Flex, 3> for ConvolveBackward {
    /// The input, the weights, and the stride.
    type State = (NodeId, NodeId, usize);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let [node_x, node_weight, node_bias] = ops.parents;
        let dy_tensor = grads.consume::<Flex>(&ops.node);
        let (x, weight, stride) = ops.state;
        let x: FlexTensor = checkpointer.retrieve_node_output(x);
        let weight: FlexTensor = checkpointer.retrieve_node_output(weight);
        let shape = conv_shape(&x, &weight, stride);
        let dy = values(&dy_tensor);
        if let Some(node) = node_x {
            let dx = conv::x_backward(shape, &packed::weights(&weight, shape, Order::Backward), &dy);
            grads.register::<Flex>(node.id, tensor(dx, x.shape().to_vec()));
        }
        if let Some(node) = node_weight {
            let dw = conv_backward::w_backward(shape, &values(&x), &dy);
            grads.register::<Flex>(node.id, tensor(dw, weight.shape().to_vec()));
        }
        if let Some(node) = node_bias {
            grads.register::<Flex>(node.id, tensor(conv_backward::bias_backward(shape, &dy), vec![shape.to]));
        }
    }
}

#[derive(Debug)]
struct NormBackward;

impl NormBackward {
    fn run(
        norm: Norm,
        x: &FlexTensor,
        weight: &FlexTensor,
        bias: &FlexTensor,
        scale_shift: Option<&FlexTensor>,
        dy: &FlexTensor,
    ) -> norm::Gradients {
        let scale_shift = scale_shift.map(values).unwrap_or_default();
        let (weight, bias) = (values(weight), values(bias));
        norm::backward(norm.shape(x), &values(x), norm.affine(&weight, &bias, &scale_shift), &values(dy))
    }
}

impl Backward<Flex, 3> for NormBackward {
    /// The input, weight and bias.
    type State = ([NodeId; 3], Norm);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let (given, norm) = ops.state;
        let [x, weight, bias] = given.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        let gradients = Self::run(norm, &x, &weight, &bias, None, &dy);
        let found = [(gradients.x, x), (gradients.weight, weight), (gradients.bias, bias)];
        for (node, (gradient, of)) in ops.parents.into_iter().zip(found) {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, tensor(gradient, of.shape().to_vec()));
            }
        }
    }
}

impl Backward<Flex, 4> for NormBackward {
    /// The input, weight, bias, and scale and shift.
    type State = ([NodeId; 4], Norm);

    fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let (given, norm) = ops.state;
        let [x, weight, bias, scale_shift] = given.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        let gradients = Self::run(norm, &x, &weight, &bias, Some(&scale_shift), &dy);
        let found = [
            (gradients.x, x),
            (gradients.weight, weight),
            (gradients.bias, bias),
            (gradients.scale_shift, scale_shift),
        ];
        for (node, (gradient, of)) in ops.parents.into_iter().zip(found) {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, tensor(gradient, of.shape().to_vec()));
            }
        }
    }
}

impl<C: CheckpointStrategy> KernelOps for Autodiff<Flex, C> {
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        stride: usize,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let y = convolve(x.primitive(), weight.primitive(), bias.primitive(), stride);
        match ConvolveBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = (prep.checkpoint(&x), prep.checkpoint(&weight), stride);
                prep.finish(state, y)
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn normalise(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        groups: usize,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        plain_norm::<C>(x, weight, bias, Norm { groups, epsilon, activation: Activation::None })
    }

    fn normalise_silu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        groups: usize,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        plain_norm::<C>(x, weight, bias, Norm { groups, epsilon, activation: Activation::Silu })
    }

    fn normalise_modulated_silu(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        scale_shift: FloatTensor<Self>,
        groups: usize,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let norm = Norm { groups, epsilon, activation: Activation::Silu };
        let nodes = [x.node(), weight.node(), bias.node(), scale_shift.node()];
        let y = norm.forward(x.primitive(), weight.primitive(), bias.primitive(), Some(scale_shift.primitive()));
        match Backward::<Flex, 4>::prepare::<C>(NormBackward, nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let given = [&x, &weight, &bias, &scale_shift].map(|tensor| prep.checkpoint(tensor));
                prep.finish((given, norm), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }
}

fn plain_norm<C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<Flex, C>>,
    weight: FloatTensor<Autodiff<Flex, C>>,
    bias: FloatTensor<Autodiff<Flex, C>>,
    norm: Norm,
) -> FloatTensor<Autodiff<Flex, C>> {
    let y = norm.forward(x.primitive(), weight.primitive(), bias.primitive(), None);
    match Backward::<Flex, 3>::prepare::<C>(NormBackward, [x.node(), weight.node(), bias.node()])
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(mut prep) => {
            let given = [&x, &weight, &bias].map(|tensor| prep.checkpoint(tensor));
            prep.finish((given, norm), y)
        }
        OpsKind::UnTracked(prep) => prep.finish(y),
    }
}
