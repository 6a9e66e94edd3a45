// Weights of 3 × 3 taps in Winograd's form, G·g·Gᵀ: what `winograd_product.wgsl` reads. One pair of channels an invocation.
//
// Lavin and Gray 2016, F(4 × 4, 3 × 3).
//
// From above: MIRRORED, with which the taps come in the opposite order, as gradients want them.

struct Info {
    from_channels: u32,
    to_channels: u32,
    // From one output channel to the next in the weights as they are, and from one input channel to the next.
    to_step: u32,
    from_step: u32,
    // Output channels of the result.
    width: u32,
}

@group(0) @binding(0) var<storage, read> weights: array<f32>;
// [36, from_channels/4, width, 4]
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

// G times three numbers.
fn transformed(g: vec3<f32>) -> array<f32, 6> {
    let a = -(g.x + g.z) / 6.0;
    let b = g.y / 6.0;
    let c = g.x / 24.0 + g.z / 6.0;
    let d = g.y / 12.0;
    return array(g.x / 4.0, a - b, a + b, c + d, c - d, g.z);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let to_channel = id.x;
    let from_channel = id.y;
    if to_channel >= info.width {
        return;
    }
    var taps: array<f32, 9>;
    if to_channel < info.to_channels && from_channel < info.from_channels {
        let at = to_channel * info.to_step + from_channel * info.from_step;
        for (var tap = 0u; tap < 9u; tap++) {
            taps[tap] = weights[at + select(tap, 8u - tap, MIRRORED)];
        }
    }
    var columns: array<array<f32, 6>, 3>;
    for (var c = 0u; c < 3u; c++) {
        columns[c] = transformed(vec3(taps[c], taps[3u + c], taps[6u + c]));
    }
    let step = (info.from_channels + 3u) / 4u * info.width * 4u;
    let first = (from_channel / 4u * info.width + to_channel) * 4u + from_channel % 4u;
    for (var r = 0u; r < 6u; r++) {
        let row = transformed(vec3(columns[0][r], columns[1][r], columns[2][r]));
        for (var c = 0u; c < 6u; c++) {
            result[first + (6u * r + c) * step] = row[c];
        }
    }
}
