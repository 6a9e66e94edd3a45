// The gradient of `norm.wgsl` for its input, and for each channel of each picture the two sums that the other gradients follow from:
// Σ dm and Σ dm·n, where dm is the gradient of m. `norm_parameters.wgsl` goes on from there.
//
// dx = (dm·w − mean(dm·w) − n·mean(dm·w·n))/√(variance + ε), where w is weight·(1 + scale) and the means are those of a group.
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
@group(0) @binding(4) var<storage, read> dy: array<Value>;
@group(0) @binding(5) var<storage, read_write> dx: array<Value>;
@group(0) @binding(6) var<storage, read_write> sums: array<vec2<f32>>;
@group(0) @binding(7) var<storage, read> info: Info;

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

// m = n·slope + offset for one channel: (slope, offset).
fn line(picture: u32, channel: u32) -> vec2<f32> {
    let plain = vec2(weight[channel], bias[channel]);
    if !MODULATED {
        return plain;
    }
    let at = 2u * picture * info.channels + channel;
    return plain * (1.0 + scale_shift[at]) + vec2(0.0, scale_shift[at + info.channels]);
}

@compute @workgroup_size(N_INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let first_channel = group.x * info.per_group;
    let first = (group.y * info.channels + first_channel) * info.area;
    let length = info.per_group * info.area;
    // Distances from one of the numbers: their squares do not drown the variance, whatever the mean.
    let origin = first_of(x[first]);
    var distances = Value();
    var squares = Value();
    for (var i = index; i < length; i += N_INVOCATIONS) {
        let distance = x[first + i] - origin;
        distances += distance;
        squares += distance * distance;
    }
    let means = total(index, vec2(sum_of(distances), sum_of(squares))) / f32(WIDTH * length);
    let mean = origin + means.x;
    let factor = inverseSqrt(max(means.y - means.x * means.x, 0.0) + info.epsilon);

    var of_group = vec2<f32>();
    for (var c = 0u; c < info.per_group; c++) {
        let line = line(group.y, first_channel + c);
        var slopes = Value();
        var products = Value();
        for (var pixel = index; pixel < info.area; pixel += N_INVOCATIONS) {
            let at = first + c * info.area + pixel;
            let n = (x[at] - mean) * factor;
            var dm = dy[at];
            if SILU {
                let m = n * line.x + line.y;
                let sigmoid = 1.0 / (1.0 + exp(-m));
                dm *= sigmoid * (1.0 + m * (1.0 - sigmoid));
            }
            slopes += dm;
            products += dm * n;
            // Kept here for the second pass, by the same invocation.
            dx[at] = dm;
        }
        let sum = total(index, vec2(sum_of(slopes), sum_of(products)));
        if index == 0u {
            sums[group.y * info.channels + first_channel + c] = sum;
        }
        of_group += sum * line.x;
    }
    of_group /= f32(WIDTH * length);
    for (var c = 0u; c < info.per_group; c++) {
        let slope = line(group.y, first_channel + c).x;
        for (var pixel = index; pixel < info.area; pixel += N_INVOCATIONS) {
            let at = first + c * info.area + pixel;
            let n = (x[at] - mean) * factor;
            dx[at] = (dx[at] * slope - of_group.x - n * of_group.y) * factor;
        }
    }
}
