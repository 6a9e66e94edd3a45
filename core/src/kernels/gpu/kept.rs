//! Weights in the forms that shaders read, kept as long as the weights themselves.
//!
//! A chain runs the same network again and again; transforming its weights anew would take as long as a small convolution. What is kept goes by the memory of
//! the weights. burn changes memory in place only if nobody else holds it, and whoever keeps something here holds it: so it cannot change. Once nobody else
//! does, both are dropped.

use std::{cell::RefCell, collections::HashMap};

use burn_cubecl::tensor::CubeTensor;

use super::program::{Program, empty_beside, in_order};

/// The most numbers that are kept, 128 MB. Beside the convolutions of networks beyond that, their transforms do not matter.
const LIMIT: usize = 32 << 20;

/// Where weights lie in memory, and what was made of them.
type Key = (usize, Option<u64>, Program, Vec<u32>);

/// Weights, and what was made of them.
type Kept = HashMap<Key, [CubeTensor; 2]>;

thread_local! {
    // Work for a card goes through one thread.
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// What a program makes of weights: launches it, unless that was done before.
pub(super) fn made_once<const D: usize>(
    program: Program,
    count: [usize; 3],
    weight: CubeTensor,
    info: &[u32],
    shape: [usize; D],
) -> CubeTensor {
    let weight = in_order(weight);
    let memory = weight.handle.memory.descriptor().id.value;
    let key = (memory, weight.handle.offset_start, program, info.to_vec());
    KEPT.with_borrow_mut(|kept| {
        if let Some([_, made]) = kept.get(&key) {
            return made.clone();
        }
        let made = empty_beside(&weight, shape);
        key.2.clone().launch(count, &[&weight], &[&made], info);
        kept.retain(|_, [weight, _]| !weight.can_mut());
        let numbers = |tensor: &CubeTensor| tensor.meta.shape().num_elements();
        if kept.values().map(|[_, made]| numbers(made)).sum::<usize>() + numbers(&made) <= LIMIT {
            kept.insert(key, [weight, made.clone()]);
        }
        made
    })
}
