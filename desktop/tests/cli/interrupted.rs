//! Training that is stopped: politely, and not.

use std::{
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::program::{Place, tiny};

/// How often training is killed.
const KILLS: usize = 50;

#[test]
fn ctrl_c_saves_and_is_a_success() {
    let place = Place::new();
    // Only the start and the end are saved.
    let arguments = "train tiny.json --device cpu --steps 1000000 --save-every 0 --sheet-every 0 --out run";
    let child = place.program(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while !place.path("run/model.safetensors").exists() && started.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(300));
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("stopped and saved") && said.contains("--resume"), "{said}");
    let n_steps = place.n_steps("run");
    assert!(n_steps > 0);
    assert_eq!(place.n_steps("run/model.safetensors"), n_steps);
}

#[test]
fn kill_9_during_saves_never_loses_the_last_checkpoint() {
    let place = Place::new();
    // Large enough that most of the time goes into saving.
    let mut config = tiny();
    config["network"]["width"] = json!(32);
    config["network"]["n_blocks"] = json!(2);
    config["batch_size"] = json!(1);
    place.write("tiny.json", config.to_string().as_bytes());
    place.ok("train tiny.json --device cpu --steps 1 --sheet-every 0 --out run");

    let started = Instant::now();
    let (mut last, mut n_cut_short) = (place.n_steps("run"), 0);
    for kill in 0..KILLS {
        let arguments = "train --resume --device cpu --steps 1000000 --save-every 1 --sheet-every 0 --out run";
        let mut child = place.program(arguments).stderr(Stdio::null()).spawn().unwrap();
        // From before the start of the training to some steps later, at moments that never repeat.
        sleep(Duration::from_millis(40 + (kill as u64 * 37) % 331));
        child.kill().unwrap();
        child.wait().unwrap();
        let was_saving =
            ["checkpoint", "model"].iter().any(|file| place.path(&format!("run/.{file}.safetensors.part")).exists());
        n_cut_short += usize::from(was_saving);

        let n_steps = place.n_steps("run/checkpoint.safetensors");
        assert!(n_steps >= last, "kill {kill}: back from step {last} to {n_steps}");
        last = n_steps;
        place.n_steps("run/model.safetensors");
    }
    eprintln!("{KILLS} kills in {:?}: {last} steps, {n_cut_short} kills during a save", started.elapsed());
    assert!(last > KILLS / 2, "only {last} steps: the kills came too early to say anything");
    assert!(n_cut_short > 0, "no kill came during a save");
    // The next save uses the leftovers up.
    place.ok(&format!("train --resume --device cpu --sheet-every 0 --out run --steps {}", last + 1));
    assert!(!place.path("run/.checkpoint.safetensors.part").exists());
    assert!(!place.path("run/.model.safetensors.part").exists());
    let log = String::from_utf8(place.read("run/log.csv")).unwrap();
    assert_eq!(log.lines().count(), last + 2, "a line for each step and the header");
}
