// Pictures as tiles of 6 × 6 pixels, which overlap by two, in Winograd's form Bᵀ·d·B: one tile of one channel an
// invocation; beyond the pictures' borders there are zeros.
//
// Lavin and Gray 2016, F(4 × 4, 3 × 3).
//
// From above: FOURS, with which four channels lie in a vector, as `winograd_product.wgsl` reads them.

struct Info {
    channels: u32,
    height: u32,
    width: u32,
    // Tiles in a row, of one picture, and of all.
    row: u32,
    of_picture: u32,
    n_tiles: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
// [36, channels/4, n_tiles, 4], or [36, channels, n_tiles]
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
@group(0) @binding(2) var<storage, read> info: Info;

// Bᵀ times six numbers.
fn transformed(d: array<f32, 6>) -> array<f32, 6> {
    let a = d[4] - 4.0 * d[2];
    let b = d[3] - 4.0 * d[1];
    let c = d[4] - d[2];
    let e = 2.0 * (d[3] - d[1]);
    return array(4.0 * d[0] - 5.0 * d[2] + d[4], a + b, a - b, c + e, c - e, 4.0 * d[1] - 5.0 * d[3] + d[5]);
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
    // The first pixel, which may be one before the picture: below 0 wraps around, and is then too large.
    let top = 4u * tile_row - 1u;
    let left = 4u * (rest - tile_row * info.row) - 1u;
    let plane = (picture * info.channels + channel) * info.height * info.width;
    // Columns first: rows[r] is a row of six, in Winograd's form along the row.
    var rows: array<array<f32, 6>, 6>;
    for (var r = 0u; r < 6u; r++) {
        var values = array<f32, 6>();
        for (var c = 0u; c < 6u; c++) {
            if channel < info.channels && top + r < info.height && left + c < info.width {
                values[c] = x[plane + (top + r) * info.width + left + c];
            }
        }
        rows[r] = transformed(values);
    }
    var step = info.channels * info.n_tiles;
    var first = channel * info.n_tiles + tile;
    if FOURS {
        step = (info.channels + 3u) / 4u * 4u * info.n_tiles;
        first = (channel / 4u * info.n_tiles + tile) * 4u + channel % 4u;
    }
    for (var c = 0u; c < 6u; c++) {
        let column = transformed(array(rows[0][c], rows[1][c], rows[2][c], rows[3][c], rows[4][c], rows[5][c]));
        for (var r = 0u; r < 6u; r++) {
            result[first + (6u * r + c) * step] = column[r];
        }
    }
}
