//! `bit-diffusion eval`, through the real program.

use serde_json::Value;

use crate::program::Place;

/// A run to evaluate.
fn place() -> Place {
    let place = Place::new();
    place.ok("train tiny.json --device cpu --steps 3 --sheet-every 0 --out run");
    place
}

#[test]
fn a_grid_of_settings_becomes_a_table_a_csv_and_a_plot() {
    let place = place();
    let ran = place.ok(
        "eval run --device cpu --n 4 --seeds 2 --steps 1,2 --td 0,1.5 --sampler ddim,dpm-solver-2 --self-cond off,guide=3 --out out",
    );
    // The heading, the names of the columns, and 2 samplers × 2 strategies × 2 step counts × 2 time differences.
    assert_eq!(ran.stdout.lines().count(), 2 + 16, "{}", ran.stdout);
    assert!(ran.stdout.contains("bits near a mode %"), "{}", ran.stdout);
    let csv = String::from_utf8(place.read("out/eval.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 16, "{csv}");
    // Two steps of order 2, each with and without an estimate.
    assert!(csv.lines().any(|line| line.starts_with("DPM-Solver-2,guide=3,2,0,8,")), "{csv}");
    let table: Value = serde_json::from_slice(&place.read("out/eval.json")).unwrap();
    assert_eq!(table["rows"].as_array().unwrap().len(), 16);
    let plot = image::load_from_memory(&place.read("out/eval.png")).unwrap().to_rgb8();
    let first = *plot.get_pixel(0, 0);
    assert!(plot.pixels().any(|pixel| *pixel != first), "the plot is blank");
}

#[test]
fn the_same_seeds_give_the_same_scores() {
    let place = place();
    let scores = |seed: u64| {
        let ran = place.ok(&format!("eval run --device cpu --n 4 --seeds 2 --steps 3 --json --seed {seed}"));
        let table: Value = serde_json::from_str(&ran.stdout).unwrap();
        table["rows"][0]["scores"].to_string()
    };
    assert_eq!(scores(1), scores(1));
    assert_ne!(scores(1), scores(5));
}

#[test]
fn strategies_compare_at_equal_evaluations() {
    let place = place();
    let ran = place.ok("eval run --device cpu --n 1 --seeds 1 --evaluations 6 --sampler ddim,dpm-solver-3 --self-cond previous,guide=3 --json");
    let table: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let steps: Vec<u64> = rows.iter().map(|row| row["settings"]["n_steps"].as_u64().unwrap()).collect();
    assert_eq!(steps, [6, 3, 2, 1]);
    assert!(rows.iter().all(|row| row["evaluations"] == 6), "{}", ran.stdout);
    place.fails("eval run --evaluations 6 --steps 6", 2, &["--evaluations", "--steps"]);
}

#[test]
fn wrong_bits_are_counted_at_given_times() {
    let place = Place::new();
    place.write("config.json", place.ok("presets shapes-uint8").stdout.as_bytes());
    place.ok("train config.json --device cpu --steps 1 --batch-size 1 --sheet-every 0 --out run");
    let ran = place.ok("eval run --device cpu --n 2 --bit-error 0.01,0.99 --out out");
    assert_eq!(ran.stdout.lines().count(), 3, "{}", ran.stdout);
    let csv = String::from_utf8(place.read("out/bit-error.csv")).unwrap();
    let shares: Vec<f64> =
        csv.lines().skip(1).flat_map(|line| line.split(',').skip(2)).map(|v| v.parse().unwrap()).collect();
    // A network after one step knows little, and less the noisier the picture.
    assert!(shares.len() == 4 && shares.iter().all(|share| (0.01..0.6).contains(share)), "{csv}");
    assert!(shares[0] < shares[2] && shares[1] < shares[3], "{csv}");
    // And its samples have an exact score.
    let ran = place.ok("eval run --device cpu --n 1 --seeds 1 --steps 2");
    assert!(ran.stdout.contains("wrong colours %") && ran.stdout.contains("flawless scenes %"), "{}", ran.stdout);
}

#[test]
fn features_need_data_and_a_network_that_is_one() {
    let place = place();
    place.write("features.safetensors", b"not a network");
    place.fails("eval run --device cpu --features features.safetensors", 1, &["--data"]);
    place.fails("eval run --device cpu --features features.safetensors --data .", 1, &["features.safetensors"]);
    place.fails("eval run --device cpu --n 0", 2, &["--n"]);
    place.fails("eval run --device cpu --steps 0", 1, &["steps"]);
    place.fails("eval run --device cpu --guidance 2", 1, &["no classes", "--guidance"]);
    place.fails("eval run --device cpu --bit-error 0.5,1.5", 1, &["1.5", "from 0 to 1"]);
    place.fails("eval run --device cpu --bit-error nan", 1, &["NaN", "from 0 to 1"]);
    place.fails("eval nothing", 1, &["nothing", "shapes-uint8"]);
}
