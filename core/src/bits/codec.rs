//! One encoding of one alphabet, on slices.

use rand_mt::Mt;

use super::Encoding;
use crate::error::{Error, check_number};

/// The largest alphabet a [`Codec`] takes: its code table then has 2²⁰ entries.
pub const MAX_ALPHABET: usize = 1 << 20;

/// Writes symbols `0 … K−1` as analog bits in ±`scale`, and reads them back.
///
/// Chen et al. 2023, section 2 and Algorithm 3: `n = ⌈log₂ K⌉` bits a symbol, lowest first, shifted and scaled from
/// {0, 1} to {−b, b}; decoding is a threshold at 0 (for one-hot the largest, for continuous the nearest).
///
/// # Codes outside the alphabet
/// With K = 32,000 in 15 bits, 768 codes stand for no symbol. Such a code is read as if its highest bit were 0: that is
/// always a code of the alphabet, because K > 2ⁿ⁻¹, and it is one flip away.
#[derive(Debug, Clone, PartialEq)]
pub struct Codec {
    encoding: Encoding,
    alphabet: usize,
    scale: f64,
    /// The code of each symbol, K entries; empty for the encodings that are no binary code.
    code_of_symbol: Vec<u32>,
    /// The symbol of each code, 2ⁿ entries; empty likewise.
    symbol_of_code: Vec<u32>,
}

impl Codec {
    /// The codec of an alphabet of `alphabet` symbols, with analog bits in ±`scale` (the paper's b, by default 1).
    pub fn new(encoding: Encoding, alphabet: usize, scale: f64) -> Result<Self, Error> {
        if !(2..=MAX_ALPHABET).contains(&alphabet) {
            return Err(Error::argument("alphabet size K", alphabet, format!("from 2 to {MAX_ALPHABET}")));
        }
        // Scales outside this range have no use, and their squares leave f32.
        check_number("scale b", scale, |b| (1e-3..=1e3).contains(&b), "a number from 0.001 to 1000")?;
        let code_of_symbol: Vec<u32> = match encoding {
            Encoding::Uint8 => (0..alphabet as u32).collect(),
            Encoding::Gray => (0..alphabet as u32).map(|value| value ^ (value >> 1)).collect(),
            Encoding::Uint8Rand => shuffled_alphabet(alphabet),
            Encoding::OneHot | Encoding::Continuous => Vec::new(),
        };
        let symbol_of_code = if code_of_symbol.is_empty() { Vec::new() } else { invert(&code_of_symbol) };
        Ok(Self { encoding, alphabet, scale, code_of_symbol, symbol_of_code })
    }

    /// The codec of 8-bit pixels: 256 symbols, bits in ±1.
    #[must_use]
    pub fn pixels(encoding: Encoding) -> Self {
        Self::new(encoding, 256, 1.0).expect("256 symbols at scale 1 are allowed")
    }

    /// The encoding.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The number of symbols, K.
    #[must_use]
    pub fn alphabet(&self) -> usize {
        self.alphabet
    }

    /// The paper's b: analog bits are ±b.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// How many real numbers a symbol takes: n = ⌈log₂ K⌉ for a binary code, K for one-hot, 1 for continuous.
    #[must_use]
    pub fn bits_per_symbol(&self) -> usize {
        match self.encoding {
            Encoding::Uint8 | Encoding::Gray | Encoding::Uint8Rand => self.symbol_of_code.len().ilog2() as usize,
            Encoding::OneHot => self.alphabet,
            Encoding::Continuous => 1,
        }
    }

    /// The binary code of each symbol; empty for one-hot and continuous, which have none.
    #[must_use]
    pub fn codes(&self) -> &[u32] {
        &self.code_of_symbol
    }

    /// The symbol of each of the 2ⁿ codes, those outside the alphabet too; empty for one-hot and continuous.
    #[must_use]
    pub fn symbols(&self) -> &[u32] {
        &self.symbol_of_code
    }

    /// Analog bits of symbols, `bits_per_symbol` numbers each, one symbol after the other.
    pub fn encode(&self, symbols: &[u32]) -> Result<Vec<f32>, Error> {
        self.check_symbols(symbols)?;
        let n = self.bits_per_symbol();
        let mut out = Vec::with_capacity(symbols.len() * n);
        for &symbol in symbols {
            self.push_bits(symbol, &mut out);
        }
        Ok(out)
    }

    /// The symbols nearest to analog bits; the inverse of [`Self::encode`].
    ///
    /// A bit is 1 where it is above 0, so NaN reads as 0. Ties of one-hot go to the first.
    pub fn decode(&self, bits: &[f32]) -> Result<Vec<u32>, Error> {
        let n = self.bits_per_symbol();
        if !bits.len().is_multiple_of(n) {
            return Err(Error::shape("analog bits", &[bits.len()], format!("a multiple of {n} values")));
        }
        Ok(bits.chunks_exact(n).map(|chunk| self.decode_one(chunk)).collect())
    }

    /// `Ok` if every symbol belongs to the alphabet.
    pub(super) fn check_symbols(&self, symbols: &[u32]) -> Result<(), Error> {
        match symbols.iter().find(|&&symbol| symbol as usize >= self.alphabet) {
            None => Ok(()),
            Some(symbol) => Err(Error::argument("symbol", symbol, format!("from 0 to {}", self.alphabet - 1))),
        }
    }

    /// The value of a symbol between −scale and scale, as the continuous encoding has it.
    fn level(&self, symbol: u32) -> f32 {
        ((2.0 * f64::from(symbol) / (self.alphabet - 1) as f64 - 1.0) * self.scale) as f32
    }

    fn push_bits(&self, symbol: u32, out: &mut Vec<f32>) {
        let b = self.scale as f32;
        let bit = |is_one: bool| if is_one { b } else { -b };
        match self.encoding {
            Encoding::Uint8 | Encoding::Gray | Encoding::Uint8Rand => {
                let code = self.code_of_symbol[symbol as usize];
                out.extend((0..self.bits_per_symbol()).map(|k| bit((code >> k) & 1 == 1)));
            }
            Encoding::OneHot => out.extend((0..self.alphabet).map(|k| bit(k == symbol as usize))),
            Encoding::Continuous => out.push(self.level(symbol)),
        }
    }

    fn decode_one(&self, bits: &[f32]) -> u32 {
        match self.encoding {
            Encoding::Uint8 | Encoding::Gray | Encoding::Uint8Rand => {
                let code = bits.iter().rev().fold(0, |code, &bit| code << 1 | usize::from(bit > 0.0));
                self.symbol_of_code[code]
            }
            Encoding::OneHot => {
                let mut best = 0;
                for (k, &bit) in bits.iter().enumerate() {
                    if bit > bits[best] || bits[best].is_nan() && !bit.is_nan() {
                        best = k;
                    }
                }
                best as u32
            }
            Encoding::Continuous => {
                let share = 0.5 * f64::from(bits[0]) / self.scale + 0.5;
                // `as` turns NaN into 0 and cuts at the ends.
                (share.clamp(0.0, 1.0) * (self.alphabet - 1) as f64).round() as u32
            }
        }
    }
}

/// UINT8 (RAND): exactly `numpy.random.seed(42); numpy.random.shuffle(numpy.arange(K))`, appendix C.
fn shuffled_alphabet(alphabet: usize) -> Vec<u32> {
    let mut generator = Mt::new(42);
    let mut codes: Vec<u32> = (0..alphabet as u32).collect();
    for last in (1..codes.len()).rev() {
        // numpy's legacy `random_interval`: mask to the next power of two, draw again while too large.
        let mask = u32::MAX >> (last as u32).leading_zeros();
        let pick = loop {
            let draw = generator.next_u32() & mask;
            if draw <= last as u32 {
                break draw as usize;
            }
        };
        codes.swap(last, pick);
    }
    codes
}

/// The symbol of every code of n bits; a code that no symbol has is read with its highest bit cleared.
fn invert(code_of_symbol: &[u32]) -> Vec<u32> {
    let n_codes = code_of_symbol.len().next_power_of_two();
    let mut symbol_of_code = vec![u32::MAX; n_codes];
    for (symbol, &code) in code_of_symbol.iter().enumerate() {
        symbol_of_code[code as usize] = symbol as u32;
    }
    for code in n_codes / 2..n_codes {
        if symbol_of_code[code] == u32::MAX {
            symbol_of_code[code] = symbol_of_code[code - n_codes / 2];
        }
    }
    debug_assert!(symbol_of_code.iter().all(|&symbol| symbol != u32::MAX));
    symbol_of_code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_bit_first() {
        let codec = Codec::pixels(Encoding::Uint8);
        assert_eq!(codec.encode(&[6]).unwrap(), [-1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0]);
    }

    #[test]
    fn the_paper_permutation() {
        let codec = Codec::pixels(Encoding::Uint8Rand);
        assert_eq!(codec.codes()[..8], [228, 6, 79, 206, 117, 185, 242, 167]);
    }

    #[test]
    fn scale_sets_the_size_of_the_bits() {
        let codec = Codec::new(Encoding::Gray, 4, 0.5).unwrap();
        assert_eq!(codec.encode(&[3]).unwrap(), [-0.5, 0.5]);
    }

    #[test]
    fn a_code_outside_the_alphabet_loses_its_highest_bit() {
        let codec = Codec::new(Encoding::Uint8, 32_000, 1.0).unwrap();
        assert_eq!(codec.bits_per_symbol(), 15);
        assert_eq!(codec.symbols()[32_767], 32_767 - 16_384);
        assert_eq!(codec.symbols()[31_999], 31_999);
        // Gray: 5 symbols in 3 bits. Code 101 stands for 6, outside; code 001 stands for 1.
        let gray = Codec::new(Encoding::Gray, 5, 1.0).unwrap();
        assert_eq!(gray.decode(&[1.0, -1.0, 1.0]).unwrap(), [1]);
    }

    #[test]
    fn nan_never_panics() {
        for encoding in Encoding::ALL {
            let codec = Codec::new(encoding, 5, 1.0).unwrap();
            let bits = vec![f32::NAN; codec.bits_per_symbol()];
            // The code of all zeros.
            let expected = codec.symbols().first().copied().unwrap_or(0);
            assert_eq!(codec.decode(&bits).unwrap(), [expected], "{encoding:?}");
        }
    }
}
