//! The exponential function, and what is made of it, in operations that a compiler can turn into vectors.

#![expect(
    clippy::inline_always,
    reason = "vector instructions reach only as far as a function is inlined into pulp's dispatch"
)]

/// 1/(1 + e⁻ᶻ).
#[inline(always)]
pub(super) fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + exp(-z))
}

/// eˣ to a few units in the last place, in operations that a compiler can turn into vectors.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// 1.5·2²³: adding it rounds to a whole number, which then stands in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first with few bits, so that its multiples are exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let whole = rounded - ROUND;
    let r = x - whole * LN_2_HIGH - whole * LN_2_LOW;
    // Taylor's series to r⁶; |r| is at most ln 2/2.
    let series = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))));
    f32::from_bits(series.to_bits().wrapping_add(rounded.to_bits() << 23))
}

/// Half of the complementary error function of −x/√2, which is the normal distribution's Φ(x); and e^(−x²/2).
///
/// Abramowitz & Stegun 7.1.26, to 1e-7.
#[inline(always)]
pub(super) fn normal_share(x: f32) -> (f32, f32) {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let bell = exp(-z * z);
    let series = t * (0.254_829_6 + t * (-0.284_496_72 + t * (1.421_413_8 + t * (-1.453_152_1 + t * 1.061_405_4))));
    let tail = 0.5 * series * bell;
    (if x < 0.0 { tail } else { 1.0 - tail }, bell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exact_to_a_few_units() {
        for i in -8700..=8800 {
            let x = i as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 5e-7, "{x}");
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37 && exp(f32::NAN).is_nan() && exp(1000.0).is_finite());
    }
}
