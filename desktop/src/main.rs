//! The desktop program: the studio in a window, and the same engine as a command line.

mod caption;
mod captioned;
mod captions;
mod cli;
mod data;
mod dialogs;
mod eval;
mod features;
mod files;
mod histogram;
mod inspect;
mod keep;
mod log;
mod output;
mod progress;
mod relabel;
mod sample;
mod save;
mod sheet;
mod studio;
mod train;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use cli::{Cli, Command};

/// See the workspace's Cargo.toml.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    env_logger::init();
    // A wrong flag ends the program here, with 2.
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bit-diffusion: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    match cli.command {
        None => studio::run(cli.panel, cli.device),
        Some(Command::Train(arguments)) => train::run(&arguments),
        Some(Command::Sample(arguments)) => sample::run(&arguments),
        Some(Command::Caption(arguments)) => caption::run(&arguments),
        Some(Command::Relabel(arguments)) => relabel::run(&arguments),
        Some(Command::Eval(arguments)) => eval::run(&arguments),
        Some(Command::Features(arguments)) => features::run(&arguments),
        Some(Command::Presets { name }) => inspect::presets(name.as_deref()),
        Some(Command::Inspect { file }) => inspect::run(&file),
        Some(Command::Export { model, out, precision }) => files::export(&model, &out, precision),
        Some(Command::Import { weights, config, out, precision }) => files::import(&weights, &config, &out, precision),
    }
}
