//! Histograms of what lies on a device.

use burn::{backend::Dispatch, tensor::Tensor};

use super::gpu::{self, GpuWithoutGradients as _};
use crate::metrics::{
    MetricError,
    bits::{Histogram, N_BINS},
};

/// The most numbers of which a card's counts are exact: they are f32.
const MOST: usize = 1 << 24;

/// The histogram of analog bits. On a graphics card they are counted there, and only the counts are read back.
///
/// A bit on the edge of two bins may fall into the other one than [`Histogram::new`] has it in, which counts in f64.
pub fn histogram<const D: usize>(bits: Tensor<D>, limit: f64) -> Result<Histogram, MetricError> {
    // What is wrong with the limit, if anything, is said there.
    let mut counted = Histogram::new(&[], limit)?;
    if !gpu::has(&bits) || bits.is_autodiff() || bits.dims().iter().product::<usize>() > MOST {
        let values: Vec<f32> = bits.into_data().iter::<f32>().collect();
        return Histogram::new(&values, limit);
    }
    let counts = Tensor::<1>::from_dispatch(Dispatch::gpu_histogram(bits.into_dispatch(), N_BINS, limit as f32));
    let mut counts = counts.into_data().iter::<f32>().map(|count| count as usize).collect::<Vec<_>>();
    counted.n_outside = counts.pop().expect("those outside come last");
    counted.counts.copy_from_slice(&counts);
    Ok(counted)
}
