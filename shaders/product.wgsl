// Matrix products, one for each head of each example: y[i, j] = factor·Σₖ a[i, k]·b[k, j] + bias.
//
// Each of the three lies in vectors of four numbers: four neighbours of a row, or, if it is turned, of a column. So nothing is transposed beforehand: linear
// layers and convolutions of one pixel, their gradients, the products of attention, and those of Winograd's form.
//
// Each invocation makes ROWS × 4 of the result in registers. Neighbouring invocations make neighbouring columns of the same rows, so that a workgroup reads
// each number of `a` once.
//
// From above: ACROSS, the invocations of a workgroup; ROWS, a multiple of four; A_TURNED, B_TURNED and Y_TURNED; BIAS_OF_COLUMNS and BIAS_OF_ROWS.

struct Matrix {
    // Where the first vector is, and how far it is from there to the next row, column, head and example; where rows or columns lie in vectors, to the next
    // four of them.
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
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> info: Info;

const ROW_VECTORS = ROWS / 4u;

fn first(matrix: Matrix, which: u32) -> u32 {
    let example = which / info.heads;
    return matrix.first + example * matrix.example + (which - example * info.heads) * matrix.head;
}

@compute @workgroup_size(ACROSS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let column_vector = group.x * ACROSS + index;
    let first_column = 4u * column_vector;
    let first_row = ROWS * group.y;
    if first_column >= info.columns {
        return;
    }
    // What is beyond the end does the last one's work, for nothing.
    let a_first = first(info.a, group.z);
    var a_at: array<u32, ROWS>;
    for (var i = 0u; i < ROWS; i++) {
        if A_TURNED {
            a_at[i] = a_first + min(first_row / 4u + i / 4u, (info.rows - 1u) / 4u) * info.a.row;
        } else {
            a_at[i] = a_first + min(first_row + i, info.rows - 1u) * info.a.row;
        }
    }
    let b_first = first(info.b, group.z);
    var b_at = vec4(b_first + column_vector * info.b.column);
    if B_TURNED {
        let columns = min(vec4(first_column) + vec4(0u, 1u, 2u, 3u), vec4(info.columns - 1u));
        b_at = vec4(b_first) + columns * info.b.column;
    }
    let a_step = info.a.column;
    let b_step = info.b.row;
    var sums: array<vec4<f32>, ROWS>;
    var k = 0u;
    for (; k + 4u <= info.inner; k += 4u) {
        // Four rows of four columns.
        var block: mat4x4<f32>;
        if B_TURNED {
            let at = b_at + vec4(k / 4u * b_step);
            block = transpose(mat4x4(b[at.x], b[at.y], b[at.z], b[at.w]));
        } else {
            let at = b_at.x + k * b_step;
            block = mat4x4(b[at], b[at + b_step], b[at + 2u * b_step], b[at + 3u * b_step]);
        }
        if A_TURNED {
            for (var v = 0u; v < ROW_VECTORS; v++) {
                let at = a_at[4u * v] + k * a_step;
                let rows = transpose(mat4x4(a[at], a[at + a_step], a[at + 2u * a_step], a[at + 3u * a_step]));
                for (var i = 0u; i < 4u; i++) {
                    sums[4u * v + i] += block * rows[i];
                }
            }
        } else {
            for (var i = 0u; i < ROWS; i++) {
                sums[i] += block * a[a_at[i] + k / 4u * a_step];
            }
        }
    }
    // Where neither lies in vectors along what is summed over, there can be a rest.
    if A_TURNED && !B_TURNED {
        for (; k < info.inner; k++) {
            let row = b[b_at.x + k * b_step];
            for (var v = 0u; v < ROW_VECTORS; v++) {
                let column = a[a_at[4u * v] + k * a_step];
                for (var i = 0u; i < 4u; i++) {
                    sums[4u * v + i] += column[i] * row;
                }
            }
        }
    }
    var added = vec4<f32>();
    if BIAS_OF_COLUMNS {
        added = vec4(bias[first_column], bias[first_column + 1u], bias[first_column + 2u], bias[first_column + 3u]);
    }
    for (var i = 0u; i < ROWS; i++) {
        sums[i] = sums[i] * info.factor + added;
        if BIAS_OF_ROWS {
            sums[i] += vec4(bias[min(first_row + i, info.rows - 1u)]);
        }
    }
    let y_at = first(info.y, group.z);
    if Y_TURNED {
        for (var v = 0u; v < ROW_VECTORS; v++) {
            if first_row + 4u * v < info.rows {
                let at = y_at + (first_row / 4u + v) * info.y.row + first_column * info.y.column;
                let columns = transpose(mat4x4(sums[4u * v], sums[4u * v + 1u], sums[4u * v + 2u], sums[4u * v + 3u]));
                for (var j = 0u; j < 4u; j++) {
                    if first_column + j < info.columns {
                        y[at + j * info.y.column] = columns[j];
                    }
                }
            }
        }
    } else {
        for (var i = 0u; i < ROWS; i++) {
            if first_row + i < info.rows {
                y[y_at + (first_row + i) * info.y.row + column_vector * info.y.column] = sums[i];
            }
        }
    }
}
