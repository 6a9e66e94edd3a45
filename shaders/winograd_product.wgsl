// Products of tiles and weights in Winograd's form, one for each of the 36 numbers of a tile: y[n, to, tile] = Σ over from of w[n, from, to]·x[n, from, tile].
//
// Each invocation makes TILES × CHANNELS of the result in registers, from vectors of four input channels.
//
// From above: TILES and CHANNELS; ACROSS and DOWN, the invocations of a workgroup along the tiles and along the channels.

struct Info {
    // Vectors of four input channels.
    from_vectors: u32,
    to_channels: u32,
    n_tiles: u32,
    // Output channels in the weights, a multiple of CHANNELS.
    weight_channels: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read> info: Info;

@compute @workgroup_size(ACROSS, DOWN)
fn main(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let first_tile = group.x * ACROSS * TILES + local.x;
    let first_channel = id.y * CHANNELS;
    if first_tile >= info.n_tiles || first_channel >= info.to_channels {
        return;
    }
    // What is beyond the end does the last tile's work, for nothing.
    var places: array<u32, TILES>;
    for (var i = 0u; i < TILES; i++) {
        places[i] = group.z * info.from_vectors * info.n_tiles + min(first_tile + ACROSS * i, info.n_tiles - 1u);
    }
    var weight = group.z * info.from_vectors * info.weight_channels + first_channel;
    var sums: array<array<f32, CHANNELS>, TILES>;
    for (var vector = 0u; vector < info.from_vectors; vector++) {
        var w: array<vec4<f32>, CHANNELS>;
        for (var j = 0u; j < CHANNELS; j++) {
            w[j] = weights[weight + j];
        }
        for (var i = 0u; i < TILES; i++) {
            let value = x[places[i] + vector * info.n_tiles];
            for (var j = 0u; j < CHANNELS; j++) {
                sums[i][j] += dot(value, w[j]);
            }
        }
        weight += info.weight_channels;
    }
    for (var i = 0u; i < TILES; i++) {
        let tile = first_tile + ACROSS * i;
        if tile < info.n_tiles {
            for (var j = 0u; j < CHANNELS; j++) {
                let channel = first_channel + j;
                if channel < info.to_channels {
                    y[(group.z * info.to_channels + channel) * info.n_tiles + tile] = sums[i][j];
                }
            }
        }
    }
}
