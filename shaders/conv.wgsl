// Convolution: y = x ∗ w + bias, of pictures and weights that `pack.wgsl` and `pack_weights.wgsl` have laid out.
//
// Each invocation makes PIXELS × CHANNELS of the result in registers: all its numbers are loaded as vectors of four input channels, and each loaded
// vector is used PIXELS or CHANNELS times. Neighbouring invocations load neighbouring pixels; the weights are the same for all of them, so that both
// come out of a card's cache.
//
// From above: SIZE (1 or 3), STRIDE (1 or 2), BIASED, PIXELS and CHANNELS.

struct Info {
    // Vectors of four input channels.
    from_vectors: u32,
    to_channels: u32,
    // Of the pictures that go out.
    height: u32,
    width: u32,
    // Of the pictures that come in: vectors in a row, and in a plane.
    row: u32,
    plane: u32,
    // Output channels in the weights, a multiple of CHANNELS.
    weight_channels: u32,
    // Of all pictures that go out.
    n_pixels: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read> info: Info;

// A workgroup: invocations along the pixels, and along the channels.
const ACROSS = 16u;
const DOWN = 4u;

const TAPS = SIZE * SIZE;

@compute @workgroup_size(ACROSS, DOWN)
fn main(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let area = info.height * info.width;
    let first_pixel = (group.z * count.x + group.x) * ACROSS * PIXELS + local.x;
    let first_channel = id.y * CHANNELS;
    if first_channel >= info.to_channels {
        return;
    }
    // Where the first tap of each pixel meets the input. What is beyond the end does the last pixel's work, for nothing.
    var places: array<u32, PIXELS>;
    for (var i = 0u; i < PIXELS; i++) {
        let pixel = min(first_pixel + ACROSS * i, info.n_pixels - 1u);
        let picture = pixel / area;
        let rest = pixel - picture * area;
        let line = rest / info.width;
        let column = rest - line * info.width;
        places[i] = picture * info.from_vectors * info.plane + (line * info.row + column) * STRIDE;
    }
    var sums: array<array<f32, CHANNELS>, PIXELS>;
    var weight = first_channel;
    for (var vector = 0u; vector < info.from_vectors; vector++) {
        for (var tap = 0u; tap < TAPS; tap++) {
            var w: array<vec4<f32>, CHANNELS>;
            for (var j = 0u; j < CHANNELS; j++) {
                w[j] = weights[weight + j];
            }
            let place = vector * info.plane + tap / SIZE * info.row + tap % SIZE;
            for (var i = 0u; i < PIXELS; i++) {
                let value = x[places[i] + place];
                for (var j = 0u; j < CHANNELS; j++) {
                    sums[i][j] += dot(value, w[j]);
                }
            }
            weight += info.weight_channels;
        }
    }
    for (var i = 0u; i < PIXELS; i++) {
        let pixel = first_pixel + ACROSS * i;
        if pixel < info.n_pixels {
            let picture = pixel / area;
            let at = picture * info.to_channels * area + (pixel - picture * area);
            for (var j = 0u; j < CHANNELS; j++) {
                let channel = first_channel + j;
                if channel < info.to_channels {
                    var sum = sums[i][j];
                    if BIASED {
                        sum += bias[channel];
                    }
                    y[at + channel * area] = sum;
                }
            }
        }
    }
}
