//! How far apart symbols are in bits, against how far apart they are in value (appendix C and its figure).

use super::Codec;

/// The Hamming distances of all pairs of symbols whose values differ by the same amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HammingAt {
    /// The absolute difference of the two values.
    pub difference: usize,
    /// The smallest number of differing bits.
    pub min: u32,
    /// The mean number of differing bits.
    pub mean: f64,
    /// The largest number of differing bits.
    pub max: u32,
}

/// The statistics for every difference from 1 to K − 1; none for an encoding that is no binary code.
pub fn by_difference(codec: &Codec) -> impl Iterator<Item = HammingAt> + '_ {
    let codes = codec.codes();
    (1..codes.len()).map(move |difference| {
        let distances = || codes.iter().zip(&codes[difference..]).map(|(a, b)| (a ^ b).count_ones());
        HammingAt {
            difference,
            min: distances().min().unwrap_or(0),
            mean: f64::from(distances().sum::<u32>()) / (codes.len() - difference) as f64,
            max: distances().max().unwrap_or(0),
        }
    })
}

/// Pearson's correlation of the two distances over all pairs of different symbols; `None` without a binary code.
///
/// Near 0 means that the bits keep nothing of the order: the symbols are categories.
#[must_use]
pub fn correlation(codec: &Codec) -> Option<f64> {
    let codes = codec.codes();
    let (mut n, mut x, mut y, mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (i, a) in codes.iter().enumerate() {
        for (j, b) in codes.iter().enumerate().skip(i + 1) {
            let (difference, distance) = ((j - i) as f64, f64::from((a ^ b).count_ones()));
            n += 1.0;
            x += difference;
            y += distance;
            xx += difference * difference;
            yy += distance * distance;
            xy += difference * distance;
        }
    }
    let spread = ((n * xx - x * x) * (n * yy - y * y)).sqrt();
    // Two symbols make one pair, which has no spread.
    (spread > 0.0).then(|| (n * xy - x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Encoding;

    #[test]
    fn gray_neighbours_differ_in_one_bit() {
        let codec = Codec::pixels(Encoding::Gray);
        let neighbours = by_difference(&codec).next().unwrap();
        assert_eq!((neighbours.min, neighbours.max), (1, 1));
    }

    #[test]
    fn the_permutation_removes_the_order() {
        let of = |encoding| correlation(&Codec::pixels(encoding)).unwrap();
        assert!(of(Encoding::Uint8) > 0.3, "{}", of(Encoding::Uint8));
        assert!(of(Encoding::Gray) > 0.2, "{}", of(Encoding::Gray));
        assert!(of(Encoding::Uint8Rand).abs() < 0.05, "{}", of(Encoding::Uint8Rand));
    }

    #[test]
    fn encodings_without_a_code_have_no_statistics() {
        let codec = Codec::pixels(Encoding::OneHot);
        assert!(by_difference(&codec).next().is_none() && correlation(&codec).is_none());
    }
}
