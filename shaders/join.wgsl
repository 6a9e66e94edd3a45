// The numbers of each example of two tensors, one after the other: channels are joined.
//
// From above: what a Value is.

struct Info {
    // Values of the result.
    length: u32,
    // Values of an example of the first tensor, and of the second.
    first: u32,
    second: u32,
}

@group(0) @binding(0) var<storage, read> first: array<Value>;
@group(0) @binding(1) var<storage, read> second: array<Value>;
@group(0) @binding(2) var<storage, read_write> joined: array<Value>;
@group(0) @binding(3) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    let both = info.first + info.second;
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        let example = i / both;
        let at = i - example * both;
        if at < info.first {
            joined[i] = first[example * info.first + at];
        } else {
            joined[i] = second[example * info.second + at - info.first];
        }
    }
}
