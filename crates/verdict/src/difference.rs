//! Difference between the trials of two runs, with the interval in which it lies by chance alone.

use crate::quantile::{normal_beyond, student_beyond};
use crate::stats::{self, count, mean};

/// Least standard deviation of a number from one trial to the next (logarithm): 2.1 and 2.6 % of the throughput on H200s. A
/// few trials that are more alike are so by chance.
const FLOOR: f64 = 0.025;
/// Probability that a number of two equal runs lies outside of the interval on one side. Two numbers are compared, so that one
/// of them does in 5 of 100 comparisons.
const TAIL: f64 = 0.0125;
/// Standard errors in half an interval whose standard deviation is known.
const INTERVAL: f64 = 2.0;

/// Change of a number from one run to another (percent), with half the 95 % interval of no change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Of the means.
    pub percent: f64,
    /// Changes up to this are chance.
    pub within: f64,
}

/// Standard deviations of one number where the deployment is the same (logarithm), as measured on H200s (docs/evidence/fidelity.md).
#[derive(Clone, Copy, Debug)]
pub struct DifferenceNoise {
    /// From one trial to the next.
    pub trials: f64,
    /// From one start of the engines to the next.
    pub starts: f64,
}

/// Noise of a throughput: 4.3 % in 21 trials of one start; the means of eleven starts differ by 6 %.
pub const THROUGHPUT: DifferenceNoise = DifferenceNoise {
    trials: 0.043,
    starts: 0.06,
};
/// Noise of TTFT p99: 22 % in these 21 trials; the means of these starts differ by 15 %.
pub const TTFT_P99: DifferenceNoise = DifferenceNoise {
    trials: 0.22,
    starts: 0.15,
};

/// Compares the trials of two runs by how much these trials vary (Student's t), and by how much starts of the same engines do;
/// `None` with fewer than two of either.
pub fn compare_trials(before: &[f64], after: &[f64], noise: DifferenceNoise) -> Option<Difference> {
    if before.len() < 2 || after.len() < 2 {
        return None;
    }
    let degrees = before.len() + after.len() - 2;
    let squares = squares(before)? + squares(after)?;
    let deviation = (squares / count(degrees)).sqrt().max(FLOOR);
    let error = deviation * (1.0 / count(before.len()) + 1.0 / count(after.len())).sqrt();
    let of_trials = student_beyond(TAIL, degrees) * error;
    let of_starts = normal_beyond(TAIL) * std::f64::consts::SQRT_2 * noise.starts;
    Some(Difference {
        percent: 100.0 * (mean(after) / mean(before) - 1.0),
        within: 100.0 * of_trials.hypot(of_starts).exp_m1(),
    })
}

/// Compares the mean of `trials` earlier trials with these of another start.
pub(crate) fn compare_runs(before: f64, trials: usize, after: &[f64], noise: DifferenceNoise) -> Option<Difference> {
    let own = match after.len() {
        0 | 1 => 0.0,
        _ => deviation(after)?,
    };
    let parts = 1.0 / count(trials.max(1)) + 1.0 / count(after.len().max(1));
    let error = (2.0 * noise.starts.powi(2) + noise.trials.max(own).powi(2) * parts).sqrt();
    let change = mean(after) / before - 1.0;
    change.is_finite().then_some(Difference {
        percent: 100.0 * change,
        within: 100.0 * (INTERVAL * error).exp_m1(),
    })
}

/// Standard deviation of the logarithms; `None` for fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    Some((squares(values)? / count(degrees)).sqrt())
}

/// Sum of the squared distances of the logarithms from their mean.
fn squares(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    Some(stats::squares(&logarithms))
}

impl Difference {
    /// Returns true if the change is larger than chance.
    pub fn is_outside(&self) -> bool {
        // The interval is wider upwards: it is one of a ratio.
        let ratio = (self.percent / 100.0).ln_1p().abs();
        ratio > (self.within / 100.0).ln_1p()
    }
}

#[cfg(test)]
mod tests;
