//! Models and settings by the paths and names that people type; exporting and importing them.
//!
//! Deliberately absent: the format of a model, which is the core's.

use std::{borrow::Cow, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    checkpoint::{self, Precision},
    demo::Demo,
    experiment::{CaptionPreset, Preset},
    model::CaptionerConfig,
    train::{Kind, NetworkConfig, TrainConfig},
};

use crate::{captions, cli::CaptionDataArguments, output::print, save::write_atomically};

/// The file in a run's folder that training goes on from.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";

/// The file in a run's folder to sample from.
pub(crate) const MODEL: &str = "model.safetensors";

/// The settings in a run's folder.
pub(crate) const CONFIG: &str = "config.json";

/// The settings of a run, of one kind or the other.
pub(crate) enum AnyConfig {
    /// Of a network of pictures.
    Pictures(Box<TrainConfig>),
    /// Of a captioner.
    Captions(Box<TrainConfig<CaptionerConfig>>),
}

impl AnyConfig {
    /// What the network makes.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Pictures(_) => Kind::Pictures,
            Self::Captions(_) => Kind::Captions,
        }
    }
}

/// Settings and, for a preset, how many steps they are meant for.
pub(crate) fn read_config(
    name: &str,
    captions: &CaptionDataArguments,
    data: Option<&Path>,
) -> Result<(AnyConfig, Option<usize>)> {
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "json") && !path.is_file() {
        if let Ok(preset) = name.parse::<CaptionPreset>() {
            let config = preset.config(captions::vocabulary(preset, captions, data)?);
            return Ok((AnyConfig::Captions(Box::new(config)), Some(preset.n_steps())));
        }
        let preset = Preset::from_label(name).with_context(|| {
            let others: Vec<&str> = CaptionPreset::ALL.into_iter().map(CaptionPreset::label).collect();
            format!("this is neither a preset nor a JSON file; the presets of captions are {}", others.join(", "))
        })?;
        return Ok((AnyConfig::Pictures(Box::new(preset.config())), Some(preset.n_steps())));
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let no_settings =
        || format!("these are no settings (start from those that `bit-diffusion presets NAME` prints), in {name}");
    let value: serde_json::Value = serde_json::from_str(&text).with_context(no_settings)?;
    // Only captioners have one.
    if value.pointer("/network/vocabulary").is_some() {
        let config: TrainConfig<CaptionerConfig> = serde_json::from_str(&text).with_context(no_settings)?;
        config.validate().with_context(|| format!("in {name}"))?;
        return Ok((AnyConfig::Captions(Box::new(config)), None));
    }
    let config: TrainConfig = serde_json::from_str(&text).with_context(no_settings)?;
    config.validate().with_context(|| format!("in {name}"))?;
    Ok((AnyConfig::Pictures(Box::new(config)), None))
}

/// Settings as text.
pub(crate) fn config_text<C: NetworkConfig>(config: &TrainConfig<C>) -> Result<String> {
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
    let (config, _) = read_config(config, &CaptionDataArguments::default(), None)?;
    let bytes = fs::read(weights).with_context(|| format!("cannot read {}", weights.display()))?;
    let imported = match config {
        AnyConfig::Pictures(config) => checkpoint::import(&bytes, *config, precision),
        AnyConfig::Captions(config) => checkpoint::import(&bytes, *config, precision),
    };
    write_new(out, &imported.with_context(|| in_file(weights))?)
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
