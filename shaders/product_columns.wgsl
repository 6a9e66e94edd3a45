// The products of `product.wgsl`, y[i, j] = factor·Σₖ a[i, k]·b[k, j] + bias[j], for matrices that both lie row after row: four numbers of a row of `a`, and four
// columns of `b`, are loaded at a time.
//
// Each invocation makes ROWS × 4 of the result.
//
// From above: ROWS, BIASED.

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
    let first_column = 4u * (group.x * ACROSS + local.x);
    let first_row = group.y * DOWN * ROWS + local.y;
    if first_row >= info.rows || first_column >= info.columns {
        return;
    }
    // What is beyond the end does the last one's work, for nothing.
    var a_at: array<u32, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
        a_at[i] = (first(info.a, group.z) + min(first_row + DOWN * i, info.rows - 1u) * info.a.row) / 4u;
    }
    var b_at = (first(info.b, group.z) + first_column) / 4u;
    let step = info.b.row / 4u;
    let n_vectors = info.inner / 4u;
    var sums: array<vec4<f32>, ROWS>;
    for (var k = 0u; k < n_vectors; k++) {
        let columns = mat4x4(b[b_at], b[b_at + step], b[b_at + 2u * step], b[b_at + 3u * step]);
        for (var i = 0u; i < ROWS; i++) {
            sums[i] += columns * a[a_at[i] + k];
        }
        b_at += 4u * step;
    }
    let y_at = first(info.y, group.z) + first_column * info.y.column;
    for (var i = 0u; i < ROWS; i++) {
        let row = first_row + DOWN * i;
        if row < info.rows {
            var sum = sums[i] * info.factor;
            if BIASED {
                sum += vec4(bias[first_column], bias[first_column + 1u], bias[first_column + 2u], bias[first_column + 3u]);
            }
            let at = y_at + row * info.y.row;
            y[at] = sum.x;
            y[at + info.y.column] = sum.y;
            y[at + 2u * info.y.column] = sum.z;
            y[at + 3u * info.y.column] = sum.w;
        }
    }
}
