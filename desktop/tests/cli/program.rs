//! The real program in a folder of its own, and a network small enough to train in milliseconds.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder that goes away after the test.
pub struct Place(TempDir);

impl Place {
    /// A folder with `tiny.json`, settings for shapes.
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("tiny.json", tiny().to_string().as_bytes());
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The program, to be run here.
    pub fn program(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bit-diffusion"));
        command.current_dir(self.0.path()).args(arguments.split_whitespace());
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET");
        command
    }

    /// Runs the program; what it said and how it ended.
    pub fn run(&self, arguments: &str) -> Ran {
        let Output { status, stdout, stderr } = self.program(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Runs the program, which must succeed.
    #[track_caller]
    pub fn ok(&self, arguments: &str) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments}: {}", ran.stderr);
        ran
    }

    /// Runs the program, which must fail with this code and say these words.
    #[track_caller]
    pub fn fails(&self, arguments: &str, code: i32, words: &[&str]) {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments}: {}", ran.stderr);
        for word in words {
            assert!(ran.stderr.contains(word), "{arguments}: no {word:?} in {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("panicked"), "{arguments}: {}", ran.stderr);
    }

    /// The steps of a file, as `inspect` says them.
    #[track_caller]
    pub fn n_steps(&self, file: &str) -> usize {
        let said = self.ok(&format!("inspect {file}")).stdout;
        let line = said.lines().find_map(|line| line.strip_prefix("steps: ")).expect("inspect says the steps");
        line.parse().unwrap()
    }
}

/// How a program ended.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Settings of a tiny network for shapes.
pub fn tiny() -> Value {
    let program = env!("CARGO_BIN_EXE_bit-diffusion");
    let printed = Command::new(program).args(["presets", "shapes-uint8"]).output().unwrap();
    let mut config: Value = serde_json::from_slice(&printed.stdout).unwrap();
    for (key, value) in [
        ("width", json!(4)),
        ("multipliers", json!([1])),
        ("n_blocks", json!(1)),
        ("attention_sizes", json!([])),
        ("head_dim", json!(4)),
    ] {
        config["network"][key] = value;
    }
    config["batch_size"] = json!(2);
    config["micro_batch_size"] = json!(2);
    config
}
