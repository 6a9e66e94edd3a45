// Twice the width and height, each pixel four times; or the gradient of that, the sum of the four. One of the small pictures' pixels an invocation.
//
// From above: GRADIENT.

struct Info {
    // Pixels of all small pictures.
    length: u32,
    // Of a small picture.
    width: u32,
}

@group(0) @binding(0) var<storage, read> given: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    let width = 2u * info.width;
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        let row = i / info.width;
        let at = 2u * row * width + 2u * (i - row * info.width);
        if GRADIENT {
            result[i] = given[at] + given[at + 1u] + given[at + width] + given[at + width + 1u];
        } else {
            let value = given[i];
            result[at] = value;
            result[at + 1u] = value;
            result[at + width] = value;
            result[at + width + 1u] = value;
        }
    }
}
