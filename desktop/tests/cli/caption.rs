//! `bit-diffusion caption`, and `train` and `eval` of captioners, through the real program.

use std::{fs, io::Cursor};

use image::{ImageFormat, RgbImage};
use serde_json::{Value, json};

use crate::{
    features::{archive, encoder},
    program::Place,
};

fn json_of(place: &Place, arguments: &str) -> Value {
    serde_json::from_str(&place.ok(arguments).stdout).unwrap()
}

/// Settings of a tiny captioner, made from those of a preset.
fn tiny(place: &Place, preset: &str) {
    let mut config: Value = serde_json::from_str(&place.ok(&format!("presets {preset}")).stdout).unwrap();
    for (key, value) in [("width", json!(8)), ("n_layers", json!(1)), ("n_heads", json!(2))] {
        config["network"][key] = value;
    }
    config["batch_size"] = json!(2);
    config["micro_batch_size"] = json!(2);
    place.write(&format!("{preset}.json"), config.to_string().as_bytes());
}

#[test]
fn the_demo_captioners_say_what_scenes_show() {
    let place = Place::new();
    let caption = "caption shapes-captions --scenes 12 --device cpu --json";
    let report = json_of(&place, &format!("{caption} --td 2 --steps 10"));
    assert_eq!((report["evaluations"].as_u64(), report["captions"].as_array().unwrap().len()), (Some(10), 12));
    let n_true = |report: &Value| {
        let captions = report["captions"].as_array().unwrap();
        captions.iter().filter(|line| line["is_true"] == true).count()
    };
    // Of the shipped model nineteen in twenty are.
    assert!(n_true(&report) >= 9, "{report}");
    assert_eq!(
        report["captions"],
        json_of(&place, &format!("{caption} --td 2 --steps 10"))["captions"],
        "the same seed"
    );
    assert_ne!(report["captions"], json_of(&place, &format!("{caption} --td 2 --steps 10 --seed 1"))["captions"]);
    // One step says too little.
    assert!(n_true(&json_of(&place, &format!("{caption} --steps 1 --td 0"))) < n_true(&report));

    let baseline = json_of(&place, &format!("{caption} --autoregressive"));
    assert!(n_true(&baseline) >= 11, "{baseline}");
    assert!(baseline["evaluations"].as_u64().unwrap() > 5, "one for each word: {baseline}");
    let beam = json_of(&place, &format!("{caption} --autoregressive --beam 3"));
    assert!(n_true(&beam) >= 11, "{beam}");
    let text = place.ok("caption shapes-captions --scenes 2 --device cpu --steps 10").stdout;
    assert!(text.contains("scene 1: ") && text.contains("(true)") && text.contains("10 runs of the network"), "{text}");
}

#[test]
fn captioners_are_trained_and_scored() {
    let place = Place::new();
    tiny(&place, "shapes-captions");
    tiny(&place, "shapes-captions-ar");
    for preset in ["shapes-captions", "shapes-captions-ar"] {
        place.ok(&format!("train {preset}.json --device cpu --steps 2 --sheet-every 2 --out {preset}"));
        assert_eq!(place.n_steps(preset), 2);
    }
    let eval = "eval shapes-captions --device cpu --n 4 --seeds 2 --steps 2,3 --td 0,1 --baseline shapes-captions-ar --out out";
    let ran = place.ok(eval);
    // The heading, the names of the columns, a line for each setting, and the baseline.
    assert_eq!(ran.stdout.lines().count(), 2 + 4 + 1, "{}", ran.stdout);
    for word in ["true %", "BLEU-4", "CIDEr-D", "ROUGE-L", "autoregressive"] {
        assert!(ran.stdout.contains(word), "no {word} in {}", ran.stdout);
    }
    let plot = image::load_from_memory(&place.read("out/eval.png")).unwrap().to_rgb8();
    let first = *plot.get_pixel(0, 0);
    assert!(plot.pixels().any(|pixel| *pixel != first), "the plot is blank");
    place.fails("eval shapes-captions --device cpu --baseline shapes-captions", 1, &["has to be an autoregressive"]);
}

#[test]
fn a_captioner_looks_through_an_encoder() {
    let place = Place::new();
    place.write("encoder.safetensors", &encoder(16));
    for (split, last) in [("train", "2"), ("val", "3")] {
        place.write(&format!("photos-{split}.tar"), &archive(&[("1.png", 10), (&format!("{last}.png"), 200)]));
        place.write(
            &format!("captions-{split}.tsv"),
            format!("image_id\tcaption\n1\ta dark place\n{last}\ta bright place\n").as_bytes(),
        );
    }
    for (flag, name) in [("", "train"), ("--test", "val")] {
        place.ok(&format!(
            "features encoder.safetensors --data . --size 192 --device cpu {flag} --out {name}.safetensors"
        ));
    }
    let of_train = "--features train.safetensors --device cpu";
    let little = "--sheet-every 0 --batch-size 2 --micro-batch 2";
    place.ok(&format!("train coco-features --data . {of_train} {little} --steps 2 --out run"));
    let ran = place.ok("eval run --data . --features val.safetensors --device cpu --steps 2 --seeds 1");
    assert!(ran.stdout.contains("2 pictures") && ran.stdout.contains("BLEU-4"), "{}", ran.stdout);

    // It writes a table that another can learn from; what it says nothing of keeps its caption.
    let relabel = format!("relabel run --data . {of_train} --steps 2 --out relabelled/captions-train.tsv");
    place.fails(&relabel, 1, &["relabelled"]);
    fs::create_dir(place.path("relabelled")).unwrap();
    place.ok(&relabel);
    let table = String::from_utf8(place.read("relabelled/captions-train.tsv")).unwrap();
    let ids: Vec<&str> = table.lines().skip(1).map(|line| line.split_once('\t').unwrap().0).collect();
    assert_eq!(ids, ["1", "2"], "{table}");
    assert!(table.lines().all(|line| line.split_once('\t').is_some_and(|(_, caption)| !caption.is_empty())), "{table}");
    place.write("relabelled/photos-train.tar", &place.read("photos-train.tar"));
    // An eye of its own learns to see what the encoder does, and needs neither afterwards.
    place.ok(&format!("train coco-small --data relabelled {of_train} {little} --steps 1 --out eye"));
    place.ok("eval eye --data . --device cpu --steps 2 --seeds 1");

    let mut photo = Cursor::new(vec![]);
    RgbImage::from_fn(120, 90, |x, y| image::Rgb([x as u8, y as u8, 128]))
        .write_to(&mut photo, ImageFormat::Png)
        .unwrap();
    place.write("photo.png", &photo.into_inner());
    place.ok("caption eye photo.png --device cpu --steps 2");
    place.fails(
        "train coco-small --data . --device cpu --steps 1 --out blind",
        1,
        &["sees features, or learns to", "--features"],
    );
    let caption = "caption run photo.png --device cpu --steps 2 --json";
    let report = json_of(&place, &format!("{caption} --encoder encoder.safetensors"));
    assert_eq!(report["captions"][0]["picture"], "photo.png", "{report}");
    place.fails(caption, 1, &["looks through EfficientNet-lite0", "--encoder"]);
    place.fails(&format!("{caption} --encoder photo.png"), 1, &["no complete safetensors file", "photo.png"]);
    place.fails(
        "eval run --data . --features train.safetensors --device cpu --steps 2",
        1,
        &["the features of other pictures", "train.safetensors"],
    );
}

#[test]
fn what_cannot_be_captioned_is_named() {
    let place = Place::new();
    place.write("broken.png", b"\x89PNG\r\n\x1a\n and no more");
    place.write("other.model", b"no tokenizer");
    let caption = "caption shapes-captions --device cpu";
    place.fails(caption, 2, &["<IMAGE>"]);
    place.fails(&format!("{caption} nothing.png"), 1, &["cannot read nothing.png"]);
    place.fails(&format!("{caption} broken.png"), 1, &["broken.png"]);
    place.fails(&format!("{caption} --scenes 0"), 1, &["--scenes must be at least 1"]);
    place.fails(&format!("{caption} --scenes 1 --steps 0"), 1, &["steps"]);
    place.fails(&format!("{caption} --scenes 1 --tokenizer other.model"), 1, &["other.model"]);
    place.fails("caption shapes-captions-ar --scenes 1 --beam 0 --device cpu", 1, &["beam"]);
    place.fails(
        "caption shapes-uint8 --scenes 1 --device cpu",
        1,
        &["a network for pictures, where one for captions is wanted"],
    );
    place.fails("caption nothing --scenes 1", 1, &["nothing", "shapes-captions"]);
}
