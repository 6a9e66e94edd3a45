// Pictures for a screen: analog bits read by threshold, as one sheet of colours, a byte each of red, green, blue and opacity. Pictures lie in a grid
// with a pixel between them that lets the background through.

struct Info {
    n: u32,
    // 1 (grey) or 3.
    channels: u32,
    // Of a channel.
    bits: u32,
    // Width and height of a picture.
    size: u32,
    // Pictures in a row.
    columns: u32,
    // Of the sheet.
    width: u32,
    height: u32,
    // Pixels from the beginning of a row to that of the next.
    pitch: u32,
    // How bright each code is, from 0 to 255, four in a number.
    bright: array<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> sheet: array<u32>;
@group(0) @binding(2) var<storage, read> info: Info;

// One channel of a pixel; `first` is where its lowest bit lies.
fn brightness(first: u32) -> u32 {
    var code = 0u;
    for (var bit = 0u; bit < info.bits; bit++) {
        if x[first + bit * info.size * info.size] > 0.0 { code |= 1u << bit; }
    }
    return (info.bright[code / 4u] >> (8u * (code % 4u))) & 255u;
}

fn colour(left: u32, top: u32) -> u32 {
    let pitch = info.size + 1u;
    let picture = top / pitch * info.columns + left / pitch;
    let at = vec2<u32>(left, top) % pitch;
    if left >= info.width || picture >= info.n || at.x == info.size || at.y == info.size { return 0u; }
    let area = info.size * info.size;
    var packed = 255u << 24u;
    for (var i = 0u; i < 3u; i++) {
        let channel = picture * info.channels + min(i, info.channels - 1u);
        packed |= brightness(channel * info.bits * area + at.y * info.size + at.x) << (8u * i);
    }
    return packed;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    for (var i = id.x; i < info.pitch * info.height; i += 64u * count.x) {
        sheet[i] = colour(i % info.pitch, i / info.pitch);
    }
}
