//! From tensors to what is shown: half floats, pictures, histograms, scores.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use half::f16;

use super::{EngineError, Measure, ModelInfo, PictureSheet, ShapesScore, View};
use crate::{
    Error,
    data::shapes,
    metrics::bits::{Histogram, share_near_modes},
};

/// The histograms end at so many times the scale: noise beyond that is rare.
const HISTOGRAM_LIMIT: f64 = 3.0;

/// Reads analog bits back from their device, once, and works out all that is shown of them; the symbols too.
///
/// # Shapes
/// - `bits`: `[n, channels · bits, size, size]`; symbols: `[n, channels, size, size]`
pub(super) async fn view(bits: Tensor<4>, info: &ModelInfo) -> Result<(View, Vec<u32>), EngineError> {
    let shape = bits.dims();
    let values = floats(bits).await?;
    // On the processor from here on: they are few.
    let bits = Tensor::<4>::from_data(TensorData::new(values.clone(), shape), &Device::flex());
    let symbols: Vec<u32> = info.codec.decode_tensor(bits)?.into_data().iter::<u32>().collect();
    let scale = info.codec.scale();
    let view = View {
        bits: values.iter().map(|&value| f16::from_f32(value)).collect(),
        pictures: sheet(&symbols, info),
        histogram: Histogram::new(&values, HISTOGRAM_LIMIT * scale)?,
        share_near_modes: share_near_modes(&values, scale)?,
        score: score(&symbols, info),
    };
    Ok((view, symbols))
}

/// Analog bits in half floats.
pub(super) async fn halves(bits: Tensor<4>) -> Result<Arc<[f16]>, EngineError> {
    Ok(floats(bits).await?.into_iter().map(f16::from_f32).collect())
}

/// A tensor of half floats.
pub(super) fn tensor(bits: &[f16], shape: [usize; 4], device: &Device) -> Tensor<4> {
    let values: Vec<f32> = bits.iter().map(|value| value.to_f32()).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

async fn floats(tensor: Tensor<4>) -> Result<Vec<f32>, EngineError> {
    let data = tensor.into_data_async().await.map_err(Error::readback)?;
    Ok(data.try_to_vec().map_err(Error::readback)?)
}

/// Symbols `[n, channels, size, size]` as pictures.
pub(super) fn sheet(symbols: &[u32], info: &ModelInfo) -> PictureSheet {
    PictureSheet::of(symbols, info.size, info.channels, info.codec.alphabet())
}

/// Pictures as symbols `[n, channels, size, size]`; the inverse of [`sheet`] for 256 colour values.
pub(super) fn symbols(sheet: &PictureSheet, info: &ModelInfo) -> Result<Vec<u32>, EngineError> {
    let PictureSheet { n, size, channels, ref pixels } = *sheet;
    if (size, channels) != (info.size, info.channels) || n == 0 || pixels.len() != n * channels * size * size {
        let found = format!("{n} pictures of {size} × {size} pixels and {channels} channels");
        let expected = format!("pictures of {0} × {0} pixels and {1} channels", info.size, info.channels);
        return Err(EngineError::Pictures { found, expected });
    }
    let alphabet = info.codec.alphabet() as u32;
    let one = |picture: usize, channel: usize, i: usize| sheet.picture(picture)[i * channels + channel];
    let values = (0..n).flat_map(|picture| {
        (0..channels).flat_map(move |channel| (0..size * size).map(move |i| one(picture, channel, i)))
    });
    Ok(values.map(|value| u32::from(value) * alphabet / 256).collect())
}

/// How exact pictures are, where that can be said.
pub(super) fn score(symbols: &[u32], info: &ModelInfo) -> Option<ShapesScore> {
    (info.measure == Measure::Shapes).then(|| ShapesScore::of(symbols))
}

/// What pictures of a model that was trained on `data` can be measured by.
pub(super) fn measure(data: &str, channels: usize, size: usize, alphabet: usize) -> Measure {
    if shapes::are_scenes(data, channels, size, alphabet) { Measure::Shapes } else { Measure::None }
}
