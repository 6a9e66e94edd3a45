// GELU, x·Φ(x), where Φ is the normal distribution; or its gradient, dy·(Φ(x) + x·φ(x)).
//
// Φ is from Abramowitz & Stegun 7.1.26, to 1e-7, as on the processor.
//
// From above: what a Value is; GRADIENT.

struct Info {
    // In values.
    length: u32,
}

@group(0) @binding(0) var<storage, read> x: array<Value>;
// Without GRADIENT it is not read.
@group(0) @binding(1) var<storage, read> dy: array<Value>;
@group(0) @binding(2) var<storage, read_write> result: array<Value>;
@group(0) @binding(3) var<storage, read> info: Info;

// 1/√2 and 1/√(2π).
const HALF_ROOT = 0.70710678;
const PEAK = 0.3989423;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    for (var i = id.x; i < info.length; i += 64u * count.x) {
        let value = x[i];
        let z = abs(value) * HALF_ROOT;
        let t = 1.0 / (1.0 + 0.3275911 * z);
        let bell = exp(-z * z);
        let series = t * (0.2548296 + t * (-0.28449672 + t * (1.4214138 + t * (-1.4531521 + t * 1.0614054))));
        let tail = 0.5 * series * bell;
        let share = select(1.0 - tail, tail, value < Value());
        if GRADIENT {
            result[i] = dy[i] * (share + value * PEAK * bell);
        } else {
            result[i] = value * share;
        }
    }
}
