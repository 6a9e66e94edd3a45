//! Attention and its gradients: products, and a softmax between them.

use burn_cubecl::tensor::CubeTensor;

use super::{
    product::{Finish, Matrices, Product},
    program::{Shader, Values, dims, empty_beside, empty_like, in_order, workgroups_for},
};

/// The sizes of attention.
#[derive(Debug, Clone, Copy)]
struct Attention {
    batch: usize,
    n_heads: usize,
    head_dim: usize,
    n_queries: usize,
    n_keys: usize,
}

impl Attention {
    fn product(&self, [rows, inner, columns]: [usize; 3], factor: f64) -> Product {
        Product { examples: self.batch, heads: self.n_heads, rows, inner, columns, factor }
    }

    /// What keeps scores from growing with the size of a head.
    fn factor(&self) -> f64 {
        (self.head_dim as f64).sqrt().recip()
    }

    /// Room for a number for each pair of a query and a key.
    fn pairs_beside(&self, tensor: &CubeTensor) -> Matrices {
        let &Self { batch, n_heads, n_queries, n_keys, .. } = self;
        let tensor = empty_beside(tensor, [batch, n_heads, n_queries, n_keys]);
        let head = n_queries * n_keys;
        Matrices { tensor, first: 0, row: n_keys, column: 1, head, example: n_heads * head }
    }

    /// Runs a shader over the rows of such a number for each pair.
    fn over_rows(&self, shader: Shader, inputs: &[&CubeTensor]) -> Matrices {
        let result = self.pairs_beside(inputs[0]);
        let rows = self.batch * self.n_heads * self.n_queries;
        let row = Values::of(self.n_keys);
        let info = [rows, row.n].map(|n| n as u32);
        row.program(shader).launch([workgroups_for(rows), 1, 1], inputs, &[&result.tensor], &info);
        result
    }

    /// `softmax(query·keyᵀ/√head_dim)`.
    fn shares(&self, query: &Matrices, key: &Matrices) -> Matrices {
        let scores = self.pairs_beside(&query.tensor);
        let product = self.product([self.n_queries, self.head_dim, self.n_keys], self.factor());
        product.launch(query, &key.transposed(), Finish::NONE, &scores);
        self.over_rows(Shader::Softmax, &[&scores.tensor])
    }

    fn forward(&self, [query, key, value]: &[Matrices; 3], y: &Matrices) {
        let shares = self.shares(query, key);
        self.product([self.n_queries, self.n_keys, self.head_dim], 1.0).launch(&shares, value, Finish::NONE, y);
    }

    /// Writes the gradients of queries, keys and values. The shares are worked out again, which takes less than to keep them.
    fn backward(&self, given: &[Matrices; 3], dy: &Matrices, gradients: &[Matrices; 3]) {
        let &Self { n_queries, n_keys, head_dim, .. } = self;
        let ([query, key, value], [dq, dk, dv]) = (given, gradients);
        let shares = self.shares(query, key);
        self.product([n_keys, n_queries, head_dim], 1.0).launch(&shares.transposed(), dy, Finish::NONE, dv);
        let d_shares = self.pairs_beside(&dy.tensor);
        self.product([n_queries, head_dim, n_keys], 1.0).launch(dy, &value.transposed(), Finish::NONE, &d_shares);
        let d_scores = self.over_rows(Shader::SoftmaxBackward, &[&shares.tensor, &d_shares.tensor]);
        self.product([n_queries, n_keys, head_dim], self.factor()).launch(&d_scores, key, Finish::NONE, dq);
        self.product([n_keys, n_queries, head_dim], self.factor()).launch(
            &d_scores.transposed(),
            query,
            Finish::NONE,
            dk,
        );
    }
}

/// Attention of tokens: queries `[b, n, width]`, keys and values `[b, m, width]`.
struct OfTokens {
    attention: Attention,
    given: [Matrices; 3],
}

/// The heads of tokens, `[b, n, width]`.
fn heads(tensor: &CubeTensor, n_heads: usize) -> Matrices {
    let [_, n, width] = dims(tensor);
    Matrices { tensor: tensor.clone(), first: 0, row: width, column: 1, head: width / n_heads, example: n * width }
}

impl OfTokens {
    fn new(given: [CubeTensor; 3], n_heads: usize) -> Self {
        let given = given.map(in_order);
        let [batch, n_queries, width] = dims(&given[0]);
        let [_, n_keys, _] = dims(&given[1]);
        let attention = Attention { batch, n_heads, head_dim: width / n_heads, n_queries, n_keys };
        Self { attention, given: given.map(|tensor| heads(&tensor, n_heads)) }
    }
}

/// Attention of tokens; queries and result `[b, n, width]`, keys and values `[b, m, width]`.
pub(super) fn attend(given: [CubeTensor; 3], n_heads: usize) -> CubeTensor {
    let OfTokens { attention, given } = OfTokens::new(given, n_heads);
    let y = empty_like(&given[0].tensor);
    attention.forward(&given, &heads(&y, n_heads));
    y
}

/// The gradients of what was given.
pub(super) fn attend_backward(given: [CubeTensor; 3], n_heads: usize, dy: CubeTensor) -> [CubeTensor; 3] {
    let OfTokens { attention, given } = OfTokens::new(given, n_heads);
    let gradients = given.each_ref().map(|given| empty_like(&given.tensor));
    let dy = heads(&in_order(dy), n_heads);
    attention.backward(&given, &dy, &gradients.each_ref().map(|gradient| heads(gradient, n_heads)));
    gradients
}

/// The sizes of the attention of pixels to each other; of queries, keys and values together, `[b, 3·c, h, w]`.
fn of_pixels(projected: &CubeTensor, n_heads: usize) -> Attention {
    let [batch, channels, height, width] = dims(projected);
    let n = height * width;
    Attention { batch, n_heads, head_dim: channels / 3 / n_heads, n_queries: n, n_keys: n }
}

impl Attention {
    /// One of the `parts` of pictures, plane after plane; a row for each pixel.
    fn planes(&self, tensor: &CubeTensor, part: usize, parts: usize) -> Matrices {
        let head = self.head_dim * self.n_keys;
        let all = self.n_heads * head;
        Matrices { tensor: tensor.clone(), first: part * all, row: 1, column: self.n_keys, head, example: parts * all }
    }
}

/// Attention of pixels; queries, keys and values together `[b, 3·c, h, w]`, result `[b, c, h, w]`.
pub(super) fn attend_to_pixels(projected: CubeTensor, n_heads: usize) -> CubeTensor {
    let projected = in_order(projected);
    let attention = of_pixels(&projected, n_heads);
    let [batch, channels, height, width] = dims(&projected);
    let y = empty_beside(&projected, [batch, channels / 3, height, width]);
    let given = [0, 1, 2].map(|part| attention.planes(&projected, part, 3));
    attention.forward(&given, &attention.planes(&y, 0, 1));
    y
}

/// The gradient of queries, keys and values together.
pub(super) fn attend_to_pixels_backward(projected: CubeTensor, n_heads: usize, dy: CubeTensor) -> CubeTensor {
    let projected = in_order(projected);
    let attention = of_pixels(&projected, n_heads);
    let gradient = empty_like(&projected);
    let [given, gradients] = [&projected, &gradient].map(|of| [0, 1, 2].map(|part| attention.planes(of, part, 3)));
    attention.backward(&given, &attention.planes(&in_order(dy), 0, 1), &gradients);
    gradient
}
