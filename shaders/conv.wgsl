// Convolution, and the gradient of its input: y = x ∗ w + bias.
//
// Pixels × channels, as a product of matrices of which one is never written down: each workgroup makes a tile of the result, each invocation
// PIXELS × CHANNELS of it in registers. Four input channels lie in a vector, and one row of the kernel is a step: the pixels and weights of a
// step are shared by the workgroup. Backwards, gradients come in where pictures did, and the weights' two channels change places.
//
// From above: SIZE (1 or 3), STRIDE (1 or 2), BACKWARD, PIXELS and CHANNELS.

struct Info {
    from_channels: u32,
    to_channels: u32,
    // Of the pictures that come in.
    height: u32,
    width: u32,
    // Of those that go out.
    out_height: u32,
    out_width: u32,
    // From one output channel to the next in the weights, and from one input channel to the next.
    weight_to: u32,
    weight_from: u32,
    // Of all pictures that go out.
    n_pixels: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read> info: Info;

const SIDE = 8u;
const N_INVOCATIONS = SIDE * SIDE;
const TILE_PIXELS = SIDE * PIXELS;
const TILE_CHANNELS = SIDE * CHANNELS;
const PADDING = i32(SIZE / 2u);
// Vectors in a row of a tile. Of a 1×1 convolution, a step takes 3 × 4 channels. An odd number, so that the rows begin in different banks of a card's memory.
const DEPTH = 3u;
const STEP = select(4u * DEPTH, 4u, SIZE == 3u);

var<workgroup> tile_x: array<vec4<f32>, TILE_PIXELS * DEPTH>;
var<workgroup> tile_w: array<vec4<f32>, TILE_CHANNELS * DEPTH>;
// Row, column and first number of the picture of each pixel of the tile; a row far away where there is no pixel.
var<workgroup> places: array<vec3<i32>, TILE_PIXELS>;

const NOWHERE = -100000;

fn place(pixel: u32) -> vec3<i32> {
    if pixel >= info.n_pixels {
        return vec3(NOWHERE, 0, 0);
    }
    let area = info.out_height * info.out_width;
    let picture = pixel / area;
    let rest = pixel - picture * area;
    let row = rest / info.out_width;
    let first = i32(picture * info.from_channels * info.height * info.width);
    return vec3(i32(row), i32(rest - row * info.out_width), first);
}

// Which line of the input the tap `k` of the output's line meets; a negative number for none.
fn meets(line: i32, k: u32) -> i32 {
    if !BACKWARD {
        return line * i32(STRIDE) + i32(k) - PADDING;
    }
    let spread = line + PADDING - i32(k);
    if spread % i32(STRIDE) != 0 {
        return NOWHERE;
    }
    return spread / i32(STRIDE);
}

// Four numbers that lie `stride` apart, of `count` that there are.
fn pixels_at(at: u32, stride: u32, count: u32) -> vec4<f32> {
    var value = vec4(x[at], 0.0, 0.0, 0.0);
    if count > 3u {
        value = vec4(value.x, x[at + stride], x[at + 2u * stride], x[at + 3u * stride]);
    } else {
        if count > 1u { value.y = x[at + stride]; }
        if count > 2u { value.z = x[at + 2u * stride]; }
    }
    return value;
}

fn weights_at(at: u32, stride: u32, count: u32) -> vec4<f32> {
    var value = vec4(weights[at], 0.0, 0.0, 0.0);
    if count > 3u {
        value = vec4(value.x, weights[at + stride], weights[at + 2u * stride], weights[at + 3u * stride]);
    } else {
        if count > 1u { value.y = weights[at + stride]; }
        if count > 2u { value.z = weights[at + 2u * stride]; }
    }
    return value;
}

// The pixels of step (channel, ky) of the whole workgroup.
fn share_pixels(index: u32, channel: u32, ky: u32) {
    let area = info.height * info.width;
    for (var m = index; m < TILE_PIXELS; m += N_INVOCATIONS) {
        let place = places[m];
        let row = meets(place.x, ky);
        for (var d = 0u; d < DEPTH; d++) {
            let column = meets(place.y, select(0u, d, SIZE == 3u));
            let first = select(channel + 4u * d, channel, SIZE == 3u);
            var value = vec4<f32>();
            if u32(row) < info.height && u32(column) < info.width && first < info.from_channels {
                let at = u32(place.z + row * i32(info.width) + column) + first * area;
                value = pixels_at(at, area, info.from_channels - first);
            }
            tile_x[m * DEPTH + d] = value;
        }
    }
}

fn share_weights(index: u32, first_channel: u32, channel: u32, ky: u32) {
    for (var n = index; n < TILE_CHANNELS; n += N_INVOCATIONS) {
        let to_channel = first_channel + n;
        for (var d = 0u; d < DEPTH; d++) {
            let first = select(channel + 4u * d, channel, SIZE == 3u);
            var value = vec4<f32>();
            if to_channel < info.to_channels && first < info.from_channels {
                let tap = select(0u, ky * SIZE + d, SIZE == 3u);
                let at = to_channel * info.weight_to + first * info.weight_from + tap;
                value = weights_at(at, info.weight_from, info.from_channels - first);
            }
            tile_w[n * DEPTH + d] = value;
        }
    }
}

@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let first_pixel = group.x * TILE_PIXELS;
    let first_channel = group.y * TILE_CHANNELS;
    for (var m = index; m < TILE_PIXELS; m += N_INVOCATIONS) {
        places[m] = place(first_pixel + m);
    }
    var sums: array<array<f32, CHANNELS>, PIXELS>;
    workgroupBarrier();
    for (var channel = 0u; channel < info.from_channels; channel += STEP) {
        for (var ky = 0u; ky < SIZE; ky++) {
            share_pixels(index, channel, ky);
            share_weights(index, first_channel, channel, ky);
            workgroupBarrier();
            for (var d = 0u; d < DEPTH; d++) {
                var column: array<vec4<f32>, CHANNELS>;
                for (var j = 0u; j < CHANNELS; j++) {
                    column[j] = tile_w[(local.y + SIDE * j) * DEPTH + d];
                }
                for (var i = 0u; i < PIXELS; i++) {
                    let row = tile_x[(local.x + SIDE * i) * DEPTH + d];
                    for (var j = 0u; j < CHANNELS; j++) {
                        sums[i][j] += dot(row, column[j]);
                    }
                }
            }
            workgroupBarrier();
        }
    }
    let area = info.out_height * info.out_width;
    for (var i = 0u; i < PIXELS; i++) {
        let pixel = first_pixel + local.x + SIDE * i;
        if pixel < info.n_pixels {
            let picture = pixel / area;
            let at = picture * info.to_channels * area + (pixel - picture * area);
            for (var j = 0u; j < CHANNELS; j++) {
                let channel = first_channel + local.y + SIDE * j;
                if channel < info.to_channels {
                    var sum = sums[i][j];
                    if !BACKWARD { sum += bias[channel]; }
                    y[at + channel * area] = sum;
                }
            }
        }
    }
}
