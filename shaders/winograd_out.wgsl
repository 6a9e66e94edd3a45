// From Winograd's form back to pictures: Aᵀ·m·A, 4 × 4 pixels of four channels an invocation; the bias, and a sum with what the result is added to,
// (y + onto)·scale.
//
// Lavin and Gray 2016, F(4 × 4, 3 × 3).
//
// From above: BIASED and ONTO.

struct Info {
    channels: u32,
    height: u32,
    // Tiles in a row, of one picture, and of all.
    row: u32,
    of_picture: u32,
    n_tiles: u32,
    // What the sum with `onto` is multiplied with.
    scale: f32,
}

// [36, channels/4, n_tiles], four channels in a vector.
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
// Four pixels of a row in a vector: as many vectors as tiles. Without ONTO it is not read.
@group(0) @binding(2) var<storage, read> onto: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> info: Info;

alias Six = array<vec4<f32>, 6>;

// Aᵀ times six numbers, of four channels each.
fn transformed(m: Six) -> mat4x4<f32> {
    let a = m[1] + m[2];
    let b = m[1] - m[2];
    let c = m[3] + m[4];
    let d = m[3] - m[4];
    return mat4x4(m[0] + a + c, b + 2.0 * d, a + 4.0 * c, b + 8.0 * d + m[5]);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let tile = id.x;
    if tile >= info.n_tiles {
        return;
    }
    let step = (info.channels + 3u) / 4u * info.n_tiles;
    let first = id.y * info.n_tiles + tile;
    // columns[c] are the four numbers of a column, once it is back.
    var columns: array<mat4x4<f32>, 6>;
    for (var c = 0u; c < 6u; c++) {
        var values: Six;
        for (var r = 0u; r < 6u; r++) {
            values[r] = x[first + (6u * r + c) * step];
        }
        columns[c] = transformed(values);
    }
    let picture = tile / info.of_picture;
    let rest = tile - picture * info.of_picture;
    let tile_row = rest / info.row;
    let column = rest - tile_row * info.row;
    for (var r = 0u; r < 4u; r++) {
        let line = 4u * tile_row + r;
        if line < info.height {
            // A row of pixels for each of the four channels.
            let pixels = transpose(transformed(Six(columns[0][r], columns[1][r], columns[2][r], columns[3][r], columns[4][r], columns[5][r])));
            for (var c = 0u; c < 4u; c++) {
                let channel = 4u * id.y + c;
                if channel < info.channels {
                    let at = ((picture * info.channels + channel) * info.height + line) * info.row + column;
                    var result = pixels[c];
                    if BIASED { result += bias[channel]; }
                    if ONTO { result = (result + onto[at]) * info.scale; }
                    y[at] = result;
                }
            }
        }
    }
}
