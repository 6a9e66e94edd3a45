// Group normalisation, the noise level's scale and shift, and SiLU, in one pass.
//
// n = (x − mean)/√(variance + ε), a = n·weight + bias, m = a·(1 + scale) + shift, y = SiLU(m).
// One group of channels of one picture a workgroup.
//
// From above: what a Value is; MODULATED (scale and shift), SILU.

struct Info {
    channels: u32,
    // Channels of one group.
    per_group: u32,
    // Values of a channel of one picture.
    area: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<storage, read> x: array<Value>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
// For each picture all scales, then all shifts.
@group(0) @binding(3) var<storage, read> scale_shift: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<Value>;
@group(0) @binding(5) var<storage, read> info: Info;

const N_INVOCATIONS = 64u;

var<workgroup> partial: array<vec2<f32>, N_INVOCATIONS>;

// The sum over the workgroup, for every invocation.
fn total(index: u32, value: vec2<f32>) -> vec2<f32> {
    partial[index] = value;
    workgroupBarrier();
    for (var half = N_INVOCATIONS / 2u; half > 0u; half /= 2u) {
        if index < half {
            partial[index] += partial[index + half];
        }
        workgroupBarrier();
    }
    let sum = partial[0];
    workgroupBarrier();
    return sum;
}

@compute @workgroup_size(N_INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let first_channel = group.x * info.per_group;
    let first = (group.y * info.channels + first_channel) * info.area;
    let length = info.per_group * info.area;
    // Distances from one of the numbers: their squares do not drown the variance, whatever the mean.
    let origin = first_of(x[first]);
    var sum = Value();
    var squares = Value();
    for (var i = index; i < length; i += N_INVOCATIONS) {
        let distance = x[first + i] - origin;
        sum += distance;
        squares += distance * distance;
    }
    let means = total(index, vec2(sum_of(sum), sum_of(squares))) / f32(WIDTH * length);
    let mean = origin + means.x;
    let factor = inverseSqrt(max(means.y - means.x * means.x, 0.0) + info.epsilon);
    for (var c = 0u; c < info.per_group; c++) {
        let channel = first_channel + c;
        var slope = factor * weight[channel];
        var offset = bias[channel];
        if MODULATED {
            let at = 2u * group.y * info.channels + channel;
            let scale = 1.0 + scale_shift[at];
            slope *= scale;
            offset = offset * scale + scale_shift[at + info.channels];
        }
        for (var pixel = index; pixel < info.area; pixel += N_INVOCATIONS) {
            let at = first + c * info.area + pixel;
            var value = (x[at] - mean) * slope + offset;
            if SILU { value /= 1.0 + exp(-value); }
            y[at] = value;
        }
    }
}
