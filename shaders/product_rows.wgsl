// The products of `product.wgsl`, y[i, j] = factor·Σₖ a[i, k]·b[k, j] + bias[j], for matrices in which the numbers that are summed over lie side by side in
// both: they are loaded four at a time.
//
// From above: ROWS and COLUMNS, BIASED.

struct Matrix {
    // Where the first number is, and how far it is from there to the next row, column, head and example. All of `a` and `b` that is used is
    // a multiple of four.
    first: u32,
    row: u32,
    column: u32,
    head: u32,
    example: u32,
}

struct Info {
    rows: u32,
    // Over these it is summed.
    inner: u32,
    columns: u32,
    heads: u32,
    factor: f32,
    a: Matrix,
    b: Matrix,
    y: Matrix,
}

@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read> info: Info;

// A workgroup: invocations along the columns, and along the rows.
const ACROSS = 16u;
const DOWN = 4u;

fn first(matrix: Matrix, which: u32) -> u32 {
    let example = which / info.heads;
    return matrix.first + example * matrix.example + (which - example * info.heads) * matrix.head;
}

@compute @workgroup_size(ACROSS, DOWN)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let first_column = group.x * ACROSS * COLUMNS + local.x;
    let first_row = group.y * DOWN * ROWS + local.y;
    if first_row >= info.rows || first_column >= info.columns {
        return;
    }
    // What is beyond the end does the last one's work, for nothing.
    var a_at: array<u32, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
        a_at[i] = (first(info.a, group.z) + min(first_row + DOWN * i, info.rows - 1u) * info.a.row) / 4u;
    }
    var b_at: array<u32, COLUMNS>;
    for (var j = 0u; j < COLUMNS; j++) {
        b_at[j] = (first(info.b, group.z) + min(first_column + ACROSS * j, info.columns - 1u) * info.b.column) / 4u;
    }
    let n_vectors = info.inner / 4u;
    var sums: array<array<f32, COLUMNS>, ROWS>;
    for (var k = 0u; k < n_vectors; k++) {
        var values: array<vec4<f32>, COLUMNS>;
        for (var j = 0u; j < COLUMNS; j++) {
            values[j] = b[b_at[j] + k];
        }
        for (var i = 0u; i < ROWS; i++) {
            let value = a[a_at[i] + k];
            for (var j = 0u; j < COLUMNS; j++) {
                sums[i][j] += dot(value, values[j]);
            }
        }
    }
    let y_at = first(info.y, group.z);
    for (var i = 0u; i < ROWS; i++) {
        let row = first_row + DOWN * i;
        for (var j = 0u; j < COLUMNS; j++) {
            let column = first_column + ACROSS * j;
            if row < info.rows && column < info.columns {
                var sum = sums[i][j] * info.factor;
                if BIASED {
                    sum += bias[column];
                }
                y[y_at + row * info.y.row + column * info.y.column] = sum;
            }
        }
    }
}
