//! Conversions between counts, percentages and differences of logarithms.

/// Percent that a difference of logarithms stands for: -0.105 is -10 %.
pub fn percent(logarithm: f64) -> f64 {
    100.0 * logarithm.exp_m1()
}

/// Difference of logarithms (positive) of a loss in percent: 10 % is 0.105.
pub fn loss(percent: f64) -> f64 {
    -(-percent / 100.0).ln_1p()
}

/// Number for arithmetic with a count.
#[expect(clippy::cast_precision_loss, reason = "counts of nodes and GPUs are far below 2^52")]
pub(crate) fn count(length: usize) -> f64 {
    length as f64
}

/// Logarithm as it is stored: to a hundredth of a percent.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
