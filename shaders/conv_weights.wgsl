// The gradient of a convolution's weights: dw[to, from, tap] = Σ over pixels of dy[to]·x[from] under the tap, of pictures and gradients that
// `pack.wgsl` has laid out.
//
// Each invocation makes 8 output channels × 8 input channels of one tap in registers. The lines of all pictures are cut into parts, so that small layers
// keep a large card busy; `parts.wgsl` adds them up.
//
// From above: SIZE (1 or 3), STRIDE (1 or 2).

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

const TAPS = SIZE * SIZE;

// row ⊗ column, added to `sum`.
fn add_product(sum: mat4x4<f32>, column: vec4<f32>, row: vec4<f32>) -> mat4x4<f32> {
    return mat4x4(sum[0] + column * row.x, sum[1] + column * row.y, sum[2] + column * row.z, sum[3] + column * row.w);
}

// Writes four output channels × four input channels.
fn store(part: u32, to_vector: u32, from_vector: u32, tap: u32, sum: mat4x4<f32>) {
    var columns = array(sum[0], sum[1], sum[2], sum[3]);
    for (var i = 0u; i < 4u; i++) {
        let to_channel = 4u * to_vector + i;
        let first = ((part * info.to_channels + to_channel) * info.from_channels + 4u * from_vector) * TAPS + tap;
        if to_channel < info.to_channels {
            let count = min(4u, info.from_channels - min(info.from_channels, 4u * from_vector));
            if count > 0u { parts[first] = columns[i].x; }
            if count > 1u { parts[first + TAPS] = columns[i].y; }
            if count > 2u { parts[first + 2u * TAPS] = columns[i].z; }
            if count > 3u { parts[first + 3u * TAPS] = columns[i].w; }
        }
    }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let tap = id.x % TAPS;
    // Vectors of four channels; past the last one the last is taken, and nothing is written.
    let from_vector = id.x / TAPS * 2u;
    let to_vector = id.y * 2u;
    let from_vectors = (info.from_channels + 3u) / 4u;
    let to_vectors = (info.to_channels + 3u) / 4u;
    if from_vector >= from_vectors {
        return;
    }
    let x_next = select(0u, info.plane, from_vector + 1u < from_vectors);
    let area = info.height * info.width;
    let dy_next = select(0u, area, to_vector + 1u < to_vectors);
    var sums: array<mat4x4<f32>, 4>;
    let end = min(info.n_lines, (id.z + 1u) * info.lines_per_part);
    for (var line = id.z * info.lines_per_part; line < end; line++) {
        let picture = line / info.height;
        let row = line - picture * info.height;
        var x_at = (picture * from_vectors + from_vector) * info.plane + (row * STRIDE + tap / SIZE) * info.row + tap % SIZE;
        var dy_at = (picture * to_vectors + to_vector) * area + row * info.width;
        for (var column = 0u; column < info.width; column++) {
            let from_0 = x[x_at];
            let from_1 = x[x_at + x_next];
            let to_0 = dy[dy_at];
            let to_1 = dy[dy_at + dy_next];
            sums[0] = add_product(sums[0], from_0, to_0);
            sums[1] = add_product(sums[1], from_1, to_0);
            sums[2] = add_product(sums[2], from_0, to_1);
            sums[3] = add_product(sums[3], from_1, to_1);
            x_at += STRIDE;
            dy_at += 1u;
        }
    }
    store(id.z, to_vector, from_vector, tap, sums[0]);
    store(id.z, to_vector, from_vector + 1u, tap, sums[1]);
    store(id.z, to_vector + 1u, from_vector, tap, sums[2]);
    store(id.z, to_vector + 1u, from_vector + 1u, tap, sums[3]);
}
