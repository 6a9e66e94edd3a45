// The gradient of a convolution's weights: dw[to, from, tap] = Σ over pixels of dy[to] · x[from] under the tap.
//
// One tap a workgroup: a product of matrices, output channels × input channels, along the pixels. Four pixels lie in a vector. The pixels are cut
// into parts, so that small layers keep a large card busy; `parts.wgsl` adds them up.
//
// From above: SIZE (1 or 3), STRIDE (1 or 2).

struct Info {
    from_channels: u32,
    to_channels: u32,
    height: u32,
    width: u32,
    // Of the gradient.
    out_height: u32,
    out_width: u32,
    n_pixels: u32,
    // A multiple of the pixels of a step.
    pixels_per_part: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read_write> parts: array<f32>;
@group(0) @binding(3) var<storage, read> info: Info;

const SIDE = 8u;
// Of each kind of channels, in one invocation.
const CHANNELS = 8u;
const TILE = SIDE * CHANNELS;
const TAPS = SIZE * SIZE;
const PADDING = i32(SIZE / 2u);
// Vectors of pixels in a step, and in a row of a tile: an odd number, so that the rows begin in different banks of a card's memory.
const DEPTH = 4u;
const ROW = DEPTH + 1u;
const STEP = 4u * DEPTH;

var<workgroup> tile_x: array<vec4<f32>, TILE * ROW>;
var<workgroup> tile_dy: array<vec4<f32>, TILE * ROW>;

// Where four pixels are in the first channel of x and of dy, and which of them there are.
struct Places {
    in_x: vec4<u32>,
    is_in_x: vec4<bool>,
    in_dy: vec4<u32>,
    is_in_dy: vec4<bool>,
}

fn places(first: u32, end: u32, ky: i32, kx: i32) -> Places {
    let area = info.out_height * info.out_width;
    let pixel = vec4(first) + vec4(0u, 1u, 2u, 3u);
    let picture = pixel / area;
    let rest = pixel - picture * area;
    let line = rest / info.out_width;
    let row = vec4<i32>(line * STRIDE) + (ky - PADDING);
    let column = vec4<i32>((rest - line * info.out_width) * STRIDE) + (kx - PADDING);
    let is_in_dy = pixel < vec4(end);
    let is_in_x = (vec4<u32>(row) < vec4(info.height)) & (vec4<u32>(column) < vec4(info.width)) & is_in_dy;
    let in_x = picture * info.from_channels * info.height * info.width + vec4<u32>(row * i32(info.width) + column);
    return Places(in_x, is_in_x, picture * info.to_channels * area + rest, is_in_dy);
}

@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let tap = group.z % TAPS;
    let part = group.z / TAPS;
    let first_to = group.x * TILE;
    let first_from = group.y * TILE;
    let area = info.height * info.width;
    let out_area = info.out_height * info.out_width;
    let end = min(info.n_pixels, (part + 1u) * info.pixels_per_part);
    // Neighbours share neighbouring pixels.
    let d = index % DEPTH;
    var sums: array<array<f32, CHANNELS>, CHANNELS>;
    for (var first = part * info.pixels_per_part; first < end; first += STEP) {
        let place = places(first + 4u * d, end, i32(tap / SIZE), i32(tap % SIZE));
        for (var row = index / DEPTH; row < TILE; row += SIDE * SIDE / DEPTH) {
            var value = vec4<f32>();
            let from_channel = first_from + row;
            if from_channel < info.from_channels {
                let at = place.in_x + from_channel * area;
                if place.is_in_x.x { value.x = x[at.x]; }
                if place.is_in_x.y { value.y = x[at.y]; }
                if place.is_in_x.z { value.z = x[at.z]; }
                if place.is_in_x.w { value.w = x[at.w]; }
            }
            tile_x[row * ROW + d] = value;
            value = vec4<f32>();
            let to_channel = first_to + row;
            if to_channel < info.to_channels {
                let at = place.in_dy + to_channel * out_area;
                if place.is_in_dy.x { value.x = dy[at.x]; }
                if place.is_in_dy.y { value.y = dy[at.y]; }
                if place.is_in_dy.z { value.z = dy[at.z]; }
                if place.is_in_dy.w { value.w = dy[at.w]; }
            }
            tile_dy[row * ROW + d] = value;
        }
        workgroupBarrier();
        for (var d = 0u; d < DEPTH; d++) {
            var column: array<vec4<f32>, CHANNELS>;
            for (var j = 0u; j < CHANNELS; j++) {
                column[j] = tile_x[(local.x + SIDE * j) * ROW + d];
            }
            for (var i = 0u; i < CHANNELS; i++) {
                let row = tile_dy[(local.y + SIDE * i) * ROW + d];
                for (var j = 0u; j < CHANNELS; j++) {
                    sums[i][j] += dot(row, column[j]);
                }
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < CHANNELS; i++) {
        let to_channel = first_to + local.y + SIDE * i;
        for (var j = 0u; j < CHANNELS; j++) {
            let from_channel = first_from + local.x + SIDE * j;
            if to_channel < info.to_channels && from_channel < info.from_channels {
                let row = part * info.to_channels + to_channel;
                parts[(row * info.from_channels + from_channel) * TAPS + tap] = sums[i][j];
            }
        }
    }
}
