//! Attention on the CPU, one head of one example at a time, in memory that stays in the cache.
//!
//! `softmax(Q·Kᵀ/√d)·V`. Scores are kept with queries along the vectors, so that the softmax needs no sums across lanes. The gradients work
//! the scores out again rather than keep them. Queries, keys and values may lie token after token, or channel after channel as in pictures.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{
    exp::exp,
    product::{Bias, Matrix, Panels, Product},
};

/// How queries, keys and values lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// `[b, n, width]`.
    Tokens,
    /// `[b, width, n]`.
    Channels,
}

/// The sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub batch: usize,
    pub n_heads: usize,
    /// Of all heads together.
    pub width: usize,
    pub n_queries: usize,
    pub n_keys: usize,
    pub order: Order,
}

impl Shape {
    fn head_dim(&self) -> usize {
        self.width / self.n_heads
    }

    /// `[n, head_dim]` of a head, within the values of one example.
    fn head<'a>(&self, values: &'a [f32], n: usize, head: usize) -> Matrix<'a> {
        let first = head * self.head_dim();
        match self.order {
            Order::Tokens => Matrix::rows(values, self.width).from(0, first),
            Order::Channels => Matrix::rows(values, n).from(first, 0).transposed(),
        }
    }

    /// The part of an example's values that a head's results are written to, and how far its rows are apart.
    fn place<'a>(&self, values: &'a mut [f32], n: usize, head: usize) -> (&'a mut [f32], usize) {
        let first = head * self.head_dim();
        match self.order {
            Order::Tokens => (&mut values[first..], self.width),
            Order::Channels => (&mut values[first * n..], n),
        }
    }
}

/// Queries, keys and values of one example each: what is mixed, and where results go.
struct Example<'a> {
    query: &'a [f32],
    key: &'a [f32],
    value: &'a [f32],
}

/// Memory to be used again by the next product.
#[derive(Default)]
struct Room {
    panels: Panels,
    tile: Vec<f32>,
}

/// Memory to be used again by the next head.
#[derive(Default)]
struct Scratch {
    room: Room,
    /// `[keys, queries]`.
    weights: Vec<f32>,
    /// `[keys, queries]`.
    gradient: Vec<f32>,
    /// One number a query.
    sums: Vec<f32>,
}

/// Mixed values, in the order of the queries.
pub(super) fn forward(shape: Shape, query: &[f32], key: &[f32], value: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; shape.batch * shape.n_queries * shape.width];
    let [of_queries, of_keys] = [shape.n_queries, shape.n_keys].map(|n| n * shape.width);
    let examples = out.par_chunks_exact_mut(of_queries).zip(query.par_chunks_exact(of_queries));
    let seen = key.par_chunks_exact(of_keys).zip(value.par_chunks_exact(of_keys));
    examples.zip(seen).for_each(|((out, query), (key, value))| {
        Arch::new().dispatch(Forward { shape, example: Example { query, key, value }, out });
    });
    out
}

/// The gradients of queries, keys and values, given that of the mixed values.
pub(super) fn backward(shape: Shape, query: &[f32], key: &[f32], value: &[f32], dy: &[f32]) -> [Vec<f32>; 3] {
    let [of_queries, of_keys] = [shape.n_queries, shape.n_keys].map(|n| n * shape.width);
    let mut out = [query, key, value].map(|values| vec![0.0; values.len()]);
    let [dq, dk, dv] = &mut out;
    let queries = dq.par_chunks_exact_mut(of_queries).zip(query.par_chunks_exact(of_queries));
    let keys = dk.par_chunks_exact_mut(of_keys).zip(key.par_chunks_exact(of_keys));
    let values = dv.par_chunks_exact_mut(of_keys).zip(value.par_chunks_exact(of_keys));
    let examples = queries.zip(keys).zip(values).zip(dy.par_chunks_exact(of_queries));
    examples.for_each(|((((dq, query), (dk, key)), (dv, value)), dy)| {
        Arch::new().dispatch(Backward { shape, example: Example { query, key, value }, dy, dq, dk, dv });
    });
    out
}

/// [`forward`] of queries, keys and values that stand together, `[b, 3·width, n]`.
pub(super) fn forward_together(shape: Shape, projected: &[f32]) -> Vec<f32> {
    let one = shape.n_queries * shape.width;
    let mut out = vec![0.0; shape.batch * one];
    out.par_chunks_exact_mut(one).zip(projected.par_chunks_exact(3 * one)).for_each(|(out, projected)| {
        let [query, key, value] = [0, 1, 2].map(|i| &projected[i * one..][..one]);
        Arch::new().dispatch(Forward { shape, example: Example { query, key, value }, out });
    });
    out
}

/// The gradient of what [`forward_together`] was given.
pub(super) fn backward_together(shape: Shape, projected: &[f32], dy: &[f32]) -> Vec<f32> {
    let one = shape.n_queries * shape.width;
    let mut out = vec![0.0; projected.len()];
    let examples = out.par_chunks_exact_mut(3 * one).zip(projected.par_chunks_exact(3 * one));
    examples.zip(dy.par_chunks_exact(one)).for_each(|((out, projected), dy)| {
        let [query, key, value] = [0, 1, 2].map(|i| &projected[i * one..][..one]);
        let (dq, rest) = out.split_at_mut(one);
        let (dk, dv) = rest.split_at_mut(one);
        Arch::new().dispatch(Backward { shape, example: Example { query, key, value }, dy, dq, dk, dv });
    });
    out
}

struct Forward<'a> {
    shape: Shape,
    example: Example<'a>,
    out: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { shape, example, out } = self;
        let Shape { n_queries, n_keys, .. } = shape;
        let mut scratch = Scratch::default();
        for head in 0..shape.n_heads {
            weigh(simd, shape, &example, head, &mut scratch);
            let Scratch { room, weights, .. } = &mut scratch;
            let weights = Matrix::rows(weights, n_queries).transposed();
            let value = shape.head(example.value, n_keys, head);
            let place = shape.place(out, n_queries, head);
            mix(simd, shape, [n_queries, n_keys], weights, value, place, room);
        }
    }
}

struct Backward<'a> {
    shape: Shape,
    example: Example<'a>,
    dy: &'a [f32],
    dq: &'a mut [f32],
    dk: &'a mut [f32],
    dv: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { shape, example, dy, dq, dk, dv } = self;
        let Shape { n_queries, n_keys, .. } = shape;
        let scale = (shape.head_dim() as f32).sqrt().recip();
        let mut scratch = Scratch::default();
        for head in 0..shape.n_heads {
            weigh(simd, shape, &example, head, &mut scratch);
            let dy = shape.head(dy, n_queries, head);
            let value = shape.head(example.value, n_keys, head);
            let Scratch { room, weights, gradient, sums } = &mut scratch;
            // The weights' gradient, [keys, queries]: V·dyᵀ.
            products(simd, [n_keys, shape.head_dim(), n_queries], value, dy.transposed(), gradient, room);
            // The scores' gradient: p·(dp − Σ p·dp), times the scale of the scores.
            sums.clear();
            sums.resize(n_queries, 0.0);
            for (row, p) in gradient.chunks_exact(n_queries).zip(weights.chunks_exact(n_queries)) {
                sums.iter_mut().zip(row.iter().zip(p)).for_each(|(sum, (dp, p))| *sum += dp * p);
            }
            for (row, p) in gradient.chunks_exact_mut(n_queries).zip(weights.chunks_exact(n_queries)) {
                for ((dp, p), sum) in row.iter_mut().zip(p).zip(sums.iter()) {
                    *dp = scale * p * (*dp - sum);
                }
            }
            let (weights, gradient) = (Matrix::rows(weights, n_queries), Matrix::rows(gradient, n_queries));
            let (query, key) = (shape.head(example.query, n_queries, head), shape.head(example.key, n_keys, head));
            let place = shape.place(dq, n_queries, head);
            mix(simd, shape, [n_queries, n_keys], gradient.transposed(), key, place, room);
            let place = shape.place(dk, n_keys, head);
            mix(simd, shape, [n_keys, n_queries], gradient, query, place, room);
            let place = shape.place(dv, n_keys, head);
            mix(simd, shape, [n_keys, n_queries], weights, dy, place, room);
        }
    }
}

/// How much each query sees of each key, `[keys, queries]`, as `scratch.weights`.
#[inline(always)]
fn weigh<S: Simd>(simd: S, shape: Shape, example: &Example<'_>, head: usize, scratch: &mut Scratch) {
    let Shape { n_queries, n_keys, .. } = shape;
    let query = shape.head(example.query, n_queries, head);
    let key = shape.head(example.key, n_keys, head);
    let Scratch { room, weights, sums, .. } = scratch;
    products(simd, [n_keys, shape.head_dim(), n_queries], key, query.transposed(), weights, room);
    let scale = (shape.head_dim() as f32).sqrt().recip();
    // The largest score of each query first, so that no exponential overflows.
    sums.clear();
    sums.resize(n_queries, f32::NEG_INFINITY);
    for row in weights.chunks_exact(n_queries) {
        sums.iter_mut().zip(row).for_each(|(max, score)| *max = if *score > *max { *score } else { *max });
    }
    for row in weights.chunks_exact_mut(n_queries) {
        row.iter_mut().zip(sums.iter()).for_each(|(score, max)| *score = exp((*score - max) * scale));
    }
    sums.fill(0.0);
    for row in weights.chunks_exact(n_queries) {
        sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += weight);
    }
    for sum in sums.iter_mut() {
        *sum = sum.recip();
    }
    for row in weights.chunks_exact_mut(n_queries) {
        row.iter_mut().zip(sums.iter()).for_each(|(weight, factor)| *weight *= factor);
    }
}

/// `left·right` into `out`, row after row.
#[inline(always)]
fn products<S: Simd>(
    simd: S,
    [m, inner, n]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    out: &mut Vec<f32>,
    room: &mut Room,
) {
    out.clear();
    out.resize(m * n, 0.0);
    room.panels.fill(right, inner, n, S::F32_LANES);
    Product { m, inner, n, left, bias: Bias::None, out, out_row: n }.run(simd, room.panels.values(), &mut room.tile);
}

/// `left·right`, `[n, head_dim]`, into the place of a head, in the order of the tokens or of the channels.
#[inline(always)]
fn mix<S: Simd>(
    simd: S,
    shape: Shape,
    [n, inner]: [usize; 2],
    left: Matrix<'_>,
    right: Matrix<'_>,
    (out, out_row): (&mut [f32], usize),
    room: &mut Room,
) {
    let (m, n, left, right) = match shape.order {
        Order::Tokens => (n, shape.head_dim(), left, right),
        Order::Channels => (shape.head_dim(), n, right.transposed(), left.transposed()),
    };
    room.panels.fill(right, inner, n, S::F32_LANES);
    Product { m, inner, n, left, bias: Bias::None, out, out_row }.run(simd, room.panels.values(), &mut room.tile);
}
