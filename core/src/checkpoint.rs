//! Checkpoints: a training run, or just its network, as one file.
//!
//! The file is a safetensors file, so the Python world can read the weights as they are. Its metadata hold, under the key
//! `bit-diffusion`, the settings, the number of steps and a checksum of all tensors. The tensors are, for each parameter `p` of the
//! network: `ema.p`, the averaged weights; and in a checkpoint that training can go on from, `weights.p`, `adam.first.p` and
//! `adam.second.p`.
//!
//! Deliberately absent: paths. Bytes in, bytes out; the shells write a file beside the old one and then rename it.

use std::{fmt, str::FromStr};

use burn::tensor::{Device, Tensor, TensorData};
use half::{bf16, f16};
use safetensors::{
    SafeTensors,
    tensor::{Dtype, TensorView, serialize},
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    model::{Captioner, CaptionerConfig, UNet, UNetConfig, parameters},
    train::{Kind, Network as _, NetworkConfig, Parts, TrainConfig, Trainer},
};

/// The version of the format that this program writes; it reads no later one.
const VERSION: u32 = 1;

/// The key of our header in the metadata.
const KEY: &str = "bit-diffusion";

/// How an exported network's weights are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Precision {
    /// Half floats: half the size, and no visible difference.
    #[default]
    F16,
    /// Single floats, as in training.
    F32,
}

impl Precision {
    /// Every precision.
    pub const ALL: [Self; 2] = [Self::F16, Self::F32];

    /// The precision's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|precision| precision.label() == text);
        found.ok_or_else(|| Error::argument("precision", text, "f16 or f32"))
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// No safetensors file, or one that was cut off.
    #[error("this is no complete safetensors file ({0}); if it was copied or downloaded, get it again")]
    Unreadable(String),
    /// A safetensors file of another program.
    #[error(
        "this safetensors file is not from Bit Diffusion Studio: its metadata have no usable \"bit-diffusion\" entry ({0})"
    )]
    Foreign(String),
    /// Written by a later program.
    #[error(
        "this file has format version {found}, and this program reads up to {VERSION}; a newer Bit Diffusion Studio can open it"
    )]
    Version {
        /// The file's version.
        found: u32,
    },
    /// A network that makes something else.
    #[error("this file has a network for {}, where one for {} is wanted", found.label(), wanted.label())]
    Kind {
        /// What the file's network makes.
        found: Kind,
        /// What was wanted.
        wanted: Kind,
    },
    /// The contents are not what was written.
    #[error("this file is damaged: {0}; go back to an earlier checkpoint, or get the file again")]
    Damaged(String),
    /// A network without what training needs.
    #[error("this file has only a network for sampling; to go on training, open a checkpoint of the run it came from")]
    NotTraining,
    /// Settings that cannot be used.
    #[error("the settings in this file cannot be used: {0}")]
    Settings(#[from] Error),
    /// Weights of another program that are not those of the network.
    #[error("these weights do not fit the settings: {0}; give the settings that the weights were trained with")]
    Weights(String),
    /// The device did not give the numbers back.
    #[error("the device did not return the weights: {0}; nothing was written")]
    Readback(String),
}

/// What the metadata say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header<C = UNetConfig> {
    /// The version of the format.
    pub version: u32,
    /// What the network makes.
    #[serde(default)]
    pub kind: Kind,
    /// How many steps the run has made.
    pub n_steps: usize,
    /// The settings of the run.
    pub config: TrainConfig<C>,
    /// CRC-32 of the tensors' bytes, in the order of their names.
    checksum: u32,
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How its numbers are written, say `F16`.
    pub dtype: String,
}

/// What every version of the header has.
#[derive(Deserialize)]
struct Version {
    version: u32,
    #[serde(default)]
    kind: Kind,
}

/// A training run as bytes, from which [`load_trainer`] goes on exactly.
pub async fn save_trainer<C: NetworkConfig>(trainer: &Trainer<C>) -> Result<Vec<u8>, CheckpointError> {
    let Parts { weights, ema, first, second } = trainer.parts();
    let groups = [("weights", weights), ("ema", ema), ("adam.first", first), ("adam.second", second)];
    write(trainer, &groups, Precision::F32).await
}

/// The averaged network of a training run as bytes, for sampling.
pub async fn export<C: NetworkConfig>(trainer: &Trainer<C>, precision: Precision) -> Result<Vec<u8>, CheckpointError> {
    write(trainer, &[("ema", trainer.parts().ema)], precision).await
}

/// What the network of a file makes.
pub fn kind(bytes: &[u8]) -> Result<Kind, CheckpointError> {
    header_text(bytes).map(|(_, kind)| kind)
}

/// What a file with a network of pictures is, without loading its weights.
pub fn inspect(bytes: &[u8]) -> Result<Header, CheckpointError> {
    open(bytes).map(|(header, _)| header)
}

/// What a file with a captioner is, without loading its weights.
pub fn inspect_captioner(bytes: &[u8]) -> Result<Header<CaptionerConfig>, CheckpointError> {
    open(bytes).map(|(header, _)| header)
}

/// The tensors of a file, in the order of their names.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry>, CheckpointError> {
    let tensors = SafeTensors::deserialize(bytes).map_err(unreadable)?;
    let entry = |(name, view): (String, TensorView<'_>)| Entry {
        name,
        shape: view.shape().to_vec(),
        dtype: view.dtype().to_string(),
    };
    let mut entries: Vec<Entry> = tensors.tensors().into_iter().map(entry).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The averaged network of a file as a file of its own, for sampling.
///
/// The same bytes as [`export`] gives, without a device.
pub fn extract(bytes: &[u8], precision: Precision) -> Result<Vec<u8>, CheckpointError> {
    match kind(bytes)? {
        Kind::Pictures => extract_network::<UNetConfig>(bytes, precision),
        Kind::Captions => extract_network::<CaptionerConfig>(bytes, precision),
    }
}

fn extract_network<C: NetworkConfig>(bytes: &[u8], precision: Precision) -> Result<Vec<u8>, CheckpointError> {
    let (header, tensors) = open::<C>(bytes)?;
    let parameters = parameters_of(&header.config)?;
    let named = parameters.iter().map(|(name, shape)| {
        let name = format!("ema.{name}");
        let values = numbers(&tensors, &name, shape).map_err(CheckpointError::Damaged)?;
        Ok((name, shape.clone(), values))
    });
    let named = named.collect::<Result<Vec<_>, CheckpointError>>()?;
    Ok(assemble(header.n_steps, header.config, named, precision))
}

/// Weights of another program as a file for sampling.
///
/// `bytes` is a safetensors file with one tensor for each parameter of the network, under the names of
/// [`UNet::parameters`] or [`Captioner::parameters`], each with `ema.` before it or none of them.
pub fn import<C: NetworkConfig>(
    bytes: &[u8],
    config: TrainConfig<C>,
    precision: Precision,
) -> Result<Vec<u8>, CheckpointError> {
    config.validate()?;
    let tensors = SafeTensors::deserialize(bytes).map_err(unreadable)?;
    check_size(&config, bytes).map_err(CheckpointError::Weights)?;
    let parameters = parameters_of(&config)?;
    let names = tensors.names();
    let prefix = if names.iter().any(|name| name.starts_with("ema.")) { "ema." } else { "" };

    let missing = parameters.iter().map(|(name, _)| format!("{prefix}{name}"));
    let missing: Vec<String> = missing.filter(|name| !names.contains(&name.as_str())).collect();
    if !missing.is_empty() {
        return Err(CheckpointError::Weights(format!("there is no {}", some(&missing))));
    }
    let is_known = |name: &str| parameters.iter().any(|(known, _)| *known == name);
    let odd = names.iter().filter_map(|name| name.strip_prefix(prefix)).filter(|name| !is_known(name));
    let odd: Vec<String> = odd.map(|name| format!("{prefix}{name}")).collect();
    if !odd.is_empty() {
        return Err(CheckpointError::Weights(format!("the network has no {}", some(&odd))));
    }
    let named = parameters.iter().map(|(name, shape)| {
        let values = numbers(&tensors, &format!("{prefix}{name}"), shape).map_err(CheckpointError::Weights)?;
        Ok((format!("ema.{name}"), shape.clone(), values))
    });
    let named = named.collect::<Result<Vec<_>, CheckpointError>>()?;
    Ok(assemble(0, config, named, precision))
}

/// The first few names and how many more there are.
fn some(names: &[String]) -> String {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let rest = sorted.len().saturating_sub(3);
    sorted.truncate(3);
    let shown = sorted.join(", ");
    if rest == 0 { shown } else { format!("{shown} and {rest} more") }
}

/// The name and shape of every parameter of a network with these settings.
fn parameters_of<C: NetworkConfig>(config: &TrainConfig<C>) -> Result<Vec<(String, Vec<usize>)>, CheckpointError> {
    Ok(parameters::names(config.network.init(0, &Device::flex())?.layers()))
}

/// The averaged network of pictures of a file.
pub fn load_network(bytes: &[u8], device: &Device) -> Result<UNet, CheckpointError> {
    load::<UNetConfig>(bytes, device)
}

/// The averaged captioner of a file.
pub fn load_captioner(bytes: &[u8], device: &Device) -> Result<Captioner, CheckpointError> {
    load::<CaptionerConfig>(bytes, device)
}

fn load<C: NetworkConfig>(bytes: &[u8], device: &Device) -> Result<C::Network, CheckpointError> {
    let (header, tensors) = open::<C>(bytes)?;
    let network = header.config.network.init(0, device)?;
    let ema = read(&tensors, "ema", &parameters::names(network.layers()), device)?;
    let layers = parameters::with_values(network.layers().clone(), ema);
    Ok(network.with_layers(layers))
}

/// A training run that goes on where the file was written.
pub fn load_trainer<C: NetworkConfig>(bytes: &[u8], device: &Device) -> Result<Trainer<C>, CheckpointError> {
    let (header, tensors) = open::<C>(bytes)?;
    let mut trainer = Trainer::new(header.config, device)?;
    if !tensors.iter().any(|(name, _)| name.starts_with("weights.")) {
        return Err(CheckpointError::NotTraining);
    }
    let parameters = trainer.parameters();
    let group = |group| read(&tensors, group, &parameters, device);
    let parts = Parts {
        weights: group("weights")?,
        ema: group("ema")?,
        first: group("adam.first")?,
        second: group("adam.second")?,
    };
    trainer.restore(header.n_steps, parts);
    Ok(trainer)
}

async fn write<C: NetworkConfig>(
    trainer: &Trainer<C>,
    groups: &[(&str, Vec<Tensor<1>>)],
    precision: Precision,
) -> Result<Vec<u8>, CheckpointError> {
    let parameters = trainer.parameters();
    let mut named = Vec::new();
    for (group, tensors) in groups {
        for ((name, shape), tensor) in parameters.iter().zip(tensors) {
            let data = tensor.to_data_async().await.map_err(|error| CheckpointError::Readback(error.to_string()))?;
            let values: Vec<f32> = data.try_to_vec().map_err(|error| CheckpointError::Readback(error.to_string()))?;
            named.push((format!("{group}.{name}"), shape.clone(), values));
        }
    }
    Ok(assemble(trainer.n_steps(), trainer.config().clone(), named, precision))
}

/// A file of named tensors.
fn assemble<C: NetworkConfig>(
    n_steps: usize,
    config: TrainConfig<C>,
    mut named: Vec<(String, Vec<usize>, Vec<f32>)>,
    precision: Precision,
) -> Vec<u8> {
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let dtype = match precision {
        Precision::F16 => Dtype::F16,
        Precision::F32 => Dtype::F32,
    };
    let written = named.into_iter().map(|(name, shape, values)| {
        let bytes: Vec<u8> = match precision {
            Precision::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect(),
            Precision::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        (name, shape, bytes)
    });
    let written: Vec<_> = written.collect();
    let checksum = checksum(written.iter().map(|(_, _, bytes)| bytes.as_slice()));
    let header = Header { version: VERSION, kind: C::KIND, n_steps, config, checksum };
    let header = serde_json::to_string(&header).expect("settings are plain numbers and names");
    let views = written.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(dtype, shape.clone(), bytes.as_slice()).expect("as many bytes as the shape says");
        (name, view)
    });
    let metadata = std::iter::once((KEY.to_owned(), header)).collect();
    serialize(views, Some(metadata)).expect("names are unique and sizes are right")
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: safetensors::SafeTensorError) -> CheckpointError {
    CheckpointError::Unreadable(error.to_string())
}

fn foreign(error: impl fmt::Display) -> CheckpointError {
    CheckpointError::Foreign(error.to_string())
}

/// Our header as text, of a version that can be read, and what the network makes.
fn header_text(bytes: &[u8]) -> Result<(String, Kind), CheckpointError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
    let text = metadata.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let text = text.ok_or_else(|| foreign("there is none"))?;
    let Version { version, kind } = serde_json::from_str(text).map_err(foreign)?;
    if version > VERSION {
        return Err(CheckpointError::Version { found: version });
    }
    Ok((text.clone(), kind))
}

/// The header and the tensors, once everything about them has been checked but their shapes.
fn open<C: NetworkConfig>(bytes: &[u8]) -> Result<(Header<C>, SafeTensors<'_>), CheckpointError> {
    let (text, kind) = header_text(bytes)?;
    if kind != C::KIND {
        return Err(CheckpointError::Kind { found: kind, wanted: C::KIND });
    }
    let header: Header<C> = serde_json::from_str(&text).map_err(foreign)?;
    header.config.validate()?;

    let tensors = SafeTensors::deserialize(bytes).map_err(unreadable)?;
    let mut sorted = tensors.tensors();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    if checksum(sorted.iter().map(|(_, view)| view.data())) != header.checksum {
        return Err(CheckpointError::Damaged("its checksum does not fit its weights".to_owned()));
    }
    check_size(&header.config, bytes).map_err(CheckpointError::Damaged)?;
    Ok((header, tensors))
}

/// Before a network of the claimed size is made: the file must have that many weights, of two bytes at least.
fn check_size<C: NetworkConfig>(config: &TrainConfig<C>, bytes: &[u8]) -> Result<(), String> {
    let n_parameters = config.network.n_parameters();
    if bytes.len() as u64 / 2 < n_parameters {
        return Err(format!("it claims {n_parameters} weights, more than its {} bytes can hold", bytes.len()));
    }
    Ok(())
}

/// The tensors of a group, one for each of the parameters.
fn read(
    tensors: &SafeTensors<'_>,
    group: &str,
    parameters: &[(String, Vec<usize>)],
    device: &Device,
) -> Result<Vec<Tensor<1>>, CheckpointError> {
    let one = |(name, shape): &(String, Vec<usize>)| {
        let values = numbers(tensors, &format!("{group}.{name}"), shape).map_err(CheckpointError::Damaged)?;
        let n = values.len();
        Ok(Tensor::from_data(TensorData::new(values, [n]), &device.clone().inner()))
    };
    parameters.iter().map(one).collect()
}

/// The numbers of a tensor of a known shape, or what is wrong with it.
fn numbers(tensors: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
    let view = tensors.tensor(name).map_err(|_| format!("it has no {name}"))?;
    if view.shape() != shape {
        let is_transposed = view.shape().iter().rev().eq(shape);
        let hint = if is_transposed { " (the other way round: transpose it)" } else { "" };
        return Err(format!("{name} has shape {:?}, the settings say {shape:?}{hint}", view.shape()));
    }
    let bytes = view.data();
    let values: Vec<f32> = match view.dtype() {
        Dtype::F64 => bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32).collect(),
        Dtype::F32 => bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        Dtype::F16 => bytes.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
        Dtype::BF16 => bytes.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect(),
        other => return Err(format!("{name} is of type {other}, not of a float type")),
    };
    if values.iter().any(|value| !value.is_finite()) {
        return Err(format!("{name} has a weight that is not a number"));
    }
    Ok(values)
}

fn checksum<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.for_each(|part| hasher.update(part));
    hasher.finalize()
}
