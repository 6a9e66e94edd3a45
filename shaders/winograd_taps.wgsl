// The gradient of weights, from Winograd's form back to 3 × 3 taps: Gᵀ·u·G, what `winograd_weights.wgsl` does, backwards. One pair of channels an invocation.

struct Info {
    from_channels: u32,
    to_channels: u32,
}

// [36, from_channels, to_channels]
@group(0) @binding(0) var<storage, read> x: array<f32>;
// [to_channels, from_channels, 3, 3]
@group(0) @binding(1) var<storage, read_write> weights: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

// Gᵀ times six numbers.
fn transformed(u: array<f32, 6>) -> vec3<f32> {
    let a = (u[1] + u[2]) / 6.0;
    let b = u[3] + u[4];
    return vec3(u[0] / 4.0 - a + b / 24.0, (u[2] - u[1]) / 6.0 + (u[3] - u[4]) / 12.0, b / 6.0 - a + u[5]);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let to_channel = id.x;
    let from_channel = id.y;
    if to_channel >= info.to_channels {
        return;
    }
    let step = info.from_channels * info.to_channels;
    let first = from_channel * info.to_channels + to_channel;
    var rows: array<vec3<f32>, 6>;
    for (var r = 0u; r < 6u; r++) {
        var values: array<f32, 6>;
        for (var c = 0u; c < 6u; c++) {
            values[c] = x[first + (6u * r + c) * step];
        }
        rows[r] = transformed(values);
    }
    let at = (to_channel * info.from_channels + from_channel) * 9u;
    for (var c = 0u; c < 3u; c++) {
        let column = transformed(array(rows[0][c], rows[1][c], rows[2][c], rows[3][c], rows[4][c], rows[5][c]));
        for (var r = 0u; r < 3u; r++) {
            weights[at + 3u * r + c] = column[r];
        }
    }
}
