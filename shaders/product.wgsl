// Matrix products, one for each head of each example: y[i, j] = factor·Σₖ a[i, k]·b[k, j] + bias, and what follows such a product: SiLU, or a sum with what it is
// added to, (y + onto)·scale.
//
// Each of the three lies in vectors of four numbers: four neighbours of a row, or, if it is turned, of a column. So nothing is transposed beforehand: linear
// layers and convolutions of one pixel, their gradients, the products of attention, and those of Winograd's form.
//
// Each invocation makes ROWS × VECTORS vectors of the result in registers. Neighbouring invocations make neighbouring columns of the same rows, so that a
// workgroup reads each number of `a` once.
//
// From above: ACROSS, the invocations of a workgroup; ROWS, a multiple of four; VECTORS, of four columns each; A_TURNED, B_TURNED and Y_TURNED; BIAS_OF_COLUMNS and
// BIAS_OF_ROWS; SILU and ONTO.

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
    // What the sum with `onto` is multiplied with.
    scale: f32,
    a: Matrix,
    b: Matrix,
    y: Matrix,
}

@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
// Lies as the result does. Without ONTO it is not read.
@group(0) @binding(3) var<storage, read> onto: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> info: Info;

fn first(matrix: Matrix, which: u32) -> u32 {
    let example = which / info.heads;
    return matrix.first + example * matrix.example + (which - example * info.heads) * matrix.head;
}

fn store(at: u32, value: vec4<f32>) {
    var result = value;
    if SILU { result /= 1.0 + exp(-result); }
    if ONTO { result = (result + onto[at]) * info.scale; }
    y[at] = result;
}

@compute @workgroup_size(ACROSS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let first_vector = group.x * ACROSS * VECTORS + index;
    let first_row = ROWS * group.y;
    if 4u * first_vector >= info.columns {
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
    var b_at: array<vec4<u32>, VECTORS>;
    for (var j = 0u; j < VECTORS; j++) {
        let vector = min(first_vector + j * ACROSS, (info.columns - 1u) / 4u);
        if B_TURNED {
            let columns = min(vec4(4u * vector) + vec4(0u, 1u, 2u, 3u), vec4(info.columns - 1u));
            b_at[j] = vec4(b_first) + columns * info.b.column;
        } else {
            b_at[j] = vec4(b_first + vector * info.b.column);
        }
    }
    let a_step = info.a.column;
    let b_step = info.b.row;
    var sums: array<array<vec4<f32>, VECTORS>, ROWS>;
    var k = 0u;
    for (; k + 4u <= info.inner; k += 4u) {
        // Four rows of four columns each.
        var blocks: array<mat4x4<f32>, VECTORS>;
        for (var j = 0u; j < VECTORS; j++) {
            if B_TURNED {
                let at = b_at[j] + vec4(k / 4u * b_step);
                blocks[j] = transpose(mat4x4(b[at.x], b[at.y], b[at.z], b[at.w]));
            } else {
                let at = b_at[j].x + k * b_step;
                blocks[j] = mat4x4(b[at], b[at + b_step], b[at + 2u * b_step], b[at + 3u * b_step]);
            }
        }
        for (var v = 0u; v < ROWS; v += 4u) {
            var rows: mat4x4<f32>;
            if A_TURNED {
                let at = a_at[v] + k * a_step;
                rows = transpose(mat4x4(a[at], a[at + a_step], a[at + 2u * a_step], a[at + 3u * a_step]));
            } else {
                let at = k / 4u * a_step;
                rows = mat4x4(a[a_at[v] + at], a[a_at[v + 1u] + at], a[a_at[v + 2u] + at], a[a_at[v + 3u] + at]);
            }
            for (var i = 0u; i < 4u; i++) {
                for (var j = 0u; j < VECTORS; j++) {
                    sums[v + i][j] += blocks[j] * rows[i];
                }
            }
        }
    }
    // Where neither lies in vectors along what is summed over, there can be a rest.
    if A_TURNED && !B_TURNED {
        for (; k < info.inner; k++) {
            for (var j = 0u; j < VECTORS; j++) {
                let row = b[b_at[j].x + k * b_step];
                for (var v = 0u; v < ROWS; v += 4u) {
                    let column = a[a_at[v] + k * a_step];
                    for (var i = 0u; i < 4u; i++) {
                        sums[v + i][j] += column[i] * row;
                    }
                }
            }
        }
    }
    let y_at = first(info.y, group.z);
    for (var j = 0u; j < VECTORS; j++) {
        let vector = first_vector + j * ACROSS;
        let first_column = 4u * vector;
        if first_column < info.columns {
            var added = vec4<f32>();
            if BIAS_OF_COLUMNS {
                for (var i = 0u; i < 4u; i++) {
                    added[i] = bias[min(first_column + i, info.columns - 1u)];
                }
            }
            for (var v = 0u; v < ROWS; v += 4u) {
                var rows: mat4x4<f32>;
                for (var i = 0u; i < 4u; i++) {
                    rows[i] = sums[v + i][j] * info.factor + added;
                    if BIAS_OF_ROWS {
                        rows[i] += vec4(bias[min(first_row + v + i, info.rows - 1u)]);
                    }
                }
                if Y_TURNED {
                    if first_row + v < info.rows {
                        let at = y_at + (first_row + v) / 4u * info.y.row + first_column * info.y.column;
                        let columns = transpose(rows);
                        for (var i = 0u; i < 4u; i++) {
                            if first_column + i < info.columns {
                                store(at + i * info.y.column, columns[i]);
                            }
                        }
                    }
                } else {
                    for (var i = 0u; i < 4u; i++) {
                        if first_row + v + i < info.rows {
                            store(y_at + (first_row + v + i) * info.y.row + vector * info.y.column, rows[i]);
                        }
                    }
                }
            }
        }
    }
}
