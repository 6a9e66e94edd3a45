// The products of `product.wgsl`, y[i, j] = factor·Σₖ a[i, k]·b[k, j] + bias[j], and what follows them, for matrices of any sizes that lie in any order, a number at a time.
//
// Each invocation makes ROWS × COLUMNS of the result in registers; neighbouring invocations make neighbouring columns.
//
// From above: ROWS and COLUMNS; BIASED, SILU and ONTO.

struct Matrix {
    // Where the first number is, and how far it is from there to the next row, column, head and example.
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
    // What the sum with `onto` is multiplied with.
    scale: f32,
    a: Matrix,
    b: Matrix,
    y: Matrix,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
// Lies as the result does. Without ONTO it is not read.
@group(0) @binding(3) var<storage, read> onto: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> info: Info;

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
        a_at[i] = first(info.a, group.z) + min(first_row + DOWN * i, info.rows - 1u) * info.a.row;
    }
    var b_at: array<u32, COLUMNS>;
    for (var j = 0u; j < COLUMNS; j++) {
        b_at[j] = first(info.b, group.z) + min(first_column + ACROSS * j, info.columns - 1u) * info.b.column;
    }
    let a_step = info.a.column;
    let b_step = info.b.row;
    let inner = info.inner;
    var sums: array<array<f32, COLUMNS>, ROWS>;
    // Four at a time: the sums, more than there are registers on some devices, are then touched once for four products.
    var k = 0u;
    for (; k + 4u <= inner; k += 4u) {
        var values: array<vec4<f32>, COLUMNS>;
        for (var j = 0u; j < COLUMNS; j++) {
            let at = b_at[j] + k * b_step;
            values[j] = vec4(b[at], b[at + b_step], b[at + 2u * b_step], b[at + 3u * b_step]);
        }
        for (var i = 0u; i < ROWS; i++) {
            let at = a_at[i] + k * a_step;
            let value = vec4(a[at], a[at + a_step], a[at + 2u * a_step], a[at + 3u * a_step]);
            for (var j = 0u; j < COLUMNS; j++) {
                sums[i][j] += dot(value, values[j]);
            }
        }
    }
    for (; k < inner; k++) {
        for (var i = 0u; i < ROWS; i++) {
            for (var j = 0u; j < COLUMNS; j++) {
                sums[i][j] += a[a_at[i] + k * a_step] * b[b_at[j] + k * b_step];
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
                let at = y_at + row * info.y.row + column * info.y.column;
                if SILU { sum /= 1.0 + exp(-sum); }
                if ONTO { sum = (sum + onto[at]) * info.scale; }
                y[at] = sum;
            }
        }
    }
}
