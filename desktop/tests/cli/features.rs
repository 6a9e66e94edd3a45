//! `bit-diffusion features`.

use std::io::Cursor;

use bit_diffusion::{model::features::TokenCache, rng::Rng};
use image::{ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};

use crate::program::Place;

/// As much of an encoder as its first blocks need, with made-up weights of a size that keeps what passes through it in bounds.
pub fn encoder(n_blocks: usize) -> Vec<u8> {
    let golden: Value = serde_json::from_str(include_str!("../../../core/tests/golden/encoder.json")).unwrap();
    let mut shapes = golden["kernels"].as_object().unwrap().clone();
    for (norm, channels) in golden["norms"].as_object().unwrap() {
        for part in ["weight", "bias", "running_mean", "running_var"] {
            shapes.insert(format!("{norm}.{part}"), json!([channels]));
        }
    }
    let is_late = |name: &str| (n_blocks..16).any(|block| name.starts_with(&format!("_blocks.{block}.")));
    shapes.retain(|name, _| !is_late(name) && !name.starts_with("_conv_head") && !name.starts_with("_fc"));
    let mut header = json!({});
    let mut data = Vec::new();
    let mut rng = Rng::new(1);
    for (name, shape) in shapes {
        let shape: Vec<usize> = shape.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        let start = data.len();
        let fan_in: usize = shape[1..].iter().product();
        let (low, high) = match name.rsplit('.').next().unwrap() {
            "weight" if shape.len() > 1 => (-(6.0 / fan_in as f64).sqrt(), (6.0 / fan_in as f64).sqrt()),
            "weight" | "running_var" => (0.8, 1.2),
            _ => (-0.1, 0.1),
        };
        let values = (0..shape.iter().product()).map(|_: usize| (low + (high - low) * rng.uniform()) as f32);
        data.extend(values.flat_map(f32::to_le_bytes));
        header[name] = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

/// A tar of pictures, each of one shade.
pub fn archive(pictures: &[(&str, u8)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for &(name, shade) in pictures {
        let mut png = Cursor::new(vec![]);
        RgbImage::from_pixel(9, 8, Rgb([shade; 3])).write_to(&mut png, ImageFormat::Png).unwrap();
        let png = png.into_inner();
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", png.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(header);
        archive.extend(png);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

const FEATURES: &str = "features encoder.safetensors --data . --pictures 16 --size 32 --layer sixteenth --device cpu";

fn place() -> Place {
    let place = Place::new();
    place.write("encoder.safetensors", &encoder(11));
    place.write("photos-train.tar", &archive(&[("1.png", 10), ("2.png", 200), ("3.png", 10)]));
    place.write("captions-train.tsv", b"image_id\tcaption\n1\tdark\n2\tbright\n3\tdark too\n");
    place
}

#[test]
fn tokens_of_all_pictures_are_kept() {
    let place = place();
    let ran = place.ok(&format!("{FEATURES} --batch-size 2 --out tokens.safetensors"));
    assert!(ran.stdout.contains("3 pictures of 4 tokens, 112 channels each"), "{}", ran.stdout);
    let read = |name: &str| {
        let mut cache = TokenCache::open(Cursor::new(place.read(name)), name).unwrap();
        let info = cache.info();
        assert_eq!((info.n_examples, info.picture_size, info.encoder.size), (3, 16, 32));
        (0..3).map(|index| cache.read(index).unwrap()).collect::<Vec<Vec<f32>>>()
    };
    let tokens = read("tokens.safetensors");
    assert_eq!(tokens[0].len(), 4 * 112);
    // Another batch may be summed in another order, which can move an f16 to its neighbour: a thousandth.
    let difference = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let largest = difference(&tokens[0], &[0.0; 448]);
    assert!(difference(&tokens[0], &tokens[1]) > 0.1 * largest, "a dark picture is not a bright one");
    assert!(difference(&tokens[0], &tokens[2]) < 2e-3 * largest, "the same picture");
    place.ok(&format!("{FEATURES} --batch-size 3 --out again.safetensors"));
    for (left, right) in tokens.iter().zip(&read("again.safetensors")) {
        assert!(difference(left, right) < 2e-3 * largest, "however many at a time");
    }
}

#[test]
fn what_is_missing_or_broken_is_named() {
    let place = place();
    let out = "--out tokens.safetensors";
    place.fails(&format!("{FEATURES} --test {out}"), 1, &["no archive of pictures", "val or test"]);
    place.fails(&format!("{FEATURES} --batch-size 0 {out}"), 1, &["--batch-size is 0"]);
    place.fails(&format!("{FEATURES} --out none/tokens"), 1, &["no such folder"]);
    let layer = |layer: &str| format!("features encoder.safetensors --data . --device cpu --layer {layer} {out}");
    place.fails(&layer("middle"), 2, &["sixteenth, last or head"]);
    place.fails(&layer("last"), 1, &["no _blocks.11._expand_conv.weight", "encoder.safetensors"]);
    place.write("photos-train.tar", &archive(&[("1.png", 10), ("2.png", 200)]));
    place.fails(&format!("{FEATURES} {out}"), 1, &["line 4", "picture 3", "belong together"]);
    let mut broken = archive(&[("1.png", 10), ("2.png", 200), ("3.png", 10)]);
    broken[512..516].fill(0);
    place.write("photos-train.tar", &broken);
    place.fails(&format!("{FEATURES} {out}"), 1, &["neither a PNG nor a JPEG", "1.png"]);
    assert!(!place.path("tokens.safetensors").exists() && !place.path(".tokens.safetensors.part").exists());
    place.write("more-train.tar", &broken);
    place.fails(&format!("{FEATURES} {out}"), 1, &["more than one archive"]);
}
