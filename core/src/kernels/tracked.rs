//! Operations on tensors with gradients, on any backend.

use std::fmt::Debug;

use burn::backend::{
    Autodiff, Backend,
    autodiff::{
        NodeId,
        checkpoint::strategy::CheckpointStrategy,
        ops::{Backward, OpsKind},
    },
    tensor::FloatTensor,
};

/// The result `y` of an operation, and what its gradients will need: all that it was given, and `more`.
pub(super) fn tracked<B: Backend, C: CheckpointStrategy, O, P, const N: usize>(
    operation: O,
    given: [&FloatTensor<Autodiff<B, C>>; N],
    more: P,
    y: FloatTensor<B>,
) -> FloatTensor<Autodiff<B, C>>
where
    O: Backward<B, N, State = ([NodeId; N], P)>,
    P: Clone + Send + Debug + 'static,
{
    match operation.prepare::<C>(given.map(FloatTensor::<Autodiff<B, C>>::node)).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let nodes = given.map(|tensor| prep.checkpoint(tensor));
            prep.finish((nodes, more), y)
        }
        OpsKind::UnTracked(prep) => prep.finish(y),
    }
}
