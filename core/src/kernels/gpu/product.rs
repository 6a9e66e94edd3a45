//! Matrix products, and linear layers made of them.

use burn_cubecl::tensor::CubeTensor;

use super::{
    program::{
        Constant::{Count, Flag},
        Program, Shader, dims, empty_beside, empty_like, empty_of, in_order,
    },
    tokens::column_sums,
};

/// A workgroup of the product: invocations along the columns, and along the rows.
const WORKGROUP: [usize; 2] = [16, 4];

/// Matrices in a tensor, one for each head of each example.
#[derive(Debug, Clone)]
pub(super) struct Matrices {
    pub tensor: CubeTensor,
    /// Where the first number is.
    pub first: usize,
    /// How far it is from there to the next row, column, head and example.
    pub row: usize,
    pub column: usize,
    pub head: usize,
    pub example: usize,
}

impl Matrices {
    /// One matrix, row after row.
    fn rows(tensor: &CubeTensor, width: usize) -> Self {
        Self { tensor: tensor.clone(), first: 0, row: width, column: 1, head: 0, example: 0 }
    }

    /// Rows and columns exchanged.
    pub fn transposed(&self) -> Self {
        Self { row: self.column, column: self.row, ..self.clone() }
    }

    fn info(&self) -> [u32; 5] {
        [self.first, self.row, self.column, self.head, self.example].map(|n| n as u32)
    }
}

/// The sizes of products, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub examples: usize,
    pub heads: usize,
    pub rows: usize,
    /// Over these it is summed.
    pub inner: usize,
    pub columns: usize,
    /// What each sum is multiplied with.
    pub factor: f64,
}

impl Product {
    /// One product.
    fn one([rows, inner, columns]: [usize; 3]) -> Self {
        Self { examples: 1, heads: 1, rows, inner, columns, factor: 1.0 }
    }

    /// Which of the shaders loads the least: most matrices lie so that four numbers can be loaded at a time.
    fn shader(&self, a: &Matrices, b: &Matrices) -> Shader {
        let used = [a.first, a.row, a.head, a.example, b.first, b.head, b.example, self.inner];
        let are_fours = a.column == 1 && used.iter().all(|number| number.is_multiple_of(4));
        if are_fours && b.row == 1 && b.column.is_multiple_of(4) {
            Shader::ProductRows
        } else if are_fours && b.column == 1 && b.row.is_multiple_of(4) && self.columns.is_multiple_of(4) {
            Shader::ProductColumns
        } else {
            Shader::Product
        }
    }

    /// `y = factor·a·b + bias`.
    pub fn launch(&self, a: &Matrices, b: &Matrices, bias: Option<&CubeTensor>, y: &Matrices) {
        let n = self.examples * self.heads;
        let shader = self.shader(a, b);
        // The larger a tile, the less is loaded, and the fewer invocations there are to keep a card busy.
        let is_small = shader == Shader::ProductColumns || n * self.rows * self.columns < 1 << 15;
        let largest = if is_small { 4 } else { 8 };
        let tile = |size: usize, invocations: usize| size.div_ceil(invocations).next_power_of_two().min(largest);
        let (columns, rows) = (tile(self.columns, WORKGROUP[0]), tile(self.rows, WORKGROUP[1]));
        let mut constants = vec![("ROWS", Count(rows as u32)), ("BIASED", Flag(bias.is_some()))];
        let columns = if shader == Shader::ProductColumns {
            4
        } else {
            constants.push(("COLUMNS", Count(columns as u32)));
            columns
        };
        let count = [self.columns.div_ceil(WORKGROUP[0] * columns), self.rows.div_ceil(WORKGROUP[1] * rows), n];
        let sizes = [self.rows, self.inner, self.columns, self.heads].map(|n| n as u32);
        let factor = [(self.factor as f32).to_bits()];
        let info = [&sizes[..], &factor, &a.info(), &b.info(), &y.info()].concat();
        // A shader without a bias does not read it.
        let inputs = [&a.tensor, &b.tensor, bias.unwrap_or(&b.tensor)];
        Program { shader, constants }.launch(count, &inputs, &[&y.tensor], &info);
    }
}

/// `x·weight + bias`; `[…, from]` → `[…, to]`.
pub(super) fn connect(x: CubeTensor, weight: CubeTensor, bias: CubeTensor) -> CubeTensor {
    let [from, to] = dims(&weight);
    let [x, weight, bias] = [x, weight, bias].map(in_order);
    let mut shape = x.meta.shape().clone();
    let rows = shape.num_elements() / from;
    let last = shape.num_dims() - 1;
    shape[last] = to;
    let y = empty_of(&x, shape);
    let [a, b, result] = [(&x, from), (&weight, to), (&y, to)].map(|(tensor, width)| Matrices::rows(tensor, width));
    Product::one([rows, from, to]).launch(&a, &b, Some(&bias), &result);
    y
}

/// A linear layer's gradient, and what it needs of the layer.
pub(super) struct ConnectGradient {
    x: CubeTensor,
    weight: CubeTensor,
    dy: CubeTensor,
    rows: usize,
    from: usize,
    to: usize,
}

impl ConnectGradient {
    pub fn new(x: CubeTensor, weight: CubeTensor, dy: CubeTensor) -> Self {
        let [from, to] = dims(&weight);
        let [x, weight, dy] = [x, weight, dy].map(in_order);
        Self { rows: dy.meta.shape().num_elements() / to, x, weight, dy, from, to }
    }

    /// `dy·weightᵀ`.
    pub fn x(&self) -> CubeTensor {
        let dx = empty_like(&self.x);
        let (dy, weight) = (Matrices::rows(&self.dy, self.to), Matrices::rows(&self.weight, self.to));
        let result = Matrices::rows(&dx, self.from);
        Product::one([self.rows, self.to, self.from]).launch(&dy, &weight.transposed(), None, &result);
        dx
    }

    /// `xᵀ·dy`.
    pub fn weight(&self) -> CubeTensor {
        let dw = empty_beside(&self.x, [self.from, self.to]);
        let (x, dy) = (Matrices::rows(&self.x, self.from), Matrices::rows(&self.dy, self.to));
        let result = Matrices::rows(&dw, self.to);
        Product::one([self.from, self.rows, self.to]).launch(&x.transposed(), &dy, None, &result);
        dw
    }

    pub fn bias(&self) -> CubeTensor {
        column_sums(&self.dy, self.rows, self.to)
    }
}
