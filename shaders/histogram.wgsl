// How many numbers fall into each of N_BINS equal bins between −limit and limit, and last, how many into none; of one part of the numbers a workgroup.
// `parts.wgsl` adds the parts up.
//
// From above: N_BINS, an even number.

struct Info {
    length: u32,
    limit: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> parts: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

const N_INVOCATIONS = 64u;

var<workgroup> counts: array<atomic<u32>, N_BINS + 1u>;

@compute @workgroup_size(N_INVOCATIONS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    for (var bin = index; bin <= N_BINS; bin += N_INVOCATIONS) {
        atomicStore(&counts[bin], 0u);
    }
    workgroupBarrier();
    for (var i = group.x * N_INVOCATIONS + index; i < info.length; i += count.x * N_INVOCATIONS) {
        let value = x[i];
        var bin = N_BINS;
        if abs(value) <= info.limit {
            // The limit itself belongs to the last bin.
            bin = min(u32((value / info.limit + 1.0) * f32(N_BINS / 2u)), N_BINS - 1u);
        }
        atomicAdd(&counts[bin], 1u);
    }
    workgroupBarrier();
    for (var bin = index; bin <= N_BINS; bin += N_INVOCATIONS) {
        parts[group.x * (N_BINS + 1u) + bin] = f32(atomicLoad(&counts[bin]));
    }
}
