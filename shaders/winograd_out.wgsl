// From Winograd's form back to pictures: Aᵀ·m·A, 4 × 4 pixels of one channel an invocation, and the bias.
//
// Lavin and Gray 2016, F(4 × 4, 3 × 3).
//
// From above: BIASED.

struct Info {
    channels: u32,
    height: u32,
    width: u32,
    // Tiles in a row, of one picture, and of all.
    row: u32,
    of_picture: u32,
    n_tiles: u32,
}

// [36, channels, n_tiles]
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read> info: Info;

// Aᵀ times six numbers.
fn transformed(m: array<f32, 6>) -> vec4<f32> {
    let a = m[1] + m[2];
    let b = m[1] - m[2];
    let c = m[3] + m[4];
    let d = m[3] - m[4];
    return vec4(m[0] + a + c, b + 2.0 * d, a + 4.0 * c, b + 8.0 * d + m[5]);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let tile = id.x;
    let channel = id.y;
    if tile >= info.n_tiles {
        return;
    }
    let step = info.channels * info.n_tiles;
    let first = channel * info.n_tiles + tile;
    var rows: array<vec4<f32>, 6>;
    for (var r = 0u; r < 6u; r++) {
        var values: array<f32, 6>;
        for (var c = 0u; c < 6u; c++) {
            values[c] = x[first + (6u * r + c) * step];
        }
        rows[r] = transformed(values);
    }
    let picture = tile / info.of_picture;
    let rest = tile - picture * info.of_picture;
    let tile_row = rest / info.row;
    let top = 4u * tile_row;
    let left = 4u * (rest - tile_row * info.row);
    let plane = (picture * info.channels + channel) * info.height * info.width;
    var added = 0.0;
    if BIASED {
        added = bias[channel];
    }
    for (var c = 0u; c < 4u; c++) {
        let column = transformed(array(rows[0][c], rows[1][c], rows[2][c], rows[3][c], rows[4][c], rows[5][c]));
        for (var r = 0u; r < 4u; r++) {
            if top + r < info.height && left + c < info.width {
                y[plane + (top + r) * info.width + left + c] = column[r] + added;
            }
        }
    }
}
