//! Checkpoints: a training run, or just its network, as one file.
//!
//! The file is a safetensors file, so the Python world can read the weights as they are. Its metadata hold, under the key
//! `bit-diffusion`, the settings, the number of steps and a checksum of all tensors. The tensors are, for each parameter `p` of the
//! network: `ema.p`, the averaged weights; and in a checkpoint that training can go on from, `weights.p`, `adam.first.p` and
//! `adam.second.p`.
//!
//! Deliberately absent: paths. Bytes in, bytes out; the shells write a file beside the old one and then rename it.

use burn::tensor::{Device, Tensor, TensorData};
use half::f16;
use safetensors::{
    SafeTensors,
    tensor::{Dtype, TensorView, serialize},
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    model::UNet,
    train::{Parts, TrainConfig, Trainer},
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
    /// The contents are not what was written.
    #[error("this file is damaged: {0}; go back to an earlier checkpoint, or get the file again")]
    Damaged(String),
    /// A network without what training needs.
    #[error("this file has only a network for sampling; to go on training, open a checkpoint of the run it came from")]
    NotTraining,
    /// Settings that cannot be used.
    #[error("the settings in this file cannot be used: {0}")]
    Settings(#[from] Error),
    /// The device did not give the numbers back.
    #[error("the device did not return the weights: {0}; nothing was written")]
    Readback(String),
}

/// What the metadata say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub version: u32,
    /// How many steps the run has made.
    pub n_steps: usize,
    /// The settings of the run.
    pub config: TrainConfig,
    /// CRC-32 of the tensors' bytes, in the order of their names.
    checksum: u32,
}

/// What every version of the header has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A training run as bytes, from which [`load_trainer`] goes on exactly.
pub async fn save_trainer(trainer: &Trainer) -> Result<Vec<u8>, CheckpointError> {
    let Parts { weights, ema, first, second } = trainer.parts();
    let groups = [("weights", weights), ("ema", ema), ("adam.first", first), ("adam.second", second)];
    write(trainer, &groups, Precision::F32).await
}

/// The averaged network of a training run as bytes, for sampling.
pub async fn export(trainer: &Trainer, precision: Precision) -> Result<Vec<u8>, CheckpointError> {
    write(trainer, &[("ema", trainer.parts().ema)], precision).await
}

/// What a file is, without loading its weights.
pub fn inspect(bytes: &[u8]) -> Result<Header, CheckpointError> {
    open(bytes).map(|(header, _)| header)
}

/// The averaged network of a file.
pub fn load_network(bytes: &[u8], device: &Device) -> Result<UNet, CheckpointError> {
    let (header, tensors) = open(bytes)?;
    let network = header.config.network.init(0, device)?;
    let ema = read(&tensors, "ema", &network.parameters(), device)?;
    Ok(network.with_parameters(ema))
}

/// A training run that goes on where the file was written.
pub fn load_trainer(bytes: &[u8], device: &Device) -> Result<Trainer, CheckpointError> {
    let (header, tensors) = open(bytes)?;
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

async fn write(
    trainer: &Trainer,
    groups: &[(&str, Vec<Tensor<1>>)],
    precision: Precision,
) -> Result<Vec<u8>, CheckpointError> {
    let parameters = trainer.parameters();
    let mut entries = Vec::new();
    for (group, tensors) in groups {
        for ((name, shape), tensor) in parameters.iter().zip(tensors) {
            let data = tensor.to_data_async().await.map_err(|error| CheckpointError::Readback(format!("{error:?}")))?;
            let values: Vec<f32> =
                data.try_to_vec().map_err(|error| CheckpointError::Readback(format!("{error:?}")))?;
            let (dtype, bytes): (_, Vec<u8>) = match precision {
                Precision::F32 => (Dtype::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect()),
                Precision::F16 => {
                    (Dtype::F16, values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect())
                }
            };
            entries.push((format!("{group}.{name}"), shape.clone(), dtype, bytes));
        }
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let checksum = checksum(entries.iter().map(|(_, _, _, bytes)| bytes.as_slice()));
    let header = Header { version: VERSION, n_steps: trainer.n_steps(), config: trainer.config().clone(), checksum };
    let header = serde_json::to_string(&header).expect("settings are plain numbers and names");
    let views = entries.iter().map(|(name, shape, dtype, bytes)| {
        let view = TensorView::new(*dtype, shape.clone(), bytes.as_slice()).expect("as many bytes as the shape says");
        (name, view)
    });
    let metadata = std::iter::once((KEY.to_owned(), header)).collect();
    Ok(serialize(views, Some(metadata)).expect("names are unique and sizes are right"))
}

/// The header and the tensors, once everything about them has been checked but their shapes.
fn open(bytes: &[u8]) -> Result<(Header, SafeTensors<'_>), CheckpointError> {
    let unreadable = |error: safetensors::SafeTensorError| CheckpointError::Unreadable(error.to_string());
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
    let text = metadata.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let text = text.ok_or_else(|| CheckpointError::Foreign("there is none".to_owned()))?;
    let foreign = |error: serde_json::Error| CheckpointError::Foreign(error.to_string());
    let Version { version } = serde_json::from_str(text).map_err(foreign)?;
    if version > VERSION {
        return Err(CheckpointError::Version { found: version });
    }
    let header: Header = serde_json::from_str(text).map_err(foreign)?;
    header.config.validate()?;

    let tensors = SafeTensors::deserialize(bytes).map_err(unreadable)?;
    let mut sorted = tensors.tensors();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    if checksum(sorted.iter().map(|(_, view)| view.data())) != header.checksum {
        return Err(CheckpointError::Damaged("its checksum does not fit its weights".to_owned()));
    }
    // Before a network of the claimed size is made: the file must have that many weights, of two bytes at least.
    let n_parameters = header.config.network.n_parameters();
    if bytes.len() / 2 < n_parameters {
        let reason = format!("it claims {n_parameters} weights, more than its {} bytes can hold", bytes.len());
        return Err(CheckpointError::Damaged(reason));
    }
    Ok((header, tensors))
}

/// The tensors of a group, one for each of the parameters.
fn read(
    tensors: &SafeTensors<'_>,
    group: &str,
    parameters: &[(String, Vec<usize>)],
    device: &Device,
) -> Result<Vec<Tensor<1>>, CheckpointError> {
    let one = |(name, shape): &(String, Vec<usize>)| {
        let name = format!("{group}.{name}");
        let view = tensors.tensor(&name).map_err(|_| CheckpointError::Damaged(format!("it has no {name}")))?;
        if view.shape() != *shape {
            let reason = format!("{name} has shape {:?}, the settings say {shape:?}", view.shape());
            return Err(CheckpointError::Damaged(reason));
        }
        let values: Vec<f32> = match view.dtype() {
            Dtype::F32 => view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            Dtype::F16 => view.data().as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
            other => return Err(CheckpointError::Damaged(format!("{name} is of type {other}, not F32 or F16"))),
        };
        if values.iter().any(|value| !value.is_finite()) {
            return Err(CheckpointError::Damaged(format!("{name} has a weight that is not a number")));
        }
        let n = values.len();
        Ok(Tensor::from_data(TensorData::new(values, [n]), &device.clone().inner()))
    };
    parameters.iter().map(one).collect()
}

fn checksum<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.for_each(|part| hasher.update(part));
    hasher.finalize()
}
