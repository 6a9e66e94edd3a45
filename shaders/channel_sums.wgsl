// The sum of every channel over all pictures: the gradient of a convolution's bias.
//
// From above: what a Value is.

struct Info {
    batch: u32,
    channels: u32,
    // Values of a channel of one picture.
    area: u32,
}

@group(0) @binding(0) var<storage, read> x: array<Value>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

const N_INVOCATIONS = 64u;

var<workgroup> partial: array<f32, N_INVOCATIONS>;

@compute @workgroup_size(N_INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let channel = group.x;
    var sum = Value();
    for (var picture = 0u; picture < info.batch; picture++) {
        let first = (picture * info.channels + channel) * info.area;
        for (var pixel = index; pixel < info.area; pixel += N_INVOCATIONS) {
            sum += x[first + pixel];
        }
    }
    partial[index] = sum_of(sum);
    workgroupBarrier();
    for (var half = N_INVOCATIONS / 2u; half > 0u; half /= 2u) {
        if index < half {
            partial[index] += partial[index + half];
        }
        workgroupBarrier();
    }
    if index == 0u {
        sums[channel] = partial[0];
    }
}
