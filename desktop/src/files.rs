//! Models and settings by the paths and names that people type; exporting and importing them.
//!
//! Deliberately absent: the format of a model, which is the core's.

use std::{borrow::Cow, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    checkpoint::{self, Precision},
    demo::Demo,
    experiment::Preset,
    train::TrainConfig,
};

use crate::{output::print, save::write_atomically};

/// The file in a run's folder that training goes on from.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";

/// The file in a run's folder to sample from.
pub(crate) const MODEL: &str = "model.safetensors";

/// The settings in a run's folder.
pub(crate) const CONFIG: &str = "config.json";

/// Settings and, for a preset, how many steps they are meant for.
pub(crate) fn read_config(name: &str) -> Result<(TrainConfig, Option<usize>)> {
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "json") && !path.is_file() {
        let preset = Preset::from_label(name).context("this is neither a preset nor a JSON file")?;
        return Ok((preset.config(), Some(preset.n_steps())));
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let config: TrainConfig = serde_json::from_str(&text).with_context(|| {
        format!("these are no settings (start from those that `bit-diffusion presets NAME` prints), in {name}")
    })?;
    config.validate().with_context(|| format!("in {name}"))?;
    Ok((config, None))
}

/// Settings as text.
pub(crate) fn config_text(config: &TrainConfig) -> Result<String> {
    Ok(serde_json::to_string_pretty(config)? + "\n")
}

/// The bytes of a model or checkpoint; of a run's folder, those of the file `preferred` in it; or a demo model by its name.
pub(crate) fn read_model(path: &Path, preferred: &str) -> Result<Cow<'static, [u8]>> {
    let demo = path.to_str().and_then(|name| name.parse::<Demo>().ok());
    if let (Some(demo), false) = (demo, path.exists()) {
        return Ok(Cow::Borrowed(demo.bytes()));
    }
    let file = if path.is_dir() { path.join(preferred) } else { path.to_owned() };
    let names: Vec<&str> = Demo::ALL.into_iter().map(Demo::label).collect();
    let hint = if path.is_dir() {
        "this folder has no run".to_owned()
    } else {
        format!("the models that come with the program are {}", names.join(", "))
    };
    let bytes = fs::read(&file).with_context(|| format!("cannot read a model; {hint}: {}", file.display()))?;
    Ok(Cow::Owned(bytes))
}

/// Writes the network of a checkpoint as a file for sampling.
pub(crate) fn export(model: &Path, out: &Path, precision: Precision) -> Result<()> {
    let bytes = read_model(model, CHECKPOINT)?;
    let exported = checkpoint::extract(&bytes, precision).with_context(|| in_file(model))?;
    write_new(out, &exported)
}

/// Makes a model of weights from another program.
pub(crate) fn import(weights: &Path, config: &str, out: &Path, precision: Precision) -> Result<()> {
    let (config, _) = read_config(config)?;
    let bytes = fs::read(weights).with_context(|| format!("cannot read {}", weights.display()))?;
    let imported = checkpoint::import(&bytes, config, precision).with_context(|| in_file(weights))?;
    write_new(out, &imported)
}

/// Context for an error about a file's contents.
pub(crate) fn in_file(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

/// `Ok` if a file could be written there; asked before the work that it is for.
pub(crate) fn check_out(out: &Path) -> Result<()> {
    if out.is_dir() {
        bail!("this is a folder; give the name of a file to write: {}", out.display());
    }
    match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            bail!("there is no such folder; make it first: {}", folder.display())
        }
        _ => Ok(()),
    }
}

fn write_new(out: &Path, bytes: &[u8]) -> Result<()> {
    check_out(out)?;
    write_atomically(out, bytes)?;
    print(&format!("{} ({:.1} MB)\n", out.display(), bytes.len() as f64 / 1e6))
}
