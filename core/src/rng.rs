//! The one source of randomness: a small generator on the CPU, the same on every device and in every browser.
//!
//! burn's own generators are deliberately not used: they differ from device to device. The numbers come from `SplitMix64`
//! and, for normal ones, from Box–Muller with `libm`'s pure-Rust functions, so that no platform's mathematics library
//! can change a bit.

use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;

/// `SplitMix64`'s increment: the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of random numbers, determined by its seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// An independent stream for one purpose (say, one step of a chain), without advancing this one.
    #[must_use]
    pub fn fork(&self, label: u64) -> Self {
        Self { state: mix(self.state ^ mix(label.wrapping_add(GOLDEN))) }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// The stream as it is after `n` more numbers.
    fn ahead(&self, n: usize) -> Self {
        Self { state: self.state.wrapping_add(GOLDEN.wrapping_mul(n as u64)) }
    }

    /// A number strictly between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        // 52 bits and a half: the ends 0 and 1 cannot come up, so its logarithm is always finite.
        ((self.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "there is no whole number below 0");
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// `n` numbers from the standard normal distribution.
    pub fn normals(&mut self, n: usize) -> Vec<f32> {
        let n_pairs = n.div_ceil(2);
        let mut pairs = vec![[0.0; 2]; n_pairs];
        // The state only counts, so every pair knows where in the stream it stands, and the cores share the work.
        pairs.par_iter_mut().with_min_len(256).enumerate().for_each(|(i, pair)| {
            let mut rng = self.ahead(2 * i);
            // Box–Muller: two uniform numbers give two independent normal ones.
            let radius = libm::sqrt(-2.0 * libm::log(rng.uniform()));
            let angle = std::f64::consts::TAU * rng.uniform();
            *pair = [(radius * libm::cos(angle)) as f32, (radius * libm::sin(angle)) as f32];
        });
        *self = self.ahead(2 * n_pairs);
        let mut out = pairs.into_flattened();
        out.truncate(n);
        out
    }

    /// Standard normal noise of a shape, drawn here and then moved to `device`.
    pub fn normal_tensor<const D: usize>(&mut self, shape: [usize; D], device: &Device) -> Tensor<D> {
        let values = self.normals(shape.iter().product());
        Tensor::from_data(TensorData::new(values, shape), device)
    }
}

/// `SplitMix64`'s output function (Steele, Lea & Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_its_stream_and_forks_do_not_advance_it() {
        let rng = Rng::new(7);
        let (mut a, mut b) = (rng.clone(), rng.clone());
        let _ = rng.fork(3).next_u64();
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(rng.fork(0).next_u64(), rng.fork(1).next_u64());
        assert_ne!(Rng::new(0).next_u64(), Rng::new(1).next_u64());
    }

    #[test]
    fn a_shorter_draw_is_the_beginning_of_a_longer_one() {
        assert_eq!(Rng::new(1).normals(5), Rng::new(1).normals(8)[..5]);
    }

    #[test]
    fn normals_have_mean_0_and_variance_1() {
        let n = 200_000;
        let values = Rng::new(1).normals(n);
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
        let variance = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n as f64;
        // Five standard errors of the mean (1/√n) and of the variance (√(2/n)).
        assert!(mean.abs() < 5.0 / (n as f64).sqrt(), "mean {mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt(), "variance {variance}");
    }

    #[test]
    fn below_reaches_every_number_and_no_other() {
        let mut rng = Rng::new(2);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[rng.below(5)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 150), "{seen:?}");
    }
}
