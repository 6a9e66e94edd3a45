// Layer normalisation: y = (x − mean)/√(variance + ε)·weight + bias, with mean and variance of each token.
//
// Eight invocations work on a token, and a workgroup on eight tokens: so they wait for each other once for eight.
//
// From above: what a Value is.

struct Info {
    n_tokens: u32,
    // Values of a token.
    width: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<storage, read> x: array<Value>;
@group(0) @binding(1) var<storage, read> weight: array<Value>;
@group(0) @binding(2) var<storage, read> bias: array<Value>;
@group(0) @binding(3) var<storage, read_write> y: array<Value>;
@group(0) @binding(4) var<storage, read> info: Info;

const EACH = 8u;

var<workgroup> partial: array<vec2<f32>, 64>;

// The sum over the invocations of a token, for each of them.
fn total(index: u32, value: vec2<f32>) -> vec2<f32> {
    partial[index] = value;
    workgroupBarrier();
    let first = index / EACH * EACH;
    var sum = vec2<f32>();
    for (var i = 0u; i < EACH; i++) {
        sum += partial[first + i];
    }
    return sum;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let token = id.x / EACH;
    // What is beyond the end does the last token's work, for nothing: all have to come to the barrier.
    let first = min(token, info.n_tokens - 1u) * info.width;
    let lane = index % EACH;
    // Distances from one of the numbers: their squares do not drown the variance, whatever the mean.
    let origin = first_of(x[first]);
    var distances = Value();
    var squares = Value();
    for (var i = lane; i < info.width; i += EACH) {
        let distance = x[first + i] - origin;
        distances += distance;
        squares += distance * distance;
    }
    let means = total(index, vec2(sum_of(distances), sum_of(squares))) / f32(WIDTH * info.width);
    let mean = origin + means.x;
    let factor = inverseSqrt(max(means.y - means.x * means.x, 0.0) + info.epsilon);
    if token < info.n_tokens {
        for (var i = lane; i < info.width; i += EACH) {
            y[first + i] = (x[first + i] - mean) * factor * weight[i] + bias[i];
        }
    }
}
