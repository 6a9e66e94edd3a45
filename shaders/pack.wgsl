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

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    let plane = info.rows * info.columns;
    if id.x >= plane {
        return;
    }
    let row = id.x / info.columns;
    let from_row = i32(row) - i32(BORDER);
    let from_column = i32(id.x - row * info.columns) - i32(BORDER);
    var value = vec4<f32>();
    let is_pixel = from_row % i32(SPREAD) == 0 && from_column % i32(SPREAD) == 0;
    if is_pixel && u32(from_row) < info.height * SPREAD && u32(from_column) < info.width * SPREAD {
        let area = info.height * info.width;
        let channel = 4u * id.y;
        let pixel = u32(from_row) / SPREAD * info.width + u32(from_column) / SPREAD;
        let at = (id.z * info.channels + channel) * area + pixel;
        value.x = x[at];
        if channel + 1u < info.channels { value.y = x[at + area]; }
        if channel + 2u < info.channels { value.z = x[at + 2u * area]; }
        if channel + 3u < info.channels { value.w = x[at + 3u * area]; }
    }
    packed[(id.z * count.y + id.y) * plane + id.x] = value;
}
