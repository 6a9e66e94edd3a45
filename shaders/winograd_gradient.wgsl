// Gradients of pictures as tiles of 4 × 4 pixels in Winograd's form, A·dy·Aᵀ: what `winograd_out.wgsl` does, backwards. One tile of one channel an
// invocation; beyond the pictures' borders there are zeros.

struct Info {
    channels: u32,
    height: u32,
    width: u32,
    // Tiles in a row, of one picture, and of all.
    row: u32,
    of_picture: u32,
    n_tiles: u32,
}

@group(0) @binding(0) var<storage, read> dy: array<f32>;
// [36, channels, n_tiles]
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

// A times four numbers.
fn transformed(d: array<f32, 4>) -> array<f32, 6> {
    let a = d[0] + d[2];
    let b = d[1] + d[3];
    let c = d[0] + 4.0 * d[2];
    let e = 2.0 * d[1] + 8.0 * d[3];
    return array(d[0], a + b, a - b, c + e, c - e, d[3]);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let tile = id.x;
    let channel = id.y;
    if tile >= info.n_tiles {
        return;
    }
    let picture = tile / info.of_picture;
    let rest = tile - picture * info.of_picture;
    let tile_row = rest / info.row;
    let top = 4u * tile_row;
    let left = 4u * (rest - tile_row * info.row);
    let plane = (picture * info.channels + channel) * info.height * info.width;
    var rows: array<array<f32, 6>, 4>;
    for (var r = 0u; r < 4u; r++) {
        var values = array<f32, 4>();
        for (var c = 0u; c < 4u; c++) {
            if top + r < info.height && left + c < info.width {
                values[c] = dy[plane + (top + r) * info.width + left + c];
            }
        }
        rows[r] = transformed(values);
    }
    let step = info.channels * info.n_tiles;
    let first = channel * info.n_tiles + tile;
    for (var c = 0u; c < 6u; c++) {
        let column = transformed(array(rows[0][c], rows[1][c], rows[2][c], rows[3][c]));
        for (var r = 0u; r < 6u; r++) {
            result[first + (6u * r + c) * step] = column[r];
        }
    }
}
