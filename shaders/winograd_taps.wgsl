// The gradient of weights, from Winograd's form back to 3 × 3 taps: Gᵀ·u·G, what `winograd_weights.wgsl` does, backwards. One channel that comes in and four that go
// out an invocation.

struct Info {
    from_channels: u32,
    to_channels: u32,
    // From one of the 36 numbers to the next.
    step: u32,
}

// [36, from, to/4], four channels in a vector.
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [to_channels, from_channels, 3, 3]
@group(0) @binding(1) var<storage, read_write> weights: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

// Gᵀ times six numbers.
fn transformed(u: array<vec4<f32>, 6>) -> array<vec4<f32>, 3> {
    let a = (u[1] + u[2]) / 6.0;
    let b = u[3] + u[4];
    return array(u[0] / 4.0 - a + b / 24.0, (u[2] - u[1]) / 6.0 + (u[3] - u[4]) / 12.0, b / 6.0 - a + u[5]);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let to_vectors = (info.to_channels + 3u) / 4u;
    let from_channel = id.x / to_vectors;
    let to_vector = id.x - from_channel * to_vectors;
    if from_channel >= info.from_channels {
        return;
    }
    var columns: array<array<vec4<f32>, 3>, 6>;
    for (var c = 0u; c < 6u; c++) {
        var values = array<vec4<f32>, 6>();
        for (var r = 0u; r < 6u; r++) {
            values[r] = x[id.x + (6u * r + c) * info.step];
        }
        columns[c] = transformed(values);
    }
    for (var r = 0u; r < 3u; r++) {
        let row = transformed(array(columns[0][r], columns[1][r], columns[2][r], columns[3][r], columns[4][r], columns[5][r]));
        for (var c = 0u; c < 4u; c++) {
            let to_channel = 4u * to_vector + c;
            if to_channel < info.to_channels {
                let at = (to_channel * info.from_channels + from_channel) * 9u + 3u * r;
                weights[at] = row[0][c];
                weights[at + 1u] = row[1][c];
                weights[at + 2u] = row[2][c];
            }
        }
    }
}
