//! Packed weights of convolutions and linear layers, kept as long as the weights themselves.
//!
//! A chain runs the same network again and again; packing its weights anew for every picture would take as long as a small convolution, and for one row of
//! numbers five times as long as its product. What is kept goes by the memory of the weights, which burn never changes while anybody can still see it: whoever
//! changes weights makes new ones, and the old packed ones are then dropped.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use burn::{backend::flex::FlexTensor, tensor::Bytes};

use super::{
    conv::{self, Order, Shape},
    extension::{dims, values},
    product::{self, Matrix},
    winograd,
};

/// The most numbers that are kept, 128 MB. The packing of networks beyond that does not matter beside their convolutions.
const LIMIT: usize = 32 << 20;

/// Where weights lie in memory, and what they were packed for.
type Key = (usize, usize, Use);

/// What weights are packed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    /// With the numbers of channels and the kernel's size.
    Convolution([usize; 3], Order),
    /// With the numbers of channels, in Winograd's form.
    Winograd([usize; 2], Order),
    /// With the numbers of rows and columns.
    Product([usize; 2]),
}

/// Weights as they were when packed, to see whether they are still there, and packed.
type Kept = HashMap<Key, (Weak<Bytes>, Arc<Vec<f32>>)>;

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The packed weights of a convolution, `shape` being that of the way forward.
pub(super) fn weights(weight: &FlexTensor, shape: Shape, order: Order) -> Arc<Vec<f32>> {
    let Shape { from, to, size, .. } = shape;
    let is_winograd = winograd::fits(shape.of(order));
    let used = if is_winograd { Use::Winograd([from, to], order) } else { Use::Convolution([from, to, size], order) };
    packed(weight, used, |values| conv::pack(shape, values, order))
}

/// The weights of a linear layer, `[from, to]`, in panels.
pub(super) fn panels(weight: &FlexTensor) -> Arc<Vec<f32>> {
    let [from, to] = dims(weight);
    packed(weight, Use::Product([from, to]), |values| product::pack(Matrix::rows(values, to), from, to))
}

fn packed(weight: &FlexTensor, used: Use, pack: impl Fn(&[f32]) -> Vec<f32>) -> Arc<Vec<f32>> {
    let memory = weight.data_arc();
    if weight.as_slice::<f32>().is_none() {
        return Arc::new(pack(&values(weight)));
    }
    let key = (Arc::as_ptr(&memory).addr(), weight.layout().start_offset(), used);
    // As long as something points to it, even weakly, no other weights can come to lie in the same place.
    if let Some((from, packed)) = kept().get(&key)
        && from.strong_count() > 0
    {
        return packed.clone();
    }
    let packed = Arc::new(pack(&values(weight)));
    let mut kept = kept();
    kept.retain(|_, (from, _)| from.strong_count() > 0);
    if kept.values().map(|(_, packed)| packed.len()).sum::<usize>() + packed.len() <= LIMIT {
        kept.insert(key, (Arc::downgrade(&memory), packed.clone()));
    }
    packed
}
