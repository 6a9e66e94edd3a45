//! The kernels around convolutions and group normalisation as operations of burn's dispatch, with their gradients.

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
use burn_cubecl::{
    cubecl::{
        ir::FloatKind,
        prelude::{ElemType, InputScalar},
    },
    ops::numeric::mul_scalar,
    tensor::CubeTensor,
};

use super::{
    attention,
    product::{ConnectGradient, connect},
    program::dims,
    tokens, update,
};
use crate::kernels::{norm::Activation, tracked::tracked};

/// What a graphics card can do beyond burn's own operations, besides convolutions and group normalisation.
#[backend_extension(Cube, Autodiff)]
pub(in crate::kernels) trait GpuLayerOps: Backend {
    /// `x·weight + bias`; `[…, from]` → `[…, to]`.
    fn gpu_connect(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Layer normalisation over the last dimension.
    fn gpu_normalise_tokens(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self>;

    /// GELU.
    fn gpu_gelu(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Attention of tokens; queries and result `[b, n, width]`, keys and values `[b, m, width]`.
    fn gpu_attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        n_heads: usize,
    ) -> FloatTensor<Self>;

    /// Attention of pixels; queries, keys and values together `[b, 3·c, h, w]`, result `[b, c, h, w]`.
    fn gpu_attend_to_pixels(projected: FloatTensor<Self>, n_heads: usize) -> FloatTensor<Self>;

    /// Twice the width and height, each pixel four times.
    fn gpu_double(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `(x + y)·factor`.
    fn gpu_sum_scaled(x: FloatTensor<Self>, y: FloatTensor<Self>, factor: f64) -> FloatTensor<Self>;
}

impl GpuLayerOps for Cube {
    fn gpu_connect(x: CubeTensor, weight: CubeTensor, bias: CubeTensor) -> CubeTensor {
        connect([x, weight, bias], Activation::None, None)
    }
    fn gpu_normalise_tokens(x: CubeTensor, weight: CubeTensor, bias: CubeTensor, epsilon: f64) -> CubeTensor {
        tokens::normalise(x, weight, bias, epsilon)
    }
    fn gpu_gelu(x: CubeTensor) -> CubeTensor {
        tokens::gelu(x)
    }
    fn gpu_attend(query: CubeTensor, key: CubeTensor, value: CubeTensor, n_heads: usize) -> CubeTensor {
        attention::attend([query, key, value], n_heads)
    }
    fn gpu_attend_to_pixels(projected: CubeTensor, n_heads: usize) -> CubeTensor {
        attention::attend_to_pixels(projected, n_heads)
    }
    fn gpu_double(x: CubeTensor) -> CubeTensor {
        tokens::double(x)
    }
    fn gpu_sum_scaled(x: CubeTensor, y: CubeTensor, factor: f64) -> CubeTensor {
        update::mix(x, y, factor as f32, factor as f32)
    }
}

/// Hands gradients to those that the result came from.
fn register<S, const N: usize>(ops: Ops<S, N>, grads: &mut Gradients, found: [CubeTensor; N]) {
    for (node, gradient) in ops.parents.into_iter().zip(found) {
        if let Some(node) = node {
            grads.register::<Cube>(node.id, gradient);
        }
    }
}

fn given<const N: usize>(nodes: [NodeId; N], checkpointer: &mut Checkpointer) -> [CubeTensor; N] {
    nodes.map(|node| checkpointer.retrieve_node_output(node))
}

#[derive(Debug)]
struct ConnectBackward;

impl Backward<Cube, 3> for ConnectBackward {
    type State = ([NodeId; 3], ());

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let [x, weight, _] = given(ops.state.0, checkpointer);
        let gradient = ConnectGradient::new(x, weight, dy);
        let found: [&dyn Fn() -> CubeTensor; 3] = [&|| gradient.x(), &|| gradient.weight(), &|| gradient.bias()];
        for (node, gradient) in ops.parents.into_iter().zip(found) {
            if let Some(node) = node {
                grads.register::<Cube>(node.id, gradient());
            }
        }
    }
}

#[derive(Debug)]
struct NormaliseBackward;

impl Backward<Cube, 3> for NormaliseBackward {
    type State = ([NodeId; 3], f64);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let [x, weight, _] = given(ops.state.0, checkpointer);
        let found = tokens::normalise_backward(x, weight, ops.state.1, dy);
        register(ops, grads, found);
    }
}

#[derive(Debug)]
struct GeluBackward;

impl Backward<Cube, 1> for GeluBackward {
    type State = ([NodeId; 1], ());

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let [x] = given(ops.state.0, checkpointer);
        register(ops, grads, [tokens::gelu_backward(x, dy)]);
    }
}

#[derive(Debug)]
struct AttendBackward;

impl Backward<Cube, 3> for AttendBackward {
    type State = ([NodeId; 3], usize);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let found = attention::attend_backward(given(ops.state.0, checkpointer), ops.state.1, dy);
        register(ops, grads, found);
    }
}

impl Backward<Cube, 1> for AttendBackward {
    type State = ([NodeId; 1], usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let [projected] = given(ops.state.0, checkpointer);
        let gradient = attention::attend_to_pixels_backward(projected, ops.state.1, dy);
        register(ops, grads, [gradient]);
    }
}

#[derive(Debug)]
struct DoubleBackward;

impl Backward<Cube, 1> for DoubleBackward {
    type State = [usize; 4];

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let gradient = tokens::double_backward(ops.state, dy);
        register(ops, grads, [gradient]);
    }
}

#[derive(Debug)]
struct SumBackward;

impl Backward<Cube, 2> for SumBackward {
    type State = f64;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Cube>(&ops.node);
        let gradient = mul_scalar(dy, InputScalar::new(ops.state, ElemType::Float(FloatKind::F32)));
        register(ops, grads, [gradient.clone(), gradient]);
    }
}

impl<C: CheckpointStrategy> GpuLayerOps for Autodiff<Cube, C> {
    fn gpu_connect(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let y = connect([&x, &weight, &bias].map(|given| given.primitive().clone()), Activation::None, None);
        tracked::<Cube, C, _, _, _>(ConnectBackward, [&x, &weight, &bias], (), y)
    }

    fn gpu_normalise_tokens(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let [given_x, given_weight, given_bias] = [&x, &weight, &bias].map(|tensor| tensor.primitive().clone());
        let y = tokens::normalise(given_x, given_weight, given_bias, epsilon);
        tracked::<Cube, C, _, _, _>(NormaliseBackward, [&x, &weight, &bias], epsilon, y)
    }

    fn gpu_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let y = tokens::gelu(x.primitive().clone());
        tracked::<Cube, C, _, _, _>(GeluBackward, [&x], (), y)
    }

    fn gpu_attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        n_heads: usize,
    ) -> FloatTensor<Self> {
        let y = attention::attend([&query, &key, &value].map(|tensor| tensor.primitive().clone()), n_heads);
        tracked::<Cube, C, _, _, _>(AttendBackward, [&query, &key, &value], n_heads, y)
    }

    fn gpu_attend_to_pixels(projected: FloatTensor<Self>, n_heads: usize) -> FloatTensor<Self> {
        let y = attention::attend_to_pixels(projected.primitive().clone(), n_heads);
        tracked::<Cube, C, _, _, _>(AttendBackward, [&projected], n_heads, y)
    }

    fn gpu_double(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let y = tokens::double(x.primitive().clone());
        match DoubleBackward.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(dims(x.primitive()), y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn gpu_sum_scaled(x: FloatTensor<Self>, y: FloatTensor<Self>, factor: f64) -> FloatTensor<Self> {
        let sum = update::mix(x.primitive().clone(), y.primitive().clone(), factor as f32, factor as f32);
        match SumBackward.prepare::<C>([x.node(), y.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(factor, sum),
            OpsKind::UnTracked(prep) => prep.finish(sum),
        }
    }
}
