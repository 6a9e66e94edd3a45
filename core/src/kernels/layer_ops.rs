//! Kernels for everything around convolutions and group normalisation as operations of burn's dispatch, with their gradients.

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
    tensor::Shape,
};

use super::{
    attention::{self, Order},
    extension::{dims, tensor, values},
    packed, planes,
    product::{Bias, Matrix, product, product_with},
    tokens,
    tracked::tracked,
};

/// What the CPU can do beyond burn's own operations, besides convolutions and group normalisation.
#[backend_extension(Flex, Autodiff)]
pub(super) trait LayerOps: Backend {
    /// `x·weight + bias`; `[…, from]` → `[…, to]`.
    fn connect(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Layer normalisation over the last dimension.
    fn normalise_tokens(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self>;

    /// GELU.
    fn gelu_tokens(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Attention of tokens; queries and result `[b, n, width]`, keys and values `[b, m, width]`.
    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        n_heads: usize,
    ) -> FloatTensor<Self>;

    /// Attention of pixels; queries, keys and values together `[b, 3·c, h, w]`, result `[b, c, h, w]`.
    fn attend_to_pixels(projected: FloatTensor<Self>, n_heads: usize) -> FloatTensor<Self>;

    /// Twice the width and height, each pixel four times.
    fn double(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `(x + y)·factor`.
    fn sum_scaled(x: FloatTensor<Self>, y: FloatTensor<Self>, factor: f64) -> FloatTensor<Self>;
}

fn connect(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor) -> FlexTensor {
    let [from, to] = dims(weight);
    let (x_values, weight, bias) = (values(x), packed::panels(weight), values(bias));
    let rows = x_values.len() / from;
    let y = product_with([rows, from, to], Matrix::rows(&x_values, from), &weight, Bias::PerColumn(&bias));
    let mut shape = x.shape().to_vec();
    shape.last_mut().map(|last| *last = to).expect("at least one dimension");
    tensor(y, shape)
}

fn normalise_tokens(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor, epsilon: f64) -> FlexTensor {
    let y = tokens::normalise(&values(x), &values(weight), &values(bias), epsilon as f32);
    tensor(y, x.shape().to_vec())
}

fn gelu_tokens(x: &FlexTensor) -> FlexTensor {
    tensor(tokens::gelu(&values(x)), x.shape().to_vec())
}

fn token_shape(query: &FlexTensor, key: &FlexTensor, n_heads: usize) -> attention::Shape {
    let [batch, n_queries, width] = dims(query);
    let [_, n_keys, _] = dims(key);
    attention::Shape { batch, n_heads, width, n_queries, n_keys, order: Order::Tokens }
}

fn attend(query: &FlexTensor, key: &FlexTensor, value: &FlexTensor, n_heads: usize) -> FlexTensor {
    let shape = token_shape(query, key, n_heads);
    let y = attention::forward(shape, &values(query), &values(key), &values(value));
    tensor(y, query.shape().to_vec())
}

fn pixel_shape(projected: &FlexTensor, n_heads: usize) -> attention::Shape {
    let [batch, channels, height, width] = dims(projected);
    let n = height * width;
    attention::Shape { batch, n_heads, width: channels / 3, n_queries: n, n_keys: n, order: Order::Channels }
}

fn attend_to_pixels(projected: &FlexTensor, n_heads: usize) -> FlexTensor {
    let [batch, channels, height, width] = dims(projected);
    let y = attention::forward_together(pixel_shape(projected, n_heads), &values(projected));
    tensor(y, vec![batch, channels / 3, height, width])
}

fn double(x: &FlexTensor) -> FlexTensor {
    let [batch, channels, height, width] = dims(x);
    tensor(planes::upsample(&values(x), height * width, width), vec![batch, channels, 2 * height, 2 * width])
}

/// In the memory of `y` where nobody else has it.
fn sum_scaled(x: &FlexTensor, mut y: FlexTensor, factor: f64) -> FlexTensor {
    let (x, n) = (values(x), y.shape().num_elements());
    let is_whole = y.as_slice::<f32>().is_some() && y.layout().start_offset() == 0;
    if let (true, Some(values)) = (is_whole, y.try_storage_mut::<f32>()) {
        planes::sum_scaled(&x, &mut values[..n], factor as f32);
        return y;
    }
    let mut sum = values(&y).into_owned();
    planes::sum_scaled(&x, &mut sum, factor as f32);
    tensor(sum, y.shape().to_vec())
}

impl LayerOps for Flex {
    fn connect(x: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> FlexTensor {
        connect(&x, &weight, &bias)
    }
    fn normalise_tokens(x: FlexTensor, weight: FlexTensor, bias: FlexTensor, epsilon: f64) -> FlexTensor {
        normalise_tokens(&x, &weight, &bias, epsilon)
    }
    fn gelu_tokens(x: FlexTensor) -> FlexTensor {
        gelu_tokens(&x)
    }
    fn attend(query: FlexTensor, key: FlexTensor, value: FlexTensor, n_heads: usize) -> FlexTensor {
        attend(&query, &key, &value, n_heads)
    }
    fn attend_to_pixels(projected: FlexTensor, n_heads: usize) -> FlexTensor {
        attend_to_pixels(&projected, n_heads)
    }
    fn double(x: FlexTensor) -> FlexTensor {
        double(&x)
    }
    fn sum_scaled(x: FlexTensor, y: FlexTensor, factor: f64) -> FlexTensor {
        sum_scaled(&x, y, factor)
    }
}

/// Hands gradients to those that the result came from.
fn register<S, const N: usize>(ops: Ops<S, N>, grads: &mut Gradients, found: [(Vec<f32>, Shape); N]) {
    for (node, (gradient, shape)) in ops.parents.into_iter().zip(found) {
        if let Some(node) = node {
            grads.register::<Flex>(node.id, tensor(gradient, shape.to_vec()));
        }
    }
}

#[derive(Debug)]
struct ConnectBackward;

impl Backward<Flex, 3> for ConnectBackward {
    type State = ([NodeId; 3], ());

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let [x, weight, bias] = ops.state.0.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        let [from, to] = dims(&weight);
        let (x_values, weight_values, dy) = (values(&x), values(&weight), values(&dy));
        let rows = x_values.len() / from;
        let back = Matrix::rows(&weight_values, to).transposed();
        let dx = product([rows, to, from], Matrix::rows(&dy, to), back, Bias::None);
        let left = Matrix::rows(&x_values, from).transposed();
        let dw = product([from, rows, to], left, Matrix::rows(&dy, to), Bias::None);
        let mut db = vec![0.0; to];
        for row in dy.chunks_exact(to) {
            db.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        register(ops, grads, [(dx, x.shape()), (dw, weight.shape()), (db, bias.shape())]);
    }
}

#[derive(Debug)]
struct NormaliseBackward;

impl Backward<Flex, 3> for NormaliseBackward {
    type State = ([NodeId; 3], f64);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let [x, weight, bias] = ops.state.0.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        let [dx, dw, db] = tokens::normalise_backward(&values(&x), &values(&weight), ops.state.1 as f32, &values(&dy));
        register(ops, grads, [(dx, x.shape()), (dw, weight.shape()), (db, bias.shape())]);
    }
}

#[derive(Debug)]
struct GeluBackward;

impl Backward<Flex, 1> for GeluBackward {
    type State = ([NodeId; 1], ());

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let [x] = ops.state.0.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        let dx = tokens::gelu_backward(&values(&x), &values(&dy));
        register(ops, grads, [(dx, x.shape())]);
    }
}

#[derive(Debug)]
struct AttendBackward;

impl Backward<Flex, 3> for AttendBackward {
    type State = ([NodeId; 3], usize);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let given = ops.state.0.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        let shape = token_shape(&given[0], &given[1], ops.state.1);
        let [query, key, value] = given.each_ref().map(values);
        let [dq, dk, dv] = attention::backward(shape, &query, &key, &value, &values(&dy));
        let [q, k, v] = given.each_ref().map(FlexTensor::shape);
        register(ops, grads, [(dq, q), (dk, k), (dv, v)]);
    }
}

impl Backward<Flex, 1> for AttendBackward {
    type State = ([NodeId; 1], usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let [projected] = ops.state.0.map(|node| checkpointer.retrieve_node_output::<FlexTensor>(node));
        let shape = pixel_shape(&projected, ops.state.1);
        let gradient = attention::backward_together(shape, &values(&projected), &values(&dy));
        register(ops, grads, [(gradient, projected.shape())]);
    }
}

#[derive(Debug)]
struct DoubleBackward;

impl Backward<Flex, 1> for DoubleBackward {
    type State = [usize; 4];

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let shape = ops.state;
        let [_, _, height, width] = shape;
        let dx = planes::upsample_backward(&values(&dy), height * width, width);
        register(ops, grads, [(dx, Shape::from(shape))]);
    }
}

#[derive(Debug)]
struct SumBackward;

impl Backward<Flex, 2> for SumBackward {
    type State = f64;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let gradient = tensor(planes::scaled(&values(&dy), ops.state as f32), dy.shape().to_vec());
        for node in ops.parents.into_iter().flatten() {
            grads.register::<Flex>(node.id, gradient.clone());
        }
    }
}

impl<C: CheckpointStrategy> LayerOps for Autodiff<Flex, C> {
    fn connect(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let y = connect(x.primitive(), weight.primitive(), bias.primitive());
        tracked::<Flex, C, _, _, _>(ConnectBackward, [&x, &weight, &bias], (), y)
    }

    fn normalise_tokens(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let y = normalise_tokens(x.primitive(), weight.primitive(), bias.primitive(), epsilon);
        tracked::<Flex, C, _, _, _>(NormaliseBackward, [&x, &weight, &bias], epsilon, y)
    }

    fn gelu_tokens(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let y = gelu_tokens(x.primitive());
        tracked::<Flex, C, _, _, _>(GeluBackward, [&x], (), y)
    }

    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        n_heads: usize,
    ) -> FloatTensor<Self> {
        let y = attend(query.primitive(), key.primitive(), value.primitive(), n_heads);
        tracked::<Flex, C, _, _, _>(AttendBackward, [&query, &key, &value], n_heads, y)
    }

    fn attend_to_pixels(projected: FloatTensor<Self>, n_heads: usize) -> FloatTensor<Self> {
        let y = attend_to_pixels(projected.primitive(), n_heads);
        tracked::<Flex, C, _, _, _>(AttendBackward, [&projected], n_heads, y)
    }

    fn double(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let (shape, y) = (dims(x.primitive()), double(x.primitive()));
        match DoubleBackward.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(shape, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }

    fn sum_scaled(x: FloatTensor<Self>, y: FloatTensor<Self>, factor: f64) -> FloatTensor<Self> {
        let sum = sum_scaled(x.primitive(), y.primitive().clone(), factor);
        match SumBackward.prepare::<C>([x.node(), y.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(factor, sum),
            OpsKind::UnTracked(prep) => prep.finish(sum),
        }
    }
}
