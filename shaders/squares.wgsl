// Adds the squares of numbers to sums that have begun, a part of the numbers to each: the length of a gradient, one parameter after the other.
//
// From above: what a Value is.

struct Info {
    // In values.
    length: u32,
}

@group(0) @binding(0) var<storage, read> sums: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<Value>;
@group(0) @binding(2) var<storage, read_write> next: array<f32>;
@group(0) @binding(3) var<storage, read> info: Info;

const N_INVOCATIONS = 64u;

var<workgroup> partial: array<f32, N_INVOCATIONS>;

@compute @workgroup_size(N_INVOCATIONS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    var sum = Value();
    for (var i = group.x * N_INVOCATIONS + index; i < info.length; i += count.x * N_INVOCATIONS) {
        sum += x[i] * x[i];
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
        next[group.x] = sums[group.x] + partial[0];
    }
}
