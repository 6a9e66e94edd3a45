//! Convolutions of one pixel: matrix products of weights and the planes of pictures, as they lie. `None` where those do not lie in vectors of four.

use burn_cubecl::tensor::CubeTensor;

use super::{
    product::{Bias, Finish, Matrices, Onto, Product},
    program::{dims, empty_beside, in_order, sum_of_parts},
};

/// Pictures as matrices, a row for each channel and a column for each pixel.
fn planes(x: &CubeTensor) -> Matrices {
    let [_, channels, height, width] = dims(x);
    let area = height * width;
    Matrices { tensor: in_order(x.clone()), first: 0, row: area, column: 1, head: 0, example: channels * area }
}

/// Weights `[to, from, 1, 1]` as a matrix.
fn matrix(weight: &CubeTensor) -> Matrices {
    let [_, from, ..]: [usize; 4] = dims(weight);
    Matrices { tensor: in_order(weight.clone()), first: 0, row: from, column: 1, head: 0, example: 0 }
}

/// `x ∗ weight + bias`, added to what is given.
pub(super) fn forward(
    x: &CubeTensor,
    weight: &CubeTensor,
    bias: &CubeTensor,
    onto: Option<Onto<'_>>,
) -> Option<CubeTensor> {
    let [batch, from, height, width] = dims(x);
    let [to, ..]: [usize; 4] = dims(weight);
    let y = planes(&empty_beside(x, [batch, to, height, width]));
    let product = Product { examples: batch, heads: 1, rows: to, inner: from, columns: height * width, factor: 1.0 };
    let bias = in_order(bias.clone());
    let finish = Finish { onto, ..Finish::biased(Bias::OfRows(&bias)) };
    product.launch_if_fours(&matrix(weight), &planes(x), finish, &y).then_some(y.tensor)
}

/// The gradient of the input.
pub(super) fn x_backward(weight: &CubeTensor, dy: &CubeTensor) -> Option<CubeTensor> {
    let [batch, to, height, width] = dims(dy);
    let [_, from, ..]: [usize; 4] = dims(weight);
    let dx = planes(&empty_beside(dy, [batch, from, height, width]));
    let product = Product { examples: batch, heads: 1, rows: from, inner: to, columns: height * width, factor: 1.0 };
    product.launch_if_fours(&matrix(weight).transposed(), &planes(dy), Finish::NONE, &dx).then_some(dx.tensor)
}

/// The gradient of the weights, `[to, from, 1, 1]`: the sum of those of each picture.
pub(super) fn w_backward(x: &CubeTensor, dy: &CubeTensor) -> Option<CubeTensor> {
    let [batch, from, height, width] = dims(x);
    let [_, to, ..]: [usize; 4] = dims(dy);
    let parts = empty_beside(x, [batch, to, from]);
    let each = Matrices { tensor: parts, first: 0, row: from, column: 1, head: 0, example: to * from };
    let product = Product { examples: batch, heads: 1, rows: to, inner: height * width, columns: from, factor: 1.0 };
    let is_made = product.launch_if_fours(&planes(dy), &planes(x).transposed(), Finish::NONE, &each);
    is_made.then(|| sum_of_parts(&each.tensor, batch, [to, from, 1, 1]))
}
