// Weights of 3 × 3 taps in Winograd's form, G·g·Gᵀ: as their product reads them. One channel that comes in and four that go out an invocation.
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
    // Vectors of four output channels in the result.
    width: u32,
    // Input channels in the result.
    height: u32,
}

@group(0) @binding(0) var<storage, read> weights: array<f32>;
// [36, height, width]
@group(0) @binding(1) var<storage, read_write> result: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> info: Info;

// G times three numbers.
fn transformed(x: vec4<f32>, y: vec4<f32>, z: vec4<f32>) -> array<vec4<f32>, 6> {
    let a = -(x + z) / 6.0;
    let b = y / 6.0;
    let c = x / 24.0 + z / 6.0;
    let d = y / 12.0;
    return array(x / 4.0, a - b, a + b, c + d, c - d, z);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let from_channel = id.x / info.width;
    let to_vector = id.x - from_channel * info.width;
    if from_channel >= info.height {
        return;
    }
    var taps: array<vec4<f32>, 9>;
    for (var c = 0u; c < 4u; c++) {
        let to_channel = 4u * to_vector + c;
        if to_channel < info.to_channels && from_channel < info.from_channels {
            let at = to_channel * info.to_step + from_channel * info.from_step;
            for (var tap = 0u; tap < 9u; tap++) {
                taps[tap][c] = weights[at + select(tap, 8u - tap, MIRRORED)];
            }
        }
    }
    var columns: array<array<vec4<f32>, 6>, 3>;
    for (var c = 0u; c < 3u; c++) {
        columns[c] = transformed(taps[c], taps[3u + c], taps[6u + c]);
    }
    let step = info.height * info.width;
    for (var r = 0u; r < 6u; r++) {
        let row = transformed(columns[0][r], columns[1][r], columns[2][r]);
        for (var c = 0u; c < 6u; c++) {
            result[id.x + (6u * r + c) * step] = row[c];
        }
    }
}
