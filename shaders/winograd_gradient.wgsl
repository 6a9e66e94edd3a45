// Gradients of pictures as tiles of 4 × 4 pixels in Winograd's form, A·dy·Aᵀ: what `winograd_out.wgsl` does, backwards. One tile of four channels an
// invocation; beyond the pictures' borders there are zeros.

struct Info {
    channels: u32,
    height: u32,
    // Tiles in a row, of one picture, and of all.
    row: u32,
    of_picture: u32,
    n_tiles: u32,
}

// Four pixels of a row in a vector: as many vectors as tiles.
@group(0) @binding(0) var<storage, read> dy: array<vec4<f32>>;
// [36, channels/4, n_tiles], four channels in a vector.
@group(0) @binding(1) var<storage, read_write> result: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> info: Info;

// A times four numbers, of four channels each.
fn transformed(d: mat4x4<f32>) -> array<vec4<f32>, 6> {
    let a = d[0] + d[2];
    let b = d[1] + d[3];
    let c = d[0] + 4.0 * d[2];
    let e = 2.0 * d[1] + 8.0 * d[3];
    return array(d[0], a + b, a - b, c + e, c - e, d[3]);
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
    var rows: array<array<vec4<f32>, 6>, 4>;
    for (var r = 0u; r < 4u; r++) {
        let line = 4u * tile_row + r;
        // A row of pixels for each of the four channels.
        var pixels = mat4x4<f32>();
        for (var c = 0u; c < 4u; c++) {
            let channel = 4u * id.y + c;
            if line < info.height && channel < info.channels {
                pixels[c] = dy[((picture * info.channels + channel) * info.height + line) * info.row + column];
            }
        }
        rows[r] = transformed(transpose(pixels));
    }
    let step = (info.channels + 3u) / 4u * info.n_tiles;
    let first = id.y * info.n_tiles + tile;
    for (var c = 0u; c < 6u; c++) {
        let column = transformed(mat4x4(rows[0][c], rows[1][c], rows[2][c], rows[3][c]));
        for (var r = 0u; r < 6u; r++) {
            result[first + (6u * r + c) * step] = column[r];
        }
    }
}
