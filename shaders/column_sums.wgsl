// The sum of every column: the gradient of what is added to each row.
//
// Eight invocations work on a column, and a workgroup on eight neighbours.
//
// From above: what a Value is.

struct Info {
    rows: u32,
    // In values.
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<Value>;
@group(0) @binding(1) var<storage, read_write> sums: array<Value>;
@group(0) @binding(2) var<storage, read> info: Info;

const ACROSS = 8u;
const DOWN = 8u;

var<workgroup> partial: array<Value, 64>;

@compute @workgroup_size(ACROSS, DOWN)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let column = min(id.x, info.columns - 1u);
    var sum = Value();
    for (var row = local.y; row < info.rows; row += DOWN) {
        sum += x[row * info.columns + column];
    }
    partial[local.y * ACROSS + local.x] = sum;
    workgroupBarrier();
    if local.y == 0u && id.x < info.columns {
        for (var i = 1u; i < DOWN; i++) {
            sum += partial[i * ACROSS + local.x];
        }
        sums[column] = sum;
    }
}
