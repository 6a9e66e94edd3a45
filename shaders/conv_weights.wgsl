// The gradient of a convolution's weights: dw[to, from, tap] = Σ over pixels of dy[to]·x[from] under the tap, of pictures and gradients that
// `pack.wgsl` has laid out.
//
// Each invocation makes 8 output channels × 12 weights in registers, of four input channels each: a row of three taps, along which a window moves; or
// 8 × 8, where a kernel has one tap. The lines of all pictures are cut into parts, so that small layers keep a large card busy; `parts.wgsl` adds them up.
//
// From above: SIZE (1 or 3), STRIDE (1 or 2); N_VALUES, the vectors of x that an invocation looks at: three neighbours, or two planes.

struct Info {
    from_channels: u32,
    to_channels: u32,
    // Of the gradient, which has no border.
    height: u32,
    width: u32,
    // Of the pictures: vectors in a row, and in a plane.
    row: u32,
    plane: u32,
    // Of all gradients.
    n_lines: u32,
    lines_per_part: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> parts: array<f32>;
@group(0) @binding(3) var<storage, read> info: Info;

const FROM_VECTORS = select(2u, 1u, SIZE == 3u);

// column ⊗ row, added to `sum`.
fn add_product(sum: mat4x4<f32>, column: vec4<f32>, row: vec4<f32>) -> mat4x4<f32> {
    return mat4x4(sum[0] + column * row.x, sum[1] + column * row.y, sum[2] + column * row.z, sum[3] + column * row.w);
}

// Writes four output channels × four input channels of one tap.
fn store(part: u32, to_vector: u32, from_vector: u32, tap: u32, sum: mat4x4<f32>) {
    const TAPS = SIZE * SIZE;
    let from_channel = 4u * from_vector;
    var columns = array(sum[0], sum[1], sum[2], sum[3]);
    for (var i = 0u; i < 4u; i++) {
        let to_channel = 4u * to_vector + i;
        if to_channel < info.to_channels {
            let at = ((part * info.to_channels + to_channel) * info.from_channels + from_channel) * TAPS + tap;
            if from_channel < info.from_channels { parts[at] = columns[i].x; }
            if from_channel + 1u < info.from_channels { parts[at + TAPS] = columns[i].y; }
            if from_channel + 2u < info.from_channels { parts[at + 2u * TAPS] = columns[i].z; }
            if from_channel + 3u < info.from_channels { parts[at + 3u * TAPS] = columns[i].w; }
        }
    }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let ky = id.x % SIZE;
    // Vectors of four channels; past the last one the last is taken, and nothing is written.
    let from_vector = id.x / SIZE * FROM_VECTORS;
    let to_vector = id.y * 2u;
    let from_vectors = (info.from_channels + 3u) / 4u;
    let to_vectors = (info.to_channels + 3u) / 4u;
    if from_vector >= from_vectors {
        return;
    }
    let x_next = select(0u, info.plane, from_vector + 1u < from_vectors);
    let area = info.height * info.width;
    let dy_next = select(0u, area, to_vector + 1u < to_vectors);
    var first: array<mat4x4<f32>, N_VALUES>;
    var second: array<mat4x4<f32>, N_VALUES>;
    let end = min(info.n_lines, (id.z + 1u) * info.lines_per_part);
    for (var line = id.z * info.lines_per_part; line < end; line++) {
        let picture = line / info.height;
        let row = line - picture * info.height;
        let x_line = (picture * from_vectors + from_vector) * info.plane + (row * STRIDE + ky) * info.row;
        let dy_line = (picture * to_vectors + to_vector) * area + row * info.width;
        var values: array<vec4<f32>, N_VALUES>;
        if SIZE == 3u {
            values[0] = x[x_line];
            values[1] = x[x_line + 1u];
        }
        for (var column = 0u; column < info.width; column++) {
            let x_at = x_line + column * STRIDE;
            if SIZE == 3u {
                values[N_VALUES - 1u] = x[x_at + 2u];
            } else {
                values[0] = x[x_at];
                values[1] = x[x_at + x_next];
            }
            let to_first = dy[dy_line + column];
            let to_second = dy[dy_line + column + dy_next];
            for (var k = 0u; k < N_VALUES; k++) {
                first[k] = add_product(first[k], values[k], to_first);
                second[k] = add_product(second[k], values[k], to_second);
            }
            if SIZE == 3u && STRIDE == 1u {
                values[0] = values[1];
                values[1] = values[N_VALUES - 1u];
            } else if SIZE == 3u {
                values[0] = values[N_VALUES - 1u];
                // Past the end of a row, where it is not used any more, lies the next; past the last one, nothing.
                values[1] = x[min(x_at + 3u, arrayLength(&x) - 1u)];
            }
        }
    }
    for (var k = 0u; k < N_VALUES; k++) {
        let vector = select(from_vector + k, from_vector, SIZE == 3u);
        let tap = select(0u, ky * SIZE + k, SIZE == 3u);
        store(id.z, to_vector, vector, tap, first[k]);
        store(id.z, to_vector + 1u, vector, tap, second[k]);
    }
}
