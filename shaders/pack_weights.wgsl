// Weights as `conv.wgsl` reads them: [vectors of four input channels, taps, output channels], filled up with zeros.
//
// From above: TAPS, and MIRRORED, with which the taps come in the opposite order, as gradients want them.

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
@group(0) @binding(1) var<storage, read_write> packed: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= info.width {
        return;
    }
    let tap = id.y % TAPS;
    let channel = 4u * (id.y / TAPS);
    var value = vec4<f32>();
    if id.x < info.to_channels {
        let at = id.x * info.to_step + channel * info.from_step + select(tap, TAPS - 1u - tap, MIRRORED);
        value.x = weights[at];
        if channel + 1u < info.from_channels { value.y = weights[at + info.from_step]; }
        if channel + 2u < info.from_channels { value.z = weights[at + 2u * info.from_step]; }
        if channel + 3u < info.from_channels { value.w = weights[at + 3u * info.from_step]; }
    }
    packed[id.y * info.width + id.x] = value;
}
