// The end of a sampler's step, which otherwise takes three to nine passes: x_pred = clip(estimate), next = a·x_t + b·x_pred + Σ cᵢ·othersᵢ.
//
// From above: what a Value is; OTHERS, how many others there are (at most 2): earlier estimates, or noise.

struct Info {
    // In values.
    length: u32,
    // The estimate is clipped to ±this.
    limit: f32,
    a: f32,
    b: f32,
    c_1: f32,
    c_2: f32,
}

@group(0) @binding(0) var<storage, read> estimate: array<Value>;
@group(0) @binding(1) var<storage, read> x_t: array<Value>;
// Without so many others these are not read.
@group(0) @binding(2) var<storage, read> other_1: array<Value>;
@group(0) @binding(3) var<storage, read> other_2: array<Value>;
@group(0) @binding(4) var<storage, read_write> x_pred: array<Value>;
@group(0) @binding(5) var<storage, read_write> next: array<Value>;
@group(0) @binding(6) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        let clipped = clamp(estimate[i], Value(-info.limit), Value(info.limit));
        var sum = info.a * x_t[i] + info.b * clipped;
        if OTHERS > 0u { sum += info.c_1 * other_1[i]; }
        if OTHERS > 1u { sum += info.c_2 * other_2[i]; }
        x_pred[i] = clipped;
        next[i] = sum;
    }
}
