// Pictures with a border of zeros, four channels in a vector: what `conv.wgsl` and `conv_weights.wgsl` read without asking where a picture ends.
//
// SPREAD puts zeros between the pixels too: the gradient of a convolution with a stride is a convolution of such pictures.
//
// From above: BORDER and SPREAD.

struct Info {
    channels: u32,
    height: u32,
    width: u32,
    // Of the result.
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> packed: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> info: Info;

// Four channels of a pixel of the result.
fn value(picture: u32, channel: u32, row: u32, column: u32) -> vec4<f32> {
    let from_row = i32(row) - i32(BORDER);
    let from_column = i32(column) - i32(BORDER);
    let is_pixel = from_row % i32(SPREAD) == 0 && from_column % i32(SPREAD) == 0;
    var value = vec4<f32>();
    if is_pixel && u32(from_row) < info.height * SPREAD && u32(from_column) < info.width * SPREAD {
        let area = info.height * info.width;
        let pixel = u32(from_row) / SPREAD * info.width + u32(from_column) / SPREAD;
        let at = (picture * info.channels + channel) * area + pixel;
        value.x = x[at];
        if channel + 1u < info.channels { value.y = x[at + area]; }
        if channel + 2u < info.channels { value.z = x[at + 2u * area]; }
        if channel + 3u < info.channels { value.w = x[at + 3u * area]; }
    }
    return value;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    let plane = info.rows * info.columns;
    for (var i = id.x; i < plane; i += 64u * count.x) {
        let row = i / info.columns;
        packed[(id.z * count.y + id.y) * plane + i] = value(id.z, 4u * id.y, row, i - row * info.columns);
    }
}
