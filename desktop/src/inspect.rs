//! `bit-diffusion inspect` and `bit-diffusion presets`: what there is.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result};
use bit_diffusion::{checkpoint, experiment::Preset, model::UNetConfig};

use crate::{
    files::{self, CHECKPOINT},
    output::print,
};

/// Says what a file is.
pub(crate) fn run(path: &Path) -> Result<()> {
    let bytes = files::read_model(path, CHECKPOINT)?;
    let header = checkpoint::inspect(&bytes).with_context(|| files::in_file(path))?;
    let entries = checkpoint::entries(&bytes).with_context(|| files::in_file(path))?;
    let network = &header.config.network;
    let can_train = entries.iter().any(|entry| entry.name.starts_with("weights."));
    let uses = if can_train { "sampling, and going on with the training" } else { "sampling" };
    let mut out = String::new();
    writeln!(out, "steps: {}", header.n_steps)?;
    writeln!(out, "parameters: {}", network.n_parameters())?;
    writeln!(out, "pictures: {}", pictures(network))?;
    writeln!(out, "good for: {uses}")?;
    writeln!(out, "size: {:.1} MB", bytes.len() as f64 / 1e6)?;
    writeln!(out, "\nsettings:\n{}", files::config_text(&header.config)?)?;
    writeln!(out, "tensors: {}", entries.len())?;
    for entry in entries {
        writeln!(out, "  {} {} {:?}", entry.name, entry.dtype, entry.shape)?;
    }
    print(&out)
}

fn pictures(network: &UNetConfig) -> String {
    let UNetConfig { size, channels, n_classes, encoding, alphabet, .. } = network;
    let classes = if *n_classes > 0 { format!("{n_classes} classes") } else { "no classes".to_owned() };
    format!("{size} × {size}, {channels} channels of {alphabet} values as {}, {classes}", encoding.label())
}

/// Lists the presets, or prints the settings of one.
pub(crate) fn presets(name: Option<Preset>) -> Result<()> {
    if let Some(preset) = name {
        return print(&files::config_text(&preset.config())?);
    }
    let mut out = String::new();
    writeln!(out, "{:<28}{:>9}{:>10}  what it is", "preset", "weights", "steps")?;
    for preset in Preset::ALL {
        let millions = format!("{:.1} M", preset.config().network.n_parameters() as f64 / 1e6);
        writeln!(out, "{:<28}{millions:>9}{:>10}  {}", preset.label(), preset.n_steps(), preset.about())?;
    }
    print(&out)
}
