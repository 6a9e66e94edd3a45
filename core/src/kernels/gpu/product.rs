//! Matrix products, and linear layers made of them.

use burn_cubecl::tensor::CubeTensor;

use super::{
    program::{
        Constant::{self, Count, Flag},
        N_INVOCATIONS, Program, Shader, dims, empty_beside, empty_like, empty_of, in_order,
    },
    tokens::column_sums,
};
use crate::kernels::norm::Activation;

/// A workgroup of the product of any matrices: invocations along the columns, and along the rows.
const WORKGROUP: [usize; 2] = [16, 4];

/// Fewer invocations than these leave a card idle: each then makes fewer rows.
const ENOUGH_INVOCATIONS: usize = 1024;

/// Invocations that a card runs as one: of smaller workgroups some would have nothing to do.
const LANES: usize = 8;

/// What an invocation makes of a product in vectors of four: rows, and vectors.
const TILES: [(usize, usize); 5] = [(8, 2), (16, 1), (4, 2), (8, 1), (4, 1)];

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

    /// The same in vectors of four, if it lies so.
    fn fours(&self) -> Option<Fours<'_>> {
        let is_turned = self.column != 1;
        let [along, across] = if is_turned { [self.row, self.column] } else { [self.column, self.row] };
        let steps = [self.first, across, self.head, self.example];
        if along != 1 || !steps.iter().all(|step| step.is_multiple_of(4)) {
            return None;
        }
        let [first, across, head, example] = steps.map(|step| step / 4);
        let [row, column] = if is_turned { [1, across] } else { [across, 1] };
        Some(Fours { tensor: &self.tensor, first, row, column, head, example, is_turned })
    }
}

/// Matrices that lie in vectors of four numbers: neighbours of a row or, turned, of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fours<'a> {
    pub tensor: &'a CubeTensor,
    /// Where the first vector is.
    pub first: usize,
    /// How far it is from there to the next row, or the next four that lie in vectors; the same for columns, heads and examples.
    pub row: usize,
    pub column: usize,
    pub head: usize,
    pub example: usize,
    pub is_turned: bool,
}

impl Fours<'_> {
    /// Rows and columns exchanged.
    pub fn transposed(self) -> Self {
        Self { row: self.column, column: self.row, is_turned: !self.is_turned, ..self }
    }

    fn info(&self) -> [u32; 5] {
        [self.first, self.row, self.column, self.head, self.example].map(|n| n as u32)
    }

    /// Whether vectors are full, of a matrix of so many rows and columns.
    fn fill(&self, [rows, columns]: [usize; 2]) -> bool {
        if self.is_turned { rows.is_multiple_of(4) } else { columns.is_multiple_of(4) }
    }
}

/// What is added to a product.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bias<'a> {
    None,
    /// A number for each row.
    OfRows(&'a CubeTensor),
    /// A number for each column.
    OfColumns(&'a CubeTensor),
}

impl Bias<'_> {
    /// The same of a result whose rows and columns are exchanged.
    fn transposed(self) -> Self {
        match self {
            Self::None => self,
            Self::OfRows(bias) => Self::OfColumns(bias),
            Self::OfColumns(bias) => Self::OfRows(bias),
        }
    }
}

/// What becomes of a product before it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finish<'a> {
    pub bias: Bias<'a>,
    pub activation: Activation,
    pub onto: Option<Onto<'a>>,
}

/// What a result is added to, and what the sum is multiplied with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Onto<'a> {
    /// Lies as the result does.
    pub tensor: &'a CubeTensor,
    pub scale: f32,
}

impl<'a> Finish<'a> {
    /// Nothing at all.
    pub const NONE: Self = Self::biased(Bias::None);

    pub const fn biased(bias: Bias<'a>) -> Self {
        Self { bias, activation: Activation::None, onto: None }
    }

    fn transposed(self) -> Self {
        Self { bias: self.bias.transposed(), ..self }
    }

    fn constants(&self) -> [(&'static str, Constant); 2] {
        [("SILU", Flag(self.activation == Activation::Silu)), ("ONTO", Flag(self.onto.is_some()))]
    }

    /// What is added: each number's bias and `onto`. Shaders without one do not read it, so that it may be any.
    fn added(&self, any: &'a CubeTensor) -> [&'a CubeTensor; 2] {
        let bias = match self.bias {
            Bias::None => any,
            Bias::OfRows(bias) | Bias::OfColumns(bias) => bias,
        };
        [bias, self.onto.map_or(any, |onto| onto.tensor)]
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

    /// `y = factor·a·b`, and what follows.
    pub fn launch(self, a: &Matrices, b: &Matrices, finish: Finish<'_>, y: &Matrices) {
        if !self.launch_if_fours(a, b, finish, y) {
            self.launch_any(a, b, finish, y);
        }
    }

    /// The same where all three lie in vectors of four; else nothing, and `false`.
    pub fn launch_if_fours(self, a: &Matrices, b: &Matrices, finish: Finish<'_>, y: &Matrices) -> bool {
        let Self { rows, inner, columns, .. } = self;
        let lying = a.fours().zip(b.fours()).zip(y.fours());
        let Some(((a, b), y)) =
            lying.filter(|((a, b), y)| a.fill([rows, inner]) && b.fill([inner, columns]) && y.fill([rows, columns]))
        else {
            return false;
        };
        self.launch_fours([a, b, y], finish);
        true
    }

    /// The same of `[a, b, y]` that are known to lie so. Where columns do not lie in vectors there can be any number of them.
    pub fn launch_fours(self, [a, b, y]: [Fours<'_>; 3], finish: Finish<'_>) {
        if self.columns < self.rows.min(4 * LANES) {
            // yᵀ = bᵀ·aᵀ: invocations lie along columns, and should have work.
            let turned = Self { rows: self.columns, columns: self.rows, ..self };
            turned.launch_across([b, a, y].map(Fours::transposed), finish.transposed());
        } else {
            self.launch_across([a, b, y], finish);
        }
    }

    fn launch_across(&self, [a, b, y]: [Fours<'_>; 3], finish: Finish<'_>) {
        let n = self.examples * self.heads;
        let (rows, vectors) = self.tile();
        let lanes = self.columns.div_ceil(4 * vectors);
        let across = lanes.next_power_of_two().clamp(LANES, N_INVOCATIONS);
        let mut constants = vec![
            ("ACROSS", Count(across as u32)),
            ("ROWS", Count(rows as u32)),
            ("VECTORS", Count(vectors as u32)),
            ("A_TURNED", Flag(a.is_turned)),
            ("B_TURNED", Flag(b.is_turned)),
            ("Y_TURNED", Flag(y.is_turned)),
            ("BIAS_OF_COLUMNS", Flag(matches!(finish.bias, Bias::OfColumns(_)))),
            ("BIAS_OF_ROWS", Flag(matches!(finish.bias, Bias::OfRows(_)))),
        ];
        constants.extend(finish.constants());
        let count = [lanes.div_ceil(across), self.rows.div_ceil(rows), n];
        let info = self.info(finish, [a.info(), b.info(), y.info()]);
        let [bias, onto] = finish.added(b.tensor);
        let inputs = [a.tensor, b.tensor, bias, onto];
        Program { shader: Shader::Product, constants }.launch(count, &inputs, &[y.tensor], &info);
    }

    /// What an invocation makes: rows, and vectors of four columns. The more, the less is loaded, and the fewer invocations there are to keep a card busy.
    fn tile(&self) -> (usize, usize) {
        let vectors = self.columns.div_ceil(4);
        let fits = |&(rows, wide): &(usize, usize)| {
            let invocations = self.examples * self.heads * self.rows.div_ceil(rows) * vectors.div_ceil(wide);
            rows < self.rows + 4 && vectors >= wide * LANES && invocations >= ENOUGH_INVOCATIONS
        };
        TILES.into_iter().find(fits).unwrap_or((4, 1))
    }

    fn launch_any(&self, a: &Matrices, b: &Matrices, finish: Finish<'_>, y: &Matrices) {
        let n = self.examples * self.heads;
        // The larger a tile, the less is loaded, and the fewer invocations there are to keep a card busy.
        let largest = if n * self.rows * self.columns < 1 << 15 { 4 } else { 8 };
        let tile = |size: usize, invocations: usize| size.div_ceil(invocations).next_power_of_two().min(largest);
        let (columns, rows) = (tile(self.columns, WORKGROUP[0]), tile(self.rows, WORKGROUP[1]));
        assert!(!matches!(finish.bias, Bias::OfRows(_)), "products of any matrices have biases of columns");
        let mut constants = vec![
            ("ROWS", Count(rows as u32)),
            ("COLUMNS", Count(columns as u32)),
            ("BIASED", Flag(!matches!(finish.bias, Bias::None))),
        ];
        constants.extend(finish.constants());
        let count = [self.columns.div_ceil(WORKGROUP[0] * columns), self.rows.div_ceil(WORKGROUP[1] * rows), n];
        let info = self.info(finish, [a.info(), b.info(), y.info()]);
        let [bias, onto] = finish.added(&b.tensor);
        let inputs = [&a.tensor, &b.tensor, bias, onto];
        Program { shader: Shader::ProductAny, constants }.launch(count, &inputs, &[&y.tensor], &info);
    }

    fn info(&self, finish: Finish<'_>, matrices: [[u32; 5]; 3]) -> Vec<u32> {
        let sizes = [self.rows, self.inner, self.columns, self.heads].map(|n| n as u32);
        let scale = finish.onto.map_or(1.0, |onto| onto.scale);
        let factors = [self.factor as f32, scale].map(f32::to_bits);
        [&sizes[..], &factors, matrices.as_flattened()].concat()
    }
}

/// `x·weight + bias`, and what follows; `[…, from]` → `[…, to]`.
pub(super) fn connect(
    [x, weight, bias]: [CubeTensor; 3],
    activation: Activation,
    onto: Option<CubeTensor>,
) -> CubeTensor {
    let [from, to] = dims(&weight);
    let [x, weight, bias] = [x, weight, bias].map(in_order);
    let onto = onto.map(in_order);
    let mut shape = x.meta.shape().clone();
    let rows = shape.num_elements() / from;
    let last = shape.num_dims() - 1;
    shape[last] = to;
    let y = empty_of(&x, shape);
    let [a, b, result] = [(&x, from), (&weight, to), (&y, to)].map(|(tensor, width)| Matrices::rows(tensor, width));
    if let Some(onto) = &onto {
        // Shaders do not check where they read.
        assert_eq!(onto.meta.shape(), y.meta.shape(), "a sum is of two tensors of the same sizes");
    }
    let onto = onto.as_ref().map(|tensor| Onto { tensor, scale: 1.0 });
    let finish = Finish { bias: Bias::OfColumns(&bias), activation, onto };
    Product::one([rows, from, to]).launch(&a, &b, finish, &result);
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
        Product::one([self.rows, self.to, self.from]).launch(&dy, &weight.transposed(), Finish::NONE, &result);
        dx
    }

    /// `xᵀ·dy`.
    pub fn weight(&self) -> CubeTensor {
        let dw = empty_beside(&self.x, [self.from, self.to]);
        let (x, dy) = (Matrices::rows(&self.x, self.from), Matrices::rows(&self.dy, self.to));
        let result = Matrices::rows(&dw, self.to);
        Product::one([self.from, self.rows, self.to]).launch(&x.transposed(), &dy, Finish::NONE, &result);
        dw
    }

    pub fn bias(&self) -> CubeTensor {
        column_sums(&self.dy, self.rows, self.to)
    }
}
