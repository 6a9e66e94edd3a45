//! The largest square in the middle of a picture, at another size, by exact area averages.
//!
//! Deliberately absent: filters that overshoot or blur (bilinear, Lanczos). ImageNet is prepared with area averages, and they
//! neither invent colours nor change the mean.

/// What one source line gives to one line of the result.
struct Overlap {
    result: usize,
    source: usize,
    /// The length that they share, where a source line is as long as the result has lines.
    weight: u64,
}

/// The overlaps of `n_source` lines with `n_result` lines that cover the same length, in order.
///
/// On a ruler of `n_source · n_result` marks a source line is `n_result` marks long and one of the result `n_source`, so that
/// all shares are whole numbers, also where the factor is not.
fn overlaps(n_source: usize, n_result: usize) -> Vec<Overlap> {
    let shared = |result: usize, source: usize| {
        let start = (result * n_source).max(source * n_result);
        let end = ((result + 1) * n_source).min((source + 1) * n_result);
        Overlap { result, source, weight: (end - start) as u64 }
    };
    let sources = |result: usize| result * n_source / n_result..=((result + 1) * n_source - 1) / n_result;
    (0..n_result).flat_map(|result| sources(result).map(move |source| shared(result, source))).collect()
}

/// Cuts the largest square from the middle of an RGB picture and brings it to `size` × `size` pixels.
///
/// Each pixel of the result is the mean of the area that it covers, rounded to nearest; where the result has more pixels
/// than the square, that is the nearest pixel, mixed where two meet.
///
/// # Shapes
/// - `pixels`: `[height, width, 3]`, as files have it
/// - result: `[3, size, size]`, as networks have it
pub(super) fn centre_square(pixels: &[u8], [height, width]: [usize; 2], size: usize) -> Vec<u8> {
    assert_eq!(pixels.len(), 3 * height * width, "the picture must have 3 values for each pixel");
    assert!(height > 0 && width > 0 && size > 0, "a picture must have pixels");
    let side = height.min(width);
    let (top, left) = ((height - side) / 2, (width - side) / 2);
    let overlaps = overlaps(side, size);
    let plane = size * size;
    let mut sums = vec![0_u64; 3 * plane];
    // One source row, already summed along x: [3, size].
    let mut row = vec![0_u64; 3 * size];
    let mut row_of = None;
    for down in &overlaps {
        if row_of != Some(down.source) {
            row_of = Some(down.source);
            row.fill(0);
            let start = 3 * ((top + down.source) * width + left);
            let line = &pixels[start..start + 3 * side];
            for along in &overlaps {
                for channel in 0..3 {
                    let value = u64::from(line[3 * along.source + channel]);
                    row[channel * size + along.result] += along.weight * value;
                }
            }
        }
        for channel in 0..3 {
            let start = channel * plane + down.result * size;
            for (sum, value) in sums[start..start + size].iter_mut().zip(&row[channel * size..]) {
                *sum += down.weight * value;
            }
        }
    }
    // The shares of one pixel add up to side · side.
    let area = (side * side) as u64;
    sums.into_iter().map(|sum| ((2 * sum + area) / (2 * area)) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A picture with the same values in all three channels.
    fn grey(values: &[u8]) -> Vec<u8> {
        values.iter().flat_map(|&value| [value; 3]).collect()
    }

    /// The first channel, after checking that the others are the same.
    #[track_caller]
    fn resized(values: &[u8], shape: [usize; 2], size: usize) -> Vec<u8> {
        let result = centre_square(&grey(values), shape, size);
        let (red, rest) = result.split_at(size * size);
        assert_eq!(rest, [red, red].concat());
        red.to_vec()
    }

    #[test]
    fn a_whole_factor_is_the_mean_of_blocks() {
        let values = [0, 4, 10, 10, 8, 12, 10, 11, 1, 1, 0, 0, 1, 2, 0, 1];
        // (0 + 4 + 8 + 12) / 4, 41 / 4, 5 / 4, 1 / 4.
        assert_eq!(resized(&values, [4, 4], 2), [6, 10, 1, 0]);
        assert_eq!(resized(&[0, 255, 0, 255], [2, 2], 1), [128], "a half is rounded up");
    }

    #[test]
    fn a_fractional_factor_shares_pixels() {
        // Three lines in two: each takes one and a half. (90 + ½·30) / 1.5 = 70, (½·30 + 0) / 1.5 = 10; both ways:
        // the middle column and row count half.
        let values = [90, 30, 0, 90, 30, 0, 90, 30, 0];
        assert_eq!(resized(&values, [3, 3], 2), [70, 10, 70, 10]);
        let corner = [9, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(resized(&corner, [3, 3], 2), [4, 0, 0, 0], "9 of 2.25 pixels");
        let middle = [0, 0, 0, 0, 90, 0, 0, 0, 0];
        assert_eq!(resized(&middle, [3, 3], 2), [10, 10, 10, 10], "90 · ¼ of 2.25 pixels");
    }

    #[test]
    fn a_small_picture_grows() {
        assert_eq!(resized(&[7, 9, 1, 3], [2, 2], 4), [7, 7, 9, 9, 7, 7, 9, 9, 1, 1, 3, 3, 1, 1, 3, 3]);
        // Two lines in three: the middle one is half of each.
        assert_eq!(resized(&[0, 8, 0, 8], [2, 2], 3), [0, 4, 8, 0, 4, 8, 0, 4, 8]);
        assert_eq!(resized(&[42], [1, 1], 2), [42; 4]);
    }

    #[test]
    fn the_middle_is_cut_and_channels_come_apart() {
        // Wide: columns 1 and 2 of 4. High: rows 0 and 1 of 3, as the spare line is below.
        assert_eq!(resized(&[1, 2, 3, 4, 5, 6, 7, 8], [2, 4], 2), [2, 3, 6, 7]);
        assert_eq!(resized(&[1, 2, 3, 4, 5, 6], [3, 2], 2), [1, 2, 3, 4]);
        assert_eq!(
            centre_square(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], [2, 2], 2),
            [1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12]
        );
    }

    #[test]
    fn the_mean_stays() {
        let mut rng = Rng::new(3);
        for (side, size) in [(64, 16), (50, 16), (33, 32), (17, 16), (16, 16), (7, 16), (5, 32)] {
            let values: Vec<u8> = (0..side * side).map(|_| rng.below(256) as u8).collect();
            let mean = |values: &[u8]| values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64;
            let result = resized(&values, [side, side], size);
            // Rounding moves one pixel by at most ½, evenly both ways: five standard errors of 1/√12 each.
            let tolerance = 5.0 / 12.0_f64.sqrt() / size as f64;
            assert!((mean(&values) - mean(&result)).abs() < tolerance, "{side} to {size}");
        }
    }

    #[test]
    fn every_line_is_shared_out_completely() {
        for (n_source, n_result) in [(7, 3), (3, 7), (10, 5), (5, 10), (1, 4), (4, 1), (9, 9)] {
            let mut of_source = vec![0; n_source];
            let mut of_result = vec![0; n_result];
            for overlap in overlaps(n_source, n_result) {
                assert!(overlap.weight > 0);
                of_source[overlap.source] += overlap.weight;
                of_result[overlap.result] += overlap.weight;
            }
            assert_eq!(of_source, vec![n_result as u64; n_source]);
            assert_eq!(of_result, vec![n_source as u64; n_result]);
        }
    }
}
