use crate::stats::count;

/// Pass rate of a healthy deployment: the worst window of the published runs passed 2 of 3 trials
/// (NVIDIA/aicr `inference-perf-fluctuation.md`), so at least 60 %.
pub const HEALTHY_PASS_RATE: f64 = 0.60;
/// Pass rate of a degraded deployment: at most one lucky trial in twenty.
pub const DEGRADED_PASS_RATE: f64 = 0.05;

/// Most trials that a spec may ask for.
const MOST_TRIALS: usize = 20;

/// Ruling on the trials until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Run another trial.
    Continue,
    /// Healthy.
    Pass,
    /// Degraded.
    Fail,
    /// `max` trials, and the rule cannot decide.
    Undecided,
    /// Invalid trials in a row: it cannot be measured.
    Unmeasurable,
}

/// Wald's test after `passes` and `misses`, with both error bounds `error_bound_percent`.
pub(super) fn sequential(passes: usize, misses: usize, error_bound_percent: i32) -> Ruling {
    let healthy_above = healthy_above(error_bound_percent);
    let evidence = evidence(passes, misses);
    if evidence >= healthy_above {
        Ruling::Pass
    } else if evidence <= -healthy_above {
        Ruling::Fail
    } else {
        Ruling::Continue
    }
}

/// The logarithm of how much likelier these outcomes are of a healthy deployment than of a degraded one.
pub(super) fn evidence(passes: usize, misses: usize) -> f64 {
    let weight = |times: usize, healthy: f64, degraded: f64| count(times) * (healthy / degraded).ln();
    weight(passes, HEALTHY_PASS_RATE, DEGRADED_PASS_RATE)
        + weight(misses, 1.0 - HEALTHY_PASS_RATE, 1.0 - DEGRADED_PASS_RATE)
}

/// Boundary for failing a run by one of several gates: each has its part of the error.
pub(super) fn degraded_below(error_bound_percent: i32, gates: usize) -> f64 {
    let error = f64::from(error_bound_percent.clamp(1, 49)) / 100.0 / count(gates.max(1));
    ((1.0 - error) / error).ln()
}

/// Wald's boundary: a logarithm of likelihoods beyond which an answer is wrong with `error_bound_percent` at most.
pub(super) fn healthy_above(error_bound_percent: i32) -> f64 {
    degraded_below(error_bound_percent, 1)
}

/// Misses in a row after which the test fails a run.
pub(super) fn straight_misses(error_bound_percent: i32) -> usize {
    let enough = |misses: &usize| -evidence(0, *misses) >= healthy_above(error_bound_percent);
    (1..MOST_TRIALS).find(enough).unwrap_or(MOST_TRIALS)
}
