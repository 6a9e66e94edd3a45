// One step of Adam for one parameter (Kingma and Ba 2015), which otherwise takes a dozen passes:
//
// first ← β₁·first + (1 − β₁)·g, second ← β₂·second + (1 − β₂)·g², weight ← weight − rate·first/(√second + ε).

struct Info {
    length: u32,
    // What the gradient is multiplied by before anything else.
    shorten: f32,
    beta_1: f32,
    beta_2: f32,
    // The learning rate and ε, with what makes up for moments that start at 0.
    rate: f32,
    epsilon: f32,
}

@group(0) @binding(0) var<storage, read> weight: array<f32>;
@group(0) @binding(1) var<storage, read> gradient: array<f32>;
@group(0) @binding(2) var<storage, read> first: array<f32>;
@group(0) @binding(3) var<storage, read> second: array<f32>;
@group(0) @binding(4) var<storage, read_write> next_weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> next_first: array<f32>;
@group(0) @binding(6) var<storage, read_write> next_second: array<f32>;
@group(0) @binding(7) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        let g = gradient[i] * info.shorten;
        let m = info.beta_1 * first[i] + (1.0 - info.beta_1) * g;
        let v = info.beta_2 * second[i] + (1.0 - info.beta_2) * g * g;
        next_first[i] = m;
        next_second[i] = v;
        next_weight[i] = weight[i] - info.rate * m / (sqrt(v) + info.epsilon);
    }
}
