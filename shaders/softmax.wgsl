// Softmax along rows: y = eˣ⁻ᵐ/Σ eˣ⁻ᵐ, where m is the largest number of the row. One row an invocation.
//
// From above: what a Value is.

struct Info {
    rows: u32,
    // Values of a row.
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<Value>;
@group(0) @binding(1) var<storage, read_write> y: array<Value>;
@group(0) @binding(2) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    let width = info.width;
    for (var row = id.x; row < info.rows; row += 64u * count.x) {
        let first = row * width;
        var each = x[first];
        for (var i = 1u; i < width; i++) {
            each = max(each, x[first + i]);
        }
        let largest = largest_of(each);
        var sum = Value();
        for (var i = 0u; i < width; i++) {
            let value = exp(x[first + i] - largest);
            y[first + i] = value;
            sum += value;
        }
        let factor = 1.0 / sum_of(sum);
        for (var i = 0u; i < width; i++) {
            y[first + i] *= factor;
        }
    }
}
