//! Metrics in which nodes are compared. Each one costs power, so they are few.

use serde::{Deserialize, Serialize};

/// Speed that nodes are compared in; more is better. Latency percentiles have heavy tails and stay with the gates.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FleetMetric {
    /// Tokens per second of one request at equal batch, per GPU: the inverse of the engine's time from token to token.
    DecodeSpeed,
    /// Prompt tokens per second of prefill, per GPU.
    PrefillSpeed,
    /// Output tokens per second of the whole node.
    Throughput,
}

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
