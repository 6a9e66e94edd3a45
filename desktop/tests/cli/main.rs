//! The command line, through the real program.

mod caption;
mod copied;
mod eval;
mod features;
#[cfg(unix)]
mod interrupted;
mod program;

use program::{Place, tiny};
use serde_json::{Value, json};

const TRAIN: &str = "train tiny.json --device cpu --sheet-every 0 --out";

#[test]
fn a_run_leaves_all_its_files() {
    let place = Place::new();
    let ran = place.ok("train tiny.json --device cpu --steps 4 --sheet-every 2 --out run");
    assert!(ran.stderr.contains("device: CPU") && ran.stderr.contains("done: 4 steps"), "{}", ran.stderr);
    assert_eq!((place.n_steps("run"), place.n_steps("run/model.safetensors")), (4, 4));
    let config: Value = serde_json::from_slice(&place.read("run/config.json")).unwrap();
    assert_eq!(config, tiny());
    let log = String::from_utf8(place.read("run/log.csv")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[0], "step,loss,gradient_norm,learning_rate,seconds");
    assert_eq!(lines.len(), 5, "{log}");
    assert!(lines[1..].iter().all(|line| line.split(',').all(|field| field.parse::<f64>().is_ok())), "{log}");
    for sheet in ["000002", "000004"] {
        let bytes = place.read(&format!("run/samples/{sheet}.png"));
        let sheet = image::load_from_memory(&bytes).unwrap();
        assert_eq!((sheet.width(), sheet.height()), (4 * 68 + 4, 4 * 68 + 4));
    }
}

#[test]
fn a_resumed_run_is_the_same_as_one_in_one_piece() {
    let place = Place::new();
    place.ok(&format!("{TRAIN} whole --steps 4"));
    place.ok(&format!("{TRAIN} parts --steps 2"));
    place.ok("train --resume --device cpu --sheet-every 0 --out parts --steps 4");
    assert!(place.read("whole/checkpoint.safetensors") == place.read("parts/checkpoint.safetensors"));
    assert!(place.read("whole/model.safetensors") == place.read("parts/model.safetensors"));
    let columns = |run: &str| {
        let log = String::from_utf8(place.read(&format!("{run}/log.csv"))).unwrap();
        log.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(columns("whole"), columns("parts"));
    // Another seed is another run.
    place.ok(&format!("{TRAIN} other --steps 4 --seed 7"));
    assert!(place.read("whole/checkpoint.safetensors") != place.read("other/checkpoint.safetensors"));
}

#[test]
fn runs_are_not_overwritten_or_mixed_up() {
    let place = Place::new();
    place.fails("train tiny.json --resume --out run --steps 2", 1, &["no run to go on with", "without --resume"]);
    place.ok(&format!("{TRAIN} run --steps 2"));
    place.fails(&format!("{TRAIN} run --steps 4"), 1, &["not empty", "--resume"]);
    let mut other = tiny();
    other["network"]["width"] = json!(8);
    place.write("other.json", other.to_string().as_bytes());
    let resume = "--resume --device cpu --sheet-every 0 --out run --steps 3";
    place.fails(&format!("train other.json {resume}"), 1, &["network.width 4 → 8", "leave that out"]);
    place.fails(&format!("train tiny.json {resume} --seed 9"), 1, &["seed 0", "--seed"]);
    assert_eq!(place.n_steps("run"), 2);
    // A flag is a change on purpose.
    let ran = place.ok(&format!("train tiny.json {resume} --learning-rate 0.0005"));
    assert!(ran.stderr.contains("changed: learning_rate 0.001 → 0.0005"), "{}", ran.stderr);
    assert_eq!(place.n_steps("run"), 3);
    place.ok("train --resume --out run --steps 2 --device cpu");
    assert_eq!(place.n_steps("run"), 3, "nothing to do is no harm");
    place.ok("train --resume --out run --steps 9 --minutes 0 --device cpu");
    assert_eq!(place.n_steps("run"), 3, "no time, no step");
}

#[test]
fn samples_are_pictures_that_a_seed_decides() {
    let place = Place::new();
    place.ok(&format!("{TRAIN} run --steps 3"));
    let sample = "sample run --device cpu --steps 5 --td 0.5 --self-cond momentum=0.5 --sampler ddpm --n 5";
    let files = "--chain c.gif --histogram h.png --json";
    let ran = place.ok(&format!("{sample} --seed 1 --out a.png {files}"));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["n"], &report["evaluations"], &report["model_steps"]), (&json!(5), &json!(5), &json!(3)));
    assert_eq!(report["settings"]["self_cond"], json!({"Momentum": {"momentum": 0.5}}));
    assert!(report["shapes"]["off_palette"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(report["shapes"]["scenes"], json!(0.0));
    let sheet = image::load_from_memory(&place.read("a.png")).unwrap();
    assert_eq!((sheet.width(), sheet.height()), (3 * 68 + 4, 2 * 68 + 4));
    assert_eq!(image::load_from_memory(&place.read("c.gif")).unwrap().width(), 2 * (3 * 68 + 4));
    assert_eq!(image::load_from_memory(&place.read("h.png")).unwrap().width(), 960);

    place.ok(&format!("{sample} --seed 1 --out b.png"));
    place.ok(&format!("{sample} --seed 2 --out c.png"));
    assert!(place.read("a.png") == place.read("b.png"));
    assert!(place.read("a.png") != place.read("c.png"));
    // More than one batch.
    place.ok("sample run --device cpu --steps 1 --n 300 --out many.png");
    assert_eq!(image::load_from_memory(&place.read("many.png")).unwrap().width(), 18 * 68 + 4);
}

#[test]
fn a_model_goes_out_and_comes_back() {
    let place = Place::new();
    place.ok(&format!("{TRAIN} run --steps 2"));
    place.ok("export run f16.safetensors");
    assert!(place.read("f16.safetensors") == place.read("run/model.safetensors"));
    place.ok("export run/checkpoint.safetensors f32.safetensors --precision f32");
    place.ok("import f32.safetensors --config tiny.json --out back.safetensors --precision f32");
    let sample = "--device cpu --steps 3 --n 4 --out";
    place.ok(&format!("sample run/checkpoint.safetensors {sample} a.png"));
    place.ok(&format!("sample back.safetensors {sample} b.png"));
    assert!(place.read("a.png") == place.read("b.png"));
    place.fails("train --resume --out run2 --steps 3", 1, &["no run to go on with"]);
    let other = "import f32.safetensors --config shapes-uint8 --out no.safetensors";
    place.fails(other, 1, &["more than its", "settings", "f32.safetensors"]);
    place.fails("export run .", 1, &["folder", "name of a file"]);
    place.fails("export run nowhere/a.safetensors", 1, &["no such folder", "nowhere"]);
}

#[test]
fn wrong_flags_are_a_matter_of_usage() {
    let place = Place::new();
    for arguments in [
        "train",
        "train shapes-uint8",
        "train tiny.json --out run",
        "train shapes-uint8 --out run --steps many",
        "train shapes-uint8 --out run --device gpu",
        "train shapes-uint8 --out run --minutes nan",
        "sample model --out a.png --sampler euler",
        "sample model --out a.png --self-cond sometimes",
        "sample model",
        "presets nothing",
        "fly",
    ] {
        place.fails(arguments, 2, &["error:"]);
    }
    assert!(!place.path("run").exists(), "nothing is left behind");
    place.fails("train nothing --out run", 1, &["neither a preset nor a JSON file", "shapes-uint8"]);
    place.write("bad.json", b"{\"network\": 3}");
    place.fails("train bad.json --out run --steps 1", 1, &["bad.json", "presets NAME"]);
    let mut config = tiny();
    config["learning_rate"] = json!(-1.0);
    place.write("bad.json", config.to_string().as_bytes());
    place.fails("train bad.json --out run --steps 1", 1, &["learning rate is -1", "above 0"]);
    // Of a captioner's settings, what is wrong with a captioner's settings.
    let captioner = place.ok("presets shapes-captions").stdout;
    place.write("bad.json", captioner.replace("\"n_heads\": ", "\"n_heads\": -").as_bytes());
    place.fails("train bad.json --out run --steps 1", 1, &["bad.json", "invalid value: integer `-"]);
    place.fails("train cifar10-small --out run --steps 1", 1, &["32 × 32", "name a folder"]);
    place.fails("train tiny.json --data nowhere --out run --steps 1", 1, &["cannot list the folder nowhere"]);
}

#[test]
fn model_files_that_cannot_be_used_are_explained() {
    let place = Place::new();
    place.ok(&format!("{TRAIN} run --steps 1"));
    let whole = place.read("run/model.safetensors");
    place.write("cut.safetensors", &whole[..whole.len() / 2]);
    place.write("flipped.safetensors", &{
        let mut bytes = whole.clone();
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    });
    let header = br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let foreign = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat();
    place.write("foreign.safetensors", &foreign);
    place.write("text.safetensors", b"hello");
    for (file, words) in [
        ("missing.safetensors", ["cannot read a model", "missing.safetensors"]),
        ("cut.safetensors", ["no complete safetensors file", "get it again"]),
        ("flipped.safetensors", ["damaged", "earlier checkpoint"]),
        ("foreign.safetensors", ["not from Bit Diffusion Studio", "foreign.safetensors"]),
        ("text.safetensors", ["no complete safetensors file", "text.safetensors"]),
        (".", ["has no run", "model.safetensors"]),
    ] {
        place.fails(&format!("sample {file} --device cpu --out a.png"), 1, &words);
        place.fails(&format!("inspect {file}"), 1, &words[..1]);
    }
    place.fails("import foreign.safetensors --config tiny.json --out b", 1, &["do not fit", "foreign.safetensors"]);
    place.fails("sample run --device cpu --out a.png --class 1", 1, &["no classes"]);
    place.fails("sample run --device cpu --out a.png --guidance 2", 1, &["--guidance"]);
    place.fails("sample run --device cpu --out a.png --steps 0", 1, &["steps is 0"]);
    place.fails("sample run --device cpu --out a.png --n 0", 1, &["--n is 0"]);
    place.fails("sample run --device cpu --out nowhere/a.png", 1, &["no such folder"]);
    place.fails("sample run --out a.png --device wgpu:99", 1, &["no graphics card 99"]);
    assert!(!place.path("a.png").exists());
}

/// Sets all numbers of one tensor of a checkpoint, and mends the checksum.
fn with_tensor_set(bytes: &[u8], name: &str, value: f32) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let mut data = bytes[8 + length..].to_vec();
    let range = |header: &Value, name: &str| {
        let [start, end] = [0, 1].map(|i| header[name]["data_offsets"][i].as_u64().unwrap() as usize);
        start..end
    };
    for number in data[range(&header, name)].chunks_exact_mut(4) {
        number.copy_from_slice(&value.to_le_bytes());
    }
    let mut names: Vec<String> = header.as_object().unwrap().keys().cloned().collect();
    names.retain(|name| name != "__metadata__");
    names.sort();
    let crc = names.iter().flat_map(|name| &data[range(&header, name)]).fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    });
    let ours = header["__metadata__"]["bit-diffusion"].as_str().unwrap();
    let mut ours: Value = serde_json::from_str(ours).unwrap();
    ours["checksum"] = json!(!crc);
    header["__metadata__"]["bit-diffusion"] = json!(ours.to_string());
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn a_run_that_goes_astray_keeps_its_last_good_checkpoint() {
    let place = Place::new();
    place.ok(&format!("{TRAIN} run --steps 2"));
    // Weights so large that the next step overflows.
    let sick = with_tensor_set(&place.read("run/checkpoint.safetensors"), "weights.input.weight", 3e38);
    place.write("run/checkpoint.safetensors", &sick);
    let resume = "train --resume --device cpu --sheet-every 0 --save-every 1 --out run --steps 5";
    place.fails(resume, 1, &["gone astray", "lower learning rate", "step 2 is kept in run"]);
    assert!(place.read("run/checkpoint.safetensors") == sick);
}

#[test]
fn without_a_display_the_headless_commands_are_named() {
    if cfg!(target_os = "linux") {
        Place::new().fails("", 1, &["no display", "DISPLAY", "train, sample, caption, eval"]);
    }
}

/// With all drivers hidden from the loaders of Vulkan and OpenGL.
#[cfg(target_os = "linux")]
#[test]
fn without_a_graphics_card_auto_takes_the_processor_and_wgpu_is_an_error() {
    let place = Place::new();
    let run = |device: &str, out: &str| {
        let mut program =
            place.program(&format!("train tiny.json --steps 1 --sheet-every 0 --out {out} --device {device}"));
        for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "__EGL_VENDOR_LIBRARY_FILENAMES"] {
            program.env(variable, "/nonexistent");
        }
        let output = program.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run("auto", "a");
    assert!(code == Some(0) && said.contains("device: CPU: there is no graphics card"), "{said}");
    let (code, said) = run("wgpu", "b");
    assert!(code == Some(1) && said.contains("no graphics card can be used") && said.contains("`cpu`"), "{said}");
    assert!(!place.path("b").exists(), "nothing is left behind");
}

#[test]
fn presets_are_listed() {
    let place = Place::new();
    let said = place.ok("presets").stdout;
    assert!(said.contains("cifar10-uint8") && said.contains("52.0 M") && said.contains("1500000"), "{said}");
    let inspected = place.ok("presets imagenet64-rand").stdout;
    let config: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(config["network"]["output"], json!("SoftmaxFactorised"));
}

#[cfg(unix)]
#[test]
fn a_pipe_that_is_closed_early_is_no_failure() {
    use std::process::Stdio;
    let place = Place::new();
    let mut inspect =
        place.program("inspect shapes-uint8").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(inspect.stdout.take());
    let ended = inspect.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
}
