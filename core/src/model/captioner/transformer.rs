//! The Transformer that reads and writes token by token: attention, to itself and to the picture, and the block around them.
//!
//! Pre-norm, as in the paper's captioner; the same block serves bit diffusion, where every token sees every other, and the autoregressive
//! baseline, where it sees those before it.

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, LayerNorm, Linear},
    tensor::{Bool, Tensor},
};

use crate::{
    kernels::{attention, gelu, layer_norm, linear, linear_onto},
    model::layers::Init,
};

/// Attention of several heads, from one sequence to another.
#[derive(Module, Debug)]
pub(super) struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    n_heads: usize,
}

/// What is looked at: keys and values of all heads, `[b, n, width]`.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub keys: Tensor<3>,
    pub values: Tensor<3>,
}

impl Seen {
    /// The same and more of it.
    pub fn and(self, more: Self) -> Self {
        Self {
            keys: Tensor::cat(vec![self.keys, more.keys], 1),
            values: Tensor::cat(vec![self.values, more.values], 1),
        }
    }

    /// The examples with these numbers, in this order.
    pub fn select(self, examples: Tensor<1, burn::tensor::Int>) -> Self {
        Self { keys: self.keys.select(0, examples.clone()), values: self.values.select(0, examples) }
    }
}

impl Attention {
    pub fn new(width: usize, n_heads: usize, init: &mut Init<'_>) -> Self {
        Self {
            query: init.linear(width, width),
            key: init.linear(width, width),
            value: init.linear(width, width),
            output: init.linear(width, width),
            n_heads,
        }
    }

    /// What others can look at.
    ///
    /// # Shapes
    /// - `x`: `[b, n, width]`
    pub fn seen(&self, x: Tensor<3>) -> Seen {
        Seen { keys: linear(&self.key, x.clone()), values: linear(&self.value, x) }
    }

    /// What each head found, before `output` mixes it.
    ///
    /// # Shapes
    /// - `x` and output: `[b, n, width]`; `hidden`: `[n, n of seen]`, true where nothing is seen
    pub fn found(&self, x: Tensor<3>, seen: Seen, hidden: Option<Tensor<2, Bool>>) -> Tensor<3> {
        attention(linear(&self.query, x), seen.keys, seen.values, self.n_heads, hidden)
    }
}

/// One layer: the tokens look at each other, then at the picture, then each at itself.
#[derive(Module, Debug)]
pub(super) struct Layer {
    norm_1: LayerNorm,
    to_tokens: Attention,
    norm_2: LayerNorm,
    to_picture: Attention,
    norm_3: LayerNorm,
    widen: Linear,
    narrow: Linear,
    dropout: Dropout,
}

impl Layer {
    pub fn new(width: usize, n_heads: usize, dropout: f64, init: &mut Init<'_>) -> Self {
        Self {
            norm_1: init.layer_norm(width),
            to_tokens: Attention::new(width, n_heads, init),
            norm_2: init.layer_norm(width),
            to_picture: Attention::new(width, n_heads, init),
            norm_3: init.layer_norm(width),
            widen: init.linear(width, 4 * width),
            narrow: init.linear(4 * width, width),
            dropout: DropoutConfig::new(dropout).init(),
        }
    }

    /// The number of weights of such a layer.
    pub fn n_parameters(width: usize) -> u64 {
        let linear = |from: usize, to: usize| (from + 1) as u64 * to as u64;
        2 * 4 * linear(width, width) + 3 * 2 * width as u64 + linear(width, 4 * width) + linear(4 * width, width)
    }

    /// What the tokens of this layer can look at in a picture.
    ///
    /// # Shapes
    /// - `picture`: `[b, n, width]`
    pub fn picture(&self, picture: Tensor<3>) -> Seen {
        self.to_picture.seen(picture)
    }

    /// The tokens after this layer, and what it saw of them; `before` is what it saw of the tokens before these.
    ///
    /// # Shapes
    /// - `x` and output: `[b, n, width]`; `hidden`: `[n, n of before and n]`, true where nothing is seen
    pub fn forward(
        &self,
        x: Tensor<3>,
        before: Option<Seen>,
        picture: Seen,
        hidden: Option<Tensor<2, Bool>>,
    ) -> (Tensor<3>, Seen) {
        let normed = layer_norm(&self.norm_1, x.clone());
        let own = self.to_tokens.seen(normed.clone());
        let tokens = match before {
            None => own,
            Some(before) => before.and(own),
        };
        let found = self.to_tokens.found(normed, tokens.clone(), hidden);
        let x = self.add(x, &self.to_tokens.output, found);
        let found = self.to_picture.found(layer_norm(&self.norm_2, x.clone()), picture, None);
        let x = self.add(x, &self.to_picture.output, found);
        let wide = gelu(linear(&self.widen, layer_norm(&self.norm_3, x.clone())));
        (self.add(x, &self.narrow, wide), tokens)
    }

    /// `x` and what a layer makes of `more`, some of which is dropped in training.
    fn add(&self, x: Tensor<3>, layer: &Linear, more: Tensor<3>) -> Tensor<3> {
        if more.is_autodiff() { x + self.dropout.forward(linear(layer, more)) } else { linear_onto(x, layer, more) }
    }
}
