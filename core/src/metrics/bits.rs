//! Analog bits as they are: how decided they are, how they are spread, how many are wrong.
//!
//! Everything takes plain slices; tensors are deliberately absent.

use super::MetricError;
use crate::{Error, error::check_number};

/// How near to a mode a bit counts as decided, as a share of the scale.
const NEAR: f64 = 0.1;

/// The number of bins of a [`Histogram`].
pub const N_BINS: usize = 50;

/// The share of analog bits that are nearer than 0.1·`scale` to one of the two modes, ±`scale`.
pub fn share_near_modes(bits: &[f32], scale: f64) -> Result<f64, MetricError> {
    check_number("scale", scale, |scale| scale > 0.0, "a positive number")?;
    check_some("the share of decided bits", bits)?;
    let near = bits.iter().filter(|&&bit| (f64::from(bit).abs() - scale).abs() < NEAR * scale).count();
    Ok(near as f64 / bits.len() as f64)
}

/// How many analog bits fall into each of [`N_BINS`] equal bins between −`limit` and `limit`.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The bins cover −`limit` to `limit`, both included.
    pub limit: f64,
    /// How many bits are in each bin, from the lowest.
    pub counts: [usize; N_BINS],
    /// How many bits are beyond the limit, or not a number.
    pub n_outside: usize,
}

impl Histogram {
    /// Counts the bits. No bits at all give empty bins.
    pub fn new(bits: &[f32], limit: f64) -> Result<Self, MetricError> {
        check_number("histogram limit", limit, |limit| limit > 0.0, "a positive number")?;
        let (mut counts, mut n_outside) = ([0; N_BINS], 0);
        for &bit in bits {
            let bit = f64::from(bit);
            if bit.abs() <= limit {
                let bin = ((bit / limit + 1.0) * (N_BINS / 2) as f64) as usize;
                // The limit itself belongs to the last bin.
                counts[bin.min(N_BINS - 1)] += 1;
            } else {
                n_outside += 1;
            }
        }
        Ok(Self { limit, counts, n_outside })
    }

    /// The share of all bits, those outside too, that is in each bin.
    #[must_use]
    pub fn shares(&self) -> [f64; N_BINS] {
        let n = self.counts.iter().sum::<usize>() + self.n_outside;
        self.counts.map(|count| count as f64 / n.max(1) as f64)
    }

    /// The middle of each bin.
    #[must_use]
    pub fn centers(&self) -> [f64; N_BINS] {
        std::array::from_fn(|bin| ((2 * bin + 1) as f64 / N_BINS as f64 - 1.0) * self.limit)
    }
}

/// The share of bits that differ, each read by its sign: above 0 is a one, as in [`crate::bits::Codec`].
pub fn bit_error_rate(bits: &[f32], truth: &[f32]) -> Result<f64, MetricError> {
    if bits.len() != truth.len() {
        return Err(
            Error::shape("bits", &[bits.len()], format!("as many as there are true ones, {}", truth.len())).into()
        );
    }
    check_some("a bit error rate", bits)?;
    let n_errors = bits.iter().zip(truth).filter(|&(&bit, &truth)| (bit > 0.0) != (truth > 0.0)).count();
    Ok(n_errors as f64 / bits.len() as f64)
}

fn check_some(metric: &'static str, bits: &[f32]) -> Result<(), MetricError> {
    if bits.is_empty() { Err(MetricError::TooFew { metric, needed: 1, of: "bits", found: 0 }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decided_bits_are_near_a_mode_on_either_side() {
        let bits = [0.95, -0.95, 1.05, 0.85, 0.0, -1.2, f32::NAN, 1.0];
        assert_eq!(share_near_modes(&bits, 1.0), Ok(0.5));
        // At scale 2 the modes and the margin double.
        assert_eq!(share_near_modes(&[1.0, 1.85, 2.15, -2.0], 2.0), Ok(0.75));
        assert!(share_near_modes(&[], 1.0).is_err() && share_near_modes(&bits, 0.0).is_err());
    }

    #[test]
    fn every_bit_is_counted_once() {
        let bits = [-2.0, -1.99, -0.01, 0.01, 2.0, 2.01, f32::NAN, f32::NEG_INFINITY];
        let histogram = Histogram::new(&bits, 2.0).unwrap();
        let counts = &histogram.counts;
        assert_eq!((counts[0], counts[24], counts[25], counts[49], histogram.n_outside), (2, 1, 1, 1, 3));
        assert_eq!(counts.iter().sum::<usize>() + histogram.n_outside, bits.len());
        assert!((histogram.shares().iter().sum::<f64>() - 5.0 / 8.0).abs() < 1e-12);
        let centers = histogram.centers();
        assert!((centers[0] + 1.96).abs() < 1e-12 && (centers[49] - 1.96).abs() < 1e-12);
        // The middle of a bin is in that bin.
        let again = Histogram::new(&centers.map(|center| center as f32), 2.0).unwrap();
        assert_eq!(again.counts, [1; N_BINS]);
        assert!(Histogram::new(&bits, f64::NAN).is_err());
    }

    #[test]
    fn errors_are_counted_by_sign() {
        assert_eq!(bit_error_rate(&[0.1, -0.1, 3.0, 0.0], &[1.0, 1.0, 1.0, -1.0]), Ok(0.25));
        assert!(bit_error_rate(&[], &[]).is_err());
        let error = bit_error_rate(&[1.0], &[]).unwrap_err();
        assert!(error.to_string().contains("bits has shape [1]"), "{error}");
    }
}
