// One step of Adam for one parameter (Kingma and Ba 2015), and of the average of its weights: a dozen passes in one.
//
// first ← β₁·first + (1 − β₁)·g, second ← β₂·second + (1 − β₂)·g², weight ← weight − rate·first/(√second + ε), average ← decay·average + rest·weight.
//
// From above: what a Value is.

struct Info {
    // In values.
    length: u32,
    // What the gradient is multiplied by before anything else.
    shorten: f32,
    beta_1: f32,
    beta_2: f32,
    // The learning rate and ε, with what makes up for moments that start at 0.
    rate: f32,
    epsilon: f32,
    decay: f32,
    rest: f32,
}

@group(0) @binding(0) var<storage, read> weight: array<Value>;
@group(0) @binding(1) var<storage, read> gradient: array<Value>;
@group(0) @binding(2) var<storage, read_write> next: array<Value>;
// Changed where they lie: with room for all of them anew there would be more buffers than a browser guarantees.
@group(0) @binding(3) var<storage, read_write> first: array<Value>;
@group(0) @binding(4) var<storage, read_write> second: array<Value>;
@group(0) @binding(5) var<storage, read_write> average: array<Value>;
@group(0) @binding(6) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        let g = gradient[i] * info.shorten;
        let m = info.beta_1 * first[i] + (1.0 - info.beta_1) * g;
        let v = info.beta_2 * second[i] + (1.0 - info.beta_2) * g * g;
        let w = weight[i] - info.rate * m / (sqrt(v) + info.epsilon);
        first[i] = m;
        second[i] = v;
        next[i] = w;
        average[i] = info.decay * average[i] + info.rest * w;
    }
}
