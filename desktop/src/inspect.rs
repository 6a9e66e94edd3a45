//! `bit-diffusion inspect` and `bit-diffusion presets`: what there is.

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result};
use bit_diffusion::{
    checkpoint::{self, Header},
    experiment::{CaptionPreset, Preset},
    model::{CaptionerConfig, Method, UNetConfig},
    train::{Kind, NetworkConfig},
};

use clap::error::ErrorKind;

use crate::{
    cli::refuse,
    files::{self, CHECKPOINT},
    output::print,
};

/// Says what a file is.
pub(crate) fn run(path: &Path) -> Result<()> {
    let bytes = files::read_model(path, CHECKPOINT)?;
    let in_file = || files::in_file(path);
    match checkpoint::kind(&bytes).with_context(in_file)? {
        Kind::Pictures => {
            let header = checkpoint::inspect(&bytes).with_context(in_file)?;
            let makes = format!("pictures: {}", pictures(&header.config.network));
            describe(&header, &makes, "sampling", &bytes)
        }
        Kind::Captions => {
            let header = checkpoint::inspect_captioner(&bytes).with_context(in_file)?;
            let makes = format!("captions: {}", captions(&header.config.network)?);
            describe(&header, &makes, "captioning", &bytes)
        }
    }
}

fn describe<C: NetworkConfig>(header: &Header<C>, makes: &str, uses: &str, bytes: &[u8]) -> Result<()> {
    let entries = checkpoint::entries(bytes)?;
    let can_train = entries.iter().any(|entry| entry.name.starts_with("weights."));
    let training = if can_train { ", and going on with the training" } else { "" };
    let mut out = String::new();
    writeln!(out, "steps: {}", header.n_steps)?;
    writeln!(out, "parameters: {}", header.config.network.n_parameters())?;
    writeln!(out, "{makes}")?;
    writeln!(out, "trained on: {}", if header.config.data.is_empty() { "not said" } else { &header.config.data })?;
    writeln!(out, "good for: {uses}{training}")?;
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

fn captions(network: &CaptionerConfig) -> Result<String> {
    let CaptionerConfig { method, length, vocabulary, encoding, .. } = network;
    let (n_tokens, n_bits) = (vocabulary.n_tokens(), network.codec()?.bits_per_symbol());
    let bits = match method {
        Method::BitDiffusion => format!("as {n_bits} bits each, {}", encoding.label()),
        Method::Autoregressive => "one after the other".to_owned(),
    };
    Ok(format!("{}, up to {length} tokens of {n_tokens}, {bits}", method.label()))
}

/// Lists the presets, or prints the settings of one.
pub(crate) fn presets(name: Option<&str>) -> Result<()> {
    match name.map(|name| (name.parse::<CaptionPreset>(), Preset::from_label(name))) {
        None => {}
        Some((Ok(preset), _)) => return print(&files::config_text(&preset.config(preset.usual_vocabulary()))?),
        Some((_, Ok(preset))) => return print(&files::config_text(&preset.config())?),
        Some((_, Err(error))) => refuse(ErrorKind::InvalidValue, &error.to_string()),
    }
    let mut out = String::new();
    writeln!(out, "{:<28}{:>9}{:>10}  what it is", "preset", "weights", "steps")?;
    let mut line = |label: &str, n_parameters: u64, n_steps: usize, about: &str| {
        writeln!(out, "{label:<28}{:>9}{n_steps:>10}  {about}", format!("{:.1} M", n_parameters as f64 / 1e6))
    };
    for preset in Preset::ALL {
        line(preset.label(), preset.config().network.n_parameters(), preset.n_steps(), preset.about())?;
    }
    for preset in CaptionPreset::ALL {
        let network = preset.config(preset.usual_vocabulary()).network;
        line(preset.label(), network.n_parameters(), preset.n_steps(), preset.about())?;
    }
    print(&out)
}
