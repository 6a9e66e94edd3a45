// Adds up parts: total[i] = Σ over parts of parts[part, i].
//
// From above: what a Value is.

struct Info {
    n_parts: u32,
    // Values of one part.
    length: u32,
}

@group(0) @binding(0) var<storage, read> parts: array<Value>;
@group(0) @binding(1) var<storage, read_write> total: array<Value>;
@group(0) @binding(2) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        var sum = Value();
        for (var part = 0u; part < info.n_parts; part++) {
            sum += parts[part * info.length + i];
        }
        total[i] = sum;
    }
}
