// The gradient of `softmax.wgsl`: dx = y·(dy − Σ y·dy), where the sum is that of the row. One row an invocation.
//
// From above: what a Value is.

struct Info {
    rows: u32,
    // Values of a row.
    width: u32,
}

@group(0) @binding(0) var<storage, read> y: array<Value>;
@group(0) @binding(1) var<storage, read> dy: array<Value>;
@group(0) @binding(2) var<storage, read_write> dx: array<Value>;
@group(0) @binding(3) var<storage, read> info: Info;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    let width = info.width;
    for (var row = id.x; row < info.rows; row += 64u * count.x) {
        let first = row * width;
        var products = Value();
        for (var i = first; i < first + width; i++) {
            products += y[i] * dy[i];
        }
        let sum = sum_of(products);
        for (var i = first; i < first + width; i++) {
            dx[i] = y[i] * (dy[i] - sum);
        }
    }
}
