// sum = a·x + b·y, number by number.
//
// From above: what a Value is.

struct Info {
    // In values.
    length: u32,
    a: f32,
    b: f32,
}

@group(0) @binding(0) var<storage, read> x: array<Value>;
@group(0) @binding(1) var<storage, read> y: array<Value>;
@group(0) @binding(2) var<storage, read_write> sum: array<Value>;
@group(0) @binding(3) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        sum[i] = info.a * x[i] + info.b * y[i];
    }
}
