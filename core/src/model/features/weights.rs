//! Weights out of a file, every one checked, and the convolution that they make.

use burn::tensor::{Device, Tensor, TensorData, module::conv2d, ops::ConvOptions};
use half::f16;
use safetensors::{SafeTensors, tensor::Dtype};

use super::FeatureError;

/// The tensors of a file.
pub(super) struct Weights<'a> {
    pub tensors: SafeTensors<'a>,
    /// The network that the file seems to have, for messages.
    pub network: &'static str,
    pub device: Device,
}

/// The window of a convolution.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub size: [usize; 2],
    pub stride: usize,
    pub padding: [usize; 2],
}

/// A convolution together with the batch normalisation after it.
#[derive(Debug, Clone)]
pub(super) struct Conv {
    weight: Tensor<4>,
    bias: Tensor<1>,
    options: ConvOptions<2>,
}

impl Conv {
    /// # Shapes
    /// - `x`: `[b, from, h, w]`; output: `[b, to, …]`
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        conv2d(x, self.weight.clone(), Some(self.bias.clone()), self.options.clone())
    }
}

impl Weights<'_> {
    /// The values of a tensor that must be there, with this shape; nothing is allocated before that is known.
    pub fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, FeatureError> {
        let missing = || FeatureError::Missing { name: name.to_owned(), network: self.network };
        let view = self.tensors.tensor(name).map_err(|_| missing())?;
        if view.shape() != shape {
            let (found, expected) = (view.shape().to_vec(), shape.to_vec());
            return Err(FeatureError::Shape { name: name.to_owned(), found, expected });
        }
        let bad = |problem: String| FeatureError::Values { name: name.to_owned(), problem };
        let values: Vec<f32> = match view.dtype() {
            Dtype::F32 => view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            Dtype::F16 => view.data().as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
            other => return Err(bad(format!("is of type {other}, not F32 or F16"))),
        };
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(index) => Err(bad(format!("has {} as its number {index}", values[index]))),
        }
    }

    /// A tensor that must be there, with this shape.
    pub fn tensor<const D: usize>(&self, name: &str, shape: [usize; D]) -> Result<Tensor<D>, FeatureError> {
        Ok(Tensor::from_data(TensorData::new(self.values(name, &shape)?, shape), &self.device))
    }

    /// The convolution `{conv}.weight` from `from` to `to` channels, with the batch normalisation `{norm}.*` folded into it.
    pub fn conv(
        &self,
        names: [&str; 2],
        [from, to]: [usize; 2],
        window: Window,
        epsilon: f64,
    ) -> Result<Conv, FeatureError> {
        self.folded(names, [to, from, window.size[0], window.size[1]], window, 1, epsilon)
    }

    /// The same of every channel by itself.
    pub fn depthwise(
        &self,
        names: [&str; 2],
        channels: usize,
        window: Window,
        epsilon: f64,
    ) -> Result<Conv, FeatureError> {
        self.folded(names, [channels, 1, window.size[0], window.size[1]], window, channels, epsilon)
    }

    /// A convolution with the batch normalisation after it.
    ///
    /// `γ·(w∗x − mean)/√(variance + epsilon) + β = (s·w)∗x + (β − s·mean)` with `s = γ/√(variance + epsilon)`, in f64.
    fn folded(
        &self,
        [conv, norm]: [&str; 2],
        shape @ [to, ..]: [usize; 4],
        window: Window,
        groups: usize,
        epsilon: f64,
    ) -> Result<Conv, FeatureError> {
        let mut weight = self.values(&format!("{conv}.weight"), &shape)?;
        let norm_values = |part: &str| self.values(&format!("{norm}.{part}"), &[to]);
        let (gain, shift) = (norm_values("weight")?, norm_values("bias")?);
        let (mean, variance) = (norm_values("running_mean")?, norm_values("running_var")?);
        let mut bias = Vec::with_capacity(to);
        let filters = weight.chunks_exact_mut(shape[1..].iter().product());
        for (channel, filter) in filters.enumerate() {
            let variance = f64::from(variance[channel]);
            if variance < 0.0 {
                let problem = format!("has a negative variance, {variance}, as its number {channel}");
                return Err(FeatureError::Values { name: format!("{norm}.running_var"), problem });
            }
            let scale = f64::from(gain[channel]) / (variance + epsilon).sqrt();
            for value in filter {
                *value = (scale * f64::from(*value)) as f32;
            }
            bias.push((f64::from(shift[channel]) - scale * f64::from(mean[channel])) as f32);
        }
        Ok(Conv {
            weight: Tensor::from_data(TensorData::new(weight, shape), &self.device),
            bias: Tensor::from_data(TensorData::new(bias, [to]), &self.device),
            options: ConvOptions::new([window.stride; 2], window.padding, [1, 1], groups),
        })
    }
}
