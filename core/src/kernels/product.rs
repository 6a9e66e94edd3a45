//! Matrix products on the CPU, of matrices that lie in memory in any order.
//!
//! Columns lie along the lanes of a vector: a tile of rows × 2 vectors of columns stays in registers while the inner dimension runs by. What is
//! broadcast is read as it lies if its rows do, and else laid side by side first; what is multiplied with it is read as it is where its rows are whole vectors, else
//! copied once, filled up with zeros. The width of the vectors is that of the caller (pulp).
//!
//! Deliberately absent: blocks for matrices beyond the caches; the networks here have none.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Vectors of columns in one tile.
const V: usize = 2;

/// The most columns that a tile has: 2 vectors of 16.
const MAX_COLUMNS: usize = V * 16;

/// A matrix within a slice: element (i, j) is at `i·row + j·column`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub values: &'a [f32],
    pub row: usize,
    pub column: usize,
}

impl<'a> Matrix<'a> {
    /// Row after row of `n_columns` each.
    pub fn rows(values: &'a [f32], n_columns: usize) -> Self {
        Self { values, row: n_columns, column: 1 }
    }

    /// The same numbers, rows for columns.
    pub fn transposed(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }

    /// From a row and a column on.
    pub fn from(self, i: usize, j: usize) -> Self {
        Self { values: &self.values[i * self.row + j * self.column..], ..self }
    }
}

/// What is added to a product.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bias<'a> {
    None,
    /// A number for each row.
    PerRow(&'a [f32]),
    /// A number for each column.
    PerColumn(&'a [f32]),
}

/// The right-hand matrix, in panels of whole vectors: `[panel][inner][lane]`.
#[derive(Default)]
pub(super) struct Panels {
    values: Vec<f32>,
}

impl Panels {
    /// Copies `right`, of `inner` rows and `n` columns, for vectors of `lanes` numbers.
    #[inline(always)]
    pub fn new(right: Matrix<'_>, inner: usize, n: usize, lanes: usize) -> Self {
        let mut panels = Self::default();
        panels.fill(right, inner, n, lanes);
        panels
    }

    /// Copies into the memory there is.
    #[inline(always)]
    pub fn fill(&mut self, right: Matrix<'_>, inner: usize, n: usize, lanes: usize) {
        let columns = lanes * V;
        self.values.clear();
        self.values.reserve(n.next_multiple_of(columns) * inner);
        for first in (0..n).step_by(columns) {
            let count = columns.min(n - first);
            if right.column == 1 {
                for i in 0..inner {
                    self.values.extend_from_slice(&right.values[i * right.row + first..][..count]);
                    self.values.extend(std::iter::repeat_n(0.0, columns - count));
                }
            } else {
                let start = self.values.len();
                self.values.resize(start + inner * columns, 0.0);
                for j in 0..count {
                    let from = &right.values[(first + j) * right.column..];
                    for (i, to) in self.values[start..].chunks_exact_mut(columns).enumerate() {
                        to[j] = from[i * right.row];
                    }
                }
            }
        }
    }

    /// The panels, one after the other.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The number of numbers in a row of a panel.
    pub fn columns<S: Simd>() -> usize {
        S::F32_LANES * V
    }
}

/// `out = left·right + bias`: `m` rows of `n` columns, each row `out_row` numbers after the one before.
#[derive(Debug)]
pub(super) struct Product<'a> {
    pub m: usize,
    pub inner: usize,
    pub n: usize,
    pub left: Matrix<'a>,
    pub bias: Bias<'a>,
    pub out: &'a mut [f32],
    pub out_row: usize,
}

impl Product<'_> {
    /// Works it out, in the vectors of `simd`, with the right-hand matrix in panels; `copy` is memory to be used again.
    #[inline(always)]
    pub fn run<S: Simd>(self, simd: S, right: &[f32], copy: &mut Vec<f32>) {
        let columns = Panels::columns::<S>();
        let panel = self.inner * columns;
        self.run_on(simd, right, columns, panel, copy);
    }

    /// The same with a right-hand matrix whose rows are whole panels, as it lies.
    #[inline(always)]
    pub fn run_in_place<S: Simd>(self, simd: S, right: &[f32], copy: &mut Vec<f32>) {
        let columns = Panels::columns::<S>();
        assert!(self.n.is_multiple_of(columns), "{} columns are no whole vectors", self.n);
        let row = self.n;
        self.run_on(simd, right, row, columns, copy);
    }

    /// `right` has its rows `row` numbers apart and its panels `panel`.
    #[inline(always)]
    fn run_on<S: Simd>(mut self, simd: S, right: &[f32], row: usize, panel: usize, copy: &mut Vec<f32>) {
        let Self { m, inner, n, left, .. } = self;
        // Columns are laid side by side, a tile's rows at a time: in long ones, each number would be on a page of its own. So are rows where vectors are
        // short: each number is then broadcast for so many panels that the copy pays.
        let is_copied = left.column != 1 || S::F32_LANES <= 4;
        if is_copied {
            copy.clear();
            copy.reserve(m * inner);
            let mut first = 0;
            while first < m {
                let count = tile_height::<S>(m - first);
                for k in 0..inner {
                    let from = &left.values[first * left.row + k * left.column..];
                    if left.row == 1 {
                        copy.extend_from_slice(&from[..count]);
                    } else {
                        copy.extend((0..count).map(|i| from[i * left.row]));
                    }
                }
                first += count;
            }
        }
        // All rows of a panel's columns, so that the panel stays in the first cache.
        for (at, j) in (0..n).step_by(Panels::columns::<S>()).enumerate() {
            let right = &right[at * panel..];
            let mut i = 0;
            while i < m {
                let count = tile_height::<S>(m - i);
                let left = if is_copied {
                    Matrix { values: &copy[i * inner..], row: 1, column: count }
                } else {
                    left.from(i, 0)
                };
                match count {
                    8 => self.tile::<S, 8>(simd, [i, j], left, right, row),
                    4 => self.tile::<S, 4>(simd, [i, j], left, right, row),
                    _ => self.tile::<S, 1>(simd, [i, j], left, right, row),
                }
                i += count;
            }
        }
    }

    /// P rows of a panel's columns.
    #[inline(always)]
    fn tile<S: Simd, const P: usize>(
        &mut self,
        simd: S,
        [first, j]: [usize; 2],
        left: Matrix<'_>,
        right: &[f32],
        row: usize,
    ) {
        let columns = Panels::columns::<S>();
        let Self { inner, n, .. } = *self;
        let mut acc = self.start::<S, P>(simd, first, j);
        // A row of a panel follows the one before by `row` numbers; the last may end before.
        let rights = right.chunks(row).take(inner);
        if left.column == 1 {
            let mut rows: [&[f32]; P] = [&[]; P];
            for (p, row) in rows.iter_mut().enumerate() {
                *row = &left.values[p * left.row..][..inner];
            }
            for (k, right) in rights.enumerate() {
                let (right, _) = S::as_simd_f32s(&right[..columns]);
                let right = [right[0], right[1]];
                for p in 0..P {
                    let value = simd.splat_f32s(rows[p][k]);
                    acc[p][0] = simd.mul_add_e_f32s(value, right[0], acc[p][0]);
                    acc[p][1] = simd.mul_add_e_f32s(value, right[1], acc[p][1]);
                }
            }
        } else {
            let (lefts, _) = left.values.as_chunks::<P>();
            let mut rest = right;
            for left in &lefts[..inner] {
                let (right, _) = S::as_simd_f32s(&rest[..columns]);
                let right = [right[0], right[1]];
                rest = rest.get(row..).unwrap_or_default();
                for p in 0..P {
                    let value = simd.splat_f32s(left[p]);
                    acc[p][0] = simd.mul_add_e_f32s(value, right[0], acc[p][0]);
                    acc[p][1] = simd.mul_add_e_f32s(value, right[1], acc[p][1]);
                }
            }
        }
        let count = columns.min(n - j);
        for (p, acc) in acc.into_iter().enumerate() {
            let out = &mut self.out[(first + p) * self.out_row + j..][..count];
            if count == columns {
                let (out, _) = S::as_mut_simd_f32s(out);
                out[0] = acc[0];
                out[1] = acc[1];
            } else {
                let mut buffer = [0.0_f32; MAX_COLUMNS];
                let (vectors, _) = S::as_mut_simd_f32s(&mut buffer[..columns]);
                vectors[0] = acc[0];
                vectors[1] = acc[1];
                out.copy_from_slice(&buffer[..count]);
            }
        }
    }

    /// What a tile begins with.
    #[inline(always)]
    fn start<S: Simd, const P: usize>(&self, simd: S, first: usize, j: usize) -> [[S::f32s; V]; P] {
        match self.bias {
            Bias::None => [[simd.splat_f32s(0.0); V]; P],
            Bias::PerRow(bias) => std::array::from_fn(|p| [simd.splat_f32s(bias[first + p]); V]),
            Bias::PerColumn(bias) => {
                let columns = Panels::columns::<S>();
                let mut buffer = [0.0_f32; MAX_COLUMNS];
                let count = columns.min(self.n - j);
                buffer[..count].copy_from_slice(&bias[j..j + count]);
                let (vectors, _) = S::as_simd_f32s(&buffer[..columns]);
                [[vectors[0], vectors[1]]; P]
            }
        }
    }
}

/// How many of `rows` rows one tile has: as many as leave registers for the rest, which are 32 of 512 bits, else 16.
#[inline(always)]
fn tile_height<S: Simd>(rows: usize) -> usize {
    match rows {
        8.. if S::F32_LANES == 16 => 8,
        4.. => 4,
        _ => 1,
    }
}

/// Products below so many multiplications are not worth a second core's attention.
const SHARED_FROM: usize = 1 << 21;

/// `left·right + bias` as rows, the rows shared among the cores.
///
/// # Shapes
/// - `left`: `[m, inner]`; `right`: `[inner, n]`; result: `[m, n]`
pub(super) fn product([m, inner, n]: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, bias: Bias<'_>) -> Vec<f32> {
    product_with([m, inner, n], left, &pack(right, inner, n), bias)
}

/// The same with a right-hand matrix that [`pack`] has packed.
pub(super) fn product_with([m, inner, n]: [usize; 3], left: Matrix<'_>, right: &[f32], bias: Bias<'_>) -> Vec<f32> {
    Arch::new().dispatch(Shared { m, inner, n, left, right, bias })
}

/// A right-hand matrix of `inner` rows and `n` columns in panels, as the vectors of this machine want it.
pub(super) fn pack(right: Matrix<'_>, inner: usize, n: usize) -> Vec<f32> {
    Arch::new().dispatch(Pack { right, inner, n })
}

struct Pack<'a> {
    right: Matrix<'a>,
    inner: usize,
    n: usize,
}

impl WithSimd for Pack<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f32> {
        Panels::new(self.right, self.inner, self.n, S::F32_LANES).values
    }
}

struct Shared<'a> {
    m: usize,
    inner: usize,
    n: usize,
    left: Matrix<'a>,
    /// In panels.
    right: &'a [f32],
    bias: Bias<'a>,
}

impl WithSimd for Shared<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self { m, inner, n, left, right, bias } = self;
        let mut out = vec![0.0; m * n];
        if out.is_empty() {
            return out;
        }
        let is_shared = m * inner * n >= SHARED_FROM;
        let per_task = if is_shared { m.div_ceil(2 * rayon::current_num_threads()).next_multiple_of(8) } else { m };
        let work = |(task, out): (usize, &mut [f32])| {
            let first = task * per_task;
            let bias = match bias {
                Bias::PerRow(bias) => Bias::PerRow(&bias[first..]),
                bias => bias,
            };
            let product = Product { m: out.len() / n, inner, n, left: left.from(first, 0), bias, out, out_row: n };
            simd.vectorize(
                #[inline(always)]
                || product.run(simd, right, &mut Vec::new()),
            );
        };
        if is_shared {
            out.par_chunks_mut(per_task * n).enumerate().for_each(work);
        } else {
            work((0, &mut out));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn products_are_sums_of_products() {
        for [m, inner, n] in [[1, 1, 1], [8, 3, 32], [13, 7, 40], [70, 64, 33], [300, 120, 65]] {
            let (a, b) = (Rng::new(1).normals(m * inner), Rng::new(2).normals(inner * n));
            let (rows, columns) = (Rng::new(3).normals(m), Rng::new(4).normals(n));
            let expected = |i: usize, j: usize| -> f32 { (0..inner).map(|k| a[i * inner + k] * b[k * n + j]).sum() };
            // The same matrices, the other way round in memory.
            let a_t: Vec<f32> = (0..m * inner).map(|i| a[i % m * inner + i / m]).collect();
            let b_t: Vec<f32> = (0..n * inner).map(|i| b[i % inner * n + i / inner]).collect();
            let lefts = [Matrix::rows(&a, inner), Matrix::rows(&a_t, m).transposed()];
            let rights = [Matrix::rows(&b, n), Matrix::rows(&b_t, inner).transposed()];
            for (left, right) in lefts.into_iter().zip(rights) {
                for bias in [Bias::None, Bias::PerRow(&rows), Bias::PerColumn(&columns)] {
                    for (at, found) in product([m, inner, n], left, right, bias).into_iter().enumerate() {
                        let (i, j) = (at / n, at % n);
                        let more = match bias {
                            Bias::None => 0.0,
                            Bias::PerRow(bias) => bias[i],
                            Bias::PerColumn(bias) => bias[j],
                        };
                        assert!((found - expected(i, j) - more).abs() < 1e-4, "{m}×{inner}×{n}, {bias:?}: ({i}, {j})");
                    }
                }
            }
        }
    }
}
