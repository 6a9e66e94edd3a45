//! Root finding for rising curves that have no closed inverse.

/// The place between `low` and `high` where `is_before` turns from true to false, to the last bits of an f64.
pub(crate) fn bisect(mut low: f64, mut high: f64, is_before: impl Fn(f64) -> bool) -> f64 {
    // Each round halves the interval; 80 rounds exhaust an f64 for intervals of up to a hundred.
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if is_before(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}
