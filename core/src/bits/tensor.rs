//! The same encodings on tensors, on whatever device they are.

use burn::tensor::{Device, Int, Tensor, TensorData, activation::softmax};

use super::{Codec, Encoding};
use crate::error::Error;

impl Codec {
    /// Analog bits of symbols, as a tensor.
    ///
    /// # Shapes
    /// - `symbols`: `shape` = `[b, c, …]`
    /// - output: `[b, c·n, …]`, the n numbers of a symbol along dimension 1
    pub fn encode_tensor<const D: usize>(
        &self,
        symbols: &[u32],
        shape: [usize; D],
        device: &Device,
    ) -> Result<Tensor<D>, Error> {
        self.check_symbols(symbols)?;
        if D < 2 || shape.iter().product::<usize>() != symbols.len() {
            return Err(Error::shape(
                "symbols",
                &shape,
                format!("at least two dimensions and {} elements", symbols.len()),
            ));
        }
        let n = self.bits_per_symbol();
        let [outer, inner] = outer_inner(shape);
        let symbols: Vec<i32> = symbols.iter().map(|&symbol| symbol as i32).collect();
        let symbols = Tensor::<1, Int>::from_data(TensorData::new(symbols, [outer * inner]), device);
        let bits: Tensor<2> = if self.encoding() == Encoding::OneHot {
            // A table of K × K would be too large for words.
            let hot = symbols.unsqueeze_dim::<2>(1).expand([outer * inner, n]);
            let classes = Tensor::<1, Int>::arange(0..n as i64, device).unsqueeze::<2>().expand([outer * inner, n]);
            hot.equal(classes).float().mul_scalar(2.0 * self.scale()).sub_scalar(self.scale())
        } else {
            self.table(device).select(0, symbols)
        };
        // [b·c·inner, n] → [b·c, n, inner] → [b, c·n, …]
        Ok(bits.reshape([outer, inner, n]).swap_dims(1, 2).reshape(with_channels(shape, shape[1] * n)))
    }

    /// The symbols nearest to analog bits, on the device; the inverse of [`Self::encode_tensor`].
    ///
    /// # Shapes
    /// - `bits`: `[b, c·n, …]`
    /// - output: `[b, c, …]`
    pub fn decode_tensor<const D: usize>(&self, bits: Tensor<D>) -> Result<Tensor<D, Int>, Error> {
        let device = bits.device();
        let n = self.bits_per_symbol();
        let shape = bits.dims();
        let channels = self.channels(shape)?;
        let out_shape = with_channels(shape, channels);
        let [outer, inner] = outer_inner(out_shape);
        let bits = bits.reshape([outer, n, inner]);
        let symbols: Tensor<2, Int> = match self.encoding() {
            Encoding::Uint8 | Encoding::Gray | Encoding::Uint8Rand => {
                let weights: Vec<i32> = (0..n).map(|k| 1 << k).collect();
                let weights = Tensor::<1, Int>::from_data(TensorData::new(weights, [n]), &device).reshape([1, n, 1]);
                let codes = (bits.greater_scalar(0.0).int() * weights).sum_dim(1).reshape([outer * inner]);
                let symbols: Vec<i32> = self.symbols().iter().map(|&symbol| symbol as i32).collect();
                let count = symbols.len();
                Tensor::<1, Int>::from_data(TensorData::new(symbols, [count]), &device)
                    .select(0, codes)
                    .reshape([outer, inner])
            }
            Encoding::OneHot => bits.argmax(1).reshape([outer, inner]),
            Encoding::Continuous => {
                let levels = (self.alphabet() - 1) as f64;
                let share = bits.div_scalar(2.0 * self.scale()).add_scalar(0.5).clamp(0.0, 1.0);
                // Not `round`: it rounds halves to even, the slice version away from 0.
                share.mul_scalar(levels).add_scalar(0.5).floor().int().reshape([outer, inner])
            }
        };
        Ok(symbols.reshape(out_shape))
    }

    /// Expected analog bits of a distribution over the symbols: the paper's *softmax factorisation* (section 3.1).
    ///
    /// A network that predicts K logits a symbol instead of its bits gives `x̃₀ = softmax(logits) · codes`.
    ///
    /// # Shapes
    /// - `logits`: `[b, c·K, …]`
    /// - output: `[b, c·n, …]`
    pub fn expected_bits<const D: usize>(&self, logits: Tensor<D>) -> Result<Tensor<D>, Error> {
        let device = logits.device();
        let shape = logits.dims();
        let k = self.alphabet();
        if D < 2 || shape[1] == 0 || !shape[1].is_multiple_of(k) {
            return Err(Error::shape("logits", &shape, format!("a multiple of K = {k} along dimension 1")));
        }
        let channels = shape[1] / k;
        let [outer, inner] = outer_inner(with_channels(shape, channels));
        // [b·c, K, inner] → [b·c·inner, K]: one product for all symbols.
        let rows = logits.reshape([outer, k, inner]).swap_dims(1, 2).reshape([outer * inner, k]);
        let probabilities = softmax(rows, 1);
        let bits = match self.encoding() {
            Encoding::OneHot => probabilities.mul_scalar(2.0 * self.scale()).sub_scalar(self.scale()),
            _ => probabilities.matmul(self.table(&device)),
        };
        let bits = bits.reshape([outer, inner, self.bits_per_symbol()]).swap_dims(1, 2);
        Ok(bits.reshape(with_channels(shape, channels * self.bits_per_symbol())))
    }

    /// The number of symbol channels c of analog bits of shape `[b, c·n, …]`.
    pub fn channels<const D: usize>(&self, shape: [usize; D]) -> Result<usize, Error> {
        let n = self.bits_per_symbol();
        if D < 2 || shape[1] == 0 || !shape[1].is_multiple_of(n) {
            return Err(Error::shape("analog bits", &shape, format!("a multiple of n = {n} along dimension 1")));
        }
        Ok(shape[1] / n)
    }

    /// The analog bits of every symbol, `[K, n]`.
    fn table(&self, device: &Device) -> Tensor<2> {
        let symbols: Vec<u32> = (0..self.alphabet() as u32).collect();
        let bits = self.encode(&symbols).expect("every symbol of the alphabet has a code");
        Tensor::from_data(TensorData::new(bits, [self.alphabet(), self.bits_per_symbol()]), device)
    }
}

/// `[b·c, rest]` of a shape `[b, c, rest…]`.
fn outer_inner<const D: usize>(shape: [usize; D]) -> [usize; 2] {
    [shape[0] * shape[1], shape[2..].iter().product()]
}

/// A shape with another number of channels.
fn with_channels<const D: usize>(mut shape: [usize; D], channels: usize) -> [usize; D] {
    shape[1] = channels;
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_agree_with_slices() {
        let device = Device::flex();
        for encoding in Encoding::ALL {
            for alphabet in [2, 5, 256] {
                let codec = Codec::new(encoding, alphabet, 0.7).unwrap();
                // [b = 2, c = 3, h = 2, w = 1]
                let symbols: Vec<u32> = (0..12).map(|i| (i * 37 % alphabet) as u32).collect();
                let bits = codec.encode_tensor(&symbols, [2, 3, 2, 1], &device).unwrap();
                let n = codec.bits_per_symbol();
                assert_eq!(bits.dims(), [2, 3 * n, 2, 1]);
                let values = bits.clone().into_data().try_to_vec::<f32>().unwrap();
                for (i, &symbol) in symbols.iter().enumerate() {
                    let (outer, inner) = (i / 2, i % 2);
                    let along: Vec<f32> = (0..n).map(|k| values[(outer * n + k) * 2 + inner]).collect();
                    let expected = codec.encode(&[symbol]).unwrap();
                    assert!(
                        along.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6),
                        "{encoding:?} of {alphabet}: {along:?} for {symbol}"
                    );
                }
                let back = codec.decode_tensor(bits).unwrap().into_data().iter::<u32>().collect::<Vec<_>>();
                assert_eq!(back, symbols, "{encoding:?} of {alphabet}");
            }
        }
    }

    #[test]
    fn a_certain_distribution_gives_its_code() {
        let device = Device::flex();
        for encoding in Encoding::ALL {
            let codec = Codec::new(encoding, 4, 1.0).unwrap();
            // Two channels, certain of symbols 2 and 1.
            let mut logits = vec![0.0_f32; 8];
            logits[2] = 100.0;
            logits[4 + 1] = 100.0;
            let logits = Tensor::<2>::from_data(TensorData::new(logits, [1, 8]), &device);
            let bits = codec.expected_bits(logits).unwrap().into_data().try_to_vec::<f32>().unwrap();
            let expected = codec.encode(&[2, 1]).unwrap();
            assert!(bits.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{encoding:?}: {bits:?}");
        }
    }
}
