// Pictures as tiles of 6 × 6 pixels, which overlap by two, in Winograd's form Bᵀ·d·B: one tile of four channels an
// invocation; beyond the pictures' borders there are zeros.
//
// Lavin and Gray 2016, F(4 × 4, 3 × 3).

struct Info {
    channels: u32,
    height: u32,
    // Tiles in a row, of one picture, and of all.
    row: u32,
    of_picture: u32,
    n_tiles: u32,
}

// Four pixels of a row in a vector: as many vectors as tiles.
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [36, channels/4, n_tiles], four channels in a vector.
@group(0) @binding(1) var<storage, read_write> result: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> info: Info;

alias Six = array<vec4<f32>, 6>;

// Bᵀ times six numbers.
fn transformed(d: Six) -> Six {
    let a = d[4] - 4.0 * d[2];
    let b = d[3] - 4.0 * d[1];
    let c = d[4] - d[2];
    let e = 2.0 * (d[3] - d[1]);
    return Six(4.0 * d[0] - 5.0 * d[2] + d[4], a + b, a - b, c + e, c - e, 4.0 * d[1] - 5.0 * d[3] + d[5]);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let tile = id.x;
    if tile >= info.n_tiles {
        return;
    }
    let picture = tile / info.of_picture;
    let rest = tile - picture * info.of_picture;
    let tile_row = rest / info.row;
    let column = rest - tile_row * info.row;
    let has_left = column > 0u;
    let has_right = column + 1u < info.row;
    // Columns first: rows[r] is a row of six, in Winograd's form along the row.
    var rows: array<Six, 6>;
    for (var r = 0u; r < 6u; r++) {
        // The first row may be one before the picture: below 0 wraps around, and is then too large.
        let line = 4u * tile_row + r - 1u;
        var values = Six();
        for (var c = 0u; c < 4u; c++) {
            let channel = 4u * id.y + c;
            if line < info.height && channel < info.channels {
                let at = ((picture * info.channels + channel) * info.height + line) * info.row + column;
                let middle = x[at];
                values[1][c] = middle.x;
                values[2][c] = middle.y;
                values[3][c] = middle.z;
                values[4][c] = middle.w;
                if has_left { values[0][c] = x[at - 1u].w; }
                if has_right { values[5][c] = x[at + 1u].x; }
            }
        }
        rows[r] = transformed(values);
    }
    let step = (info.channels + 3u) / 4u * info.n_tiles;
    let first = id.y * info.n_tiles + tile;
    for (var c = 0u; c < 6u; c++) {
        let column = transformed(Six(rows[0][c], rows[1][c], rows[2][c], rows[3][c], rows[4][c], rows[5][c]));
        for (var r = 0u; r < 6u; r++) {
            result[first + (6u * r + c) * step] = column[r];
        }
    }
}
