//! Pictures as a captioner sees them: tokens and, once a chain has begun, what each layer makes of them.

use burn::tensor::Tensor;

use super::transformer::Seen;

/// A picture for each example of a batch, as tokens.
#[derive(Debug, Clone)]
pub struct View {
    /// `[b, n, width]`
    tokens: Tensor<3>,
    /// Keys and values for each layer, where they have been worked out: the same at every step of a chain.
    layers: Option<Vec<Seen>>,
}

impl View {
    /// Tokens that nothing has been made of yet.
    pub(in crate::model) fn new(tokens: Tensor<3>) -> Self {
        Self { tokens, layers: None }
    }

    /// `[b, n, width]`
    pub(in crate::model) fn tokens(&self) -> &Tensor<3> {
        &self.tokens
    }

    /// The same, with what each layer makes of it.
    pub(super) fn with_layers(self, layers: Vec<Seen>) -> Self {
        Self { layers: Some(layers), ..self }
    }

    /// What each layer makes of it, if that is known.
    pub(super) fn layers(&self) -> Option<&[Seen]> {
        self.layers.as_deref()
    }

    /// The same with every tensor changed.
    pub(in crate::model) fn map(&self, change: impl Fn(Tensor<3>) -> Tensor<3>) -> Self {
        let seen = |Seen { keys, values }: &Seen| Seen { keys: change(keys.clone()), values: change(values.clone()) };
        let layers = self.layers.as_ref().map(|layers| layers.iter().map(seen).collect());
        Self { tokens: change(self.tokens.clone()), layers }
    }

    /// These examples and then others, of which nothing has been made yet.
    pub(in crate::model) fn and(self, others: &Self) -> Self {
        Self::new(Tensor::cat(vec![self.tokens, others.tokens.clone()], 0))
    }
}
