// The gradients of weight, bias, scale and shift, from the sums of `norm_backward.wgsl`. One channel an invocation.
//
// From above: MODULATED (scale and shift).

struct Info {
    batch: u32,
    channels: u32,
}

// Σ dm and Σ dm·n of each channel of each picture.
@group(0) @binding(0) var<storage, read> sums: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> scale_shift: array<f32>;
@group(0) @binding(4) var<storage, read_write> d_weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> d_bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> d_scale_shift: array<f32>;
@group(0) @binding(7) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let channel = id.x;
    if channel >= info.channels {
        return;
    }
    var total = vec2<f32>();
    for (var picture = 0u; picture < info.batch; picture++) {
        let sum = sums[picture * info.channels + channel];
        if MODULATED {
            let at = 2u * picture * info.channels + channel;
            d_scale_shift[at] = sum.y * weight[channel] + sum.x * bias[channel];
            d_scale_shift[at + info.channels] = sum.x;
            total += sum * (1.0 + scale_shift[at]);
        } else {
            total += sum;
        }
    }
    d_bias[channel] = total.x;
    d_weight[channel] = total.y;
}
