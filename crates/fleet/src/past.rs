//! Running statistics of one GPU, or of a node as a whole, in one metric within one stratum.

use serde::{Deserialize, Serialize};

use crate::numbers::loss;
use crate::prior::DEGREES;

/// Drift for which the CUSUM is made (percent).
const DRIFT: f64 = 3.0;
/// Passes without a fault until a false alarm of one GPU, on average. Each alarm costs six trials.
pub(crate) const GPU_IN_CONTROL: f64 = 2000.0;
/// The same of a node as a whole: it has one such test, and not eight.
pub(crate) const NODE_IN_CONTROL: f64 = 500.0;
/// Rounds for the limit of a CUSUM.
const ROUNDS: usize = 6;
/// Most standard deviations that one pass adds: one outlier of a heavy tail is no drift.
const STEP: f64 = 2.5;
/// Passes from which on the mean is settled. A mean of fewer that stops learning would be wrong for long.
pub(crate) const SETTLED: u32 = 20;
/// Standard deviations above Siegmund's limit, because the mean is estimated: with a limit for one alarm in 10,000 passes, 60,000
/// passes of normal noise give 1.4 in 10,000 so, and 4 without.
const ESTIMATED: f64 = 0.8;
/// Part of the alarm limit from which on a drift is suspected.
const SUSPECTED: f64 = 0.25;
/// Largest CUSUM (standard deviations), so that healthy passes end a suspicion.
const LARGEST: f64 = 12.0;
/// Most standard deviations by which one pass counts for the mean.
pub(crate) const OUTLIER: f64 = 4.0;
/// Most (logarithm) that one run counts for the mean in the part that the GPUs of a node share: 10 %. Without a limit a run at half
/// speed would hide a loss of 10 % for many runs.
const SHARED: f64 = 0.105;
/// Passes from which on the mean is known: it is published, and limits what one run counts. The mean of fewer may be the wrong one.
pub(crate) const KNOWN: u32 = 5;
/// Loss (percent) below which a confirmation refutes a drift: half of the drift that the CUSUM is made for. With 2 %, at which a drift
/// is reported, the confirmations of a drift of 3 % refuted one of three (simulated). In between it is confirmed once more.
pub(crate) const REFUTED: f64 = 1.5;
/// Digits after the point that are stored: a millionth of a logarithm.
const DIGITS: f64 = 1e6;

/// Statistics of all earlier passes, about 60 bytes as JSON. A GPU keeps them by its UUID when it moves.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq)]
pub struct Past {
    /// Number of passes.
    #[serde(rename = "n")]
    pub count: u32,
    /// Mean logarithm of the speed.
    #[serde(rename = "m")]
    pub mean: f64,
    /// Sum of squared residuals (logarithms), each against the mean before it: Welford's M2. On a node with several GPUs
    /// the residual of a GPU is that beside its peers.
    pub m2: f64,
    /// One-sided CUSUM of slower passes (standard deviations).
    #[serde(rename = "z")]
    pub cusum: f64,
}

impl Past {
    /// Statistics with one more pass. `value` is its logarithm without the stratum's common shift; `residual` is the
    /// difference from the mean, on a node with several GPUs without the part that its peers share; `deviation` is the
    /// standard deviation of one such pass. Residuals against the mean *before* them are independent of each other, so the
    /// CUSUM keeps its rate of false alarms although the mean is estimated (Hawkins 1987).
    #[must_use]
    pub fn update(self, value: f64, residual: f64, deviation: f64) -> Self {
        let next = self.accumulate(residual, deviation);
        if self.count == 0 {
            return Self {
                mean: round(value),
                ..next
            };
        }
        let (own, shared) = (residual, value - self.mean - residual);
        // While a drift is suspected, a settled mean does not learn it as normal.
        let own = if next.is_suspected(deviation) {
            0.0
        } else {
            own.clamp(-OUTLIER * deviation, OUTLIER * deviation)
        };
        let most = if self.count < KNOWN { f64::INFINITY } else { SHARED };
        let mean = self.mean + (shared.clamp(-most, most) + own) / f64::from(next.count);
        Self {
            mean: round(mean),
            ..next
        }
    }

    /// Statistics with this mean and these residuals of the first passes.
    #[must_use]
    pub(crate) fn with_first(self, mean: f64, m2: f64) -> Self {
        Self {
            mean: round(mean),
            m2: round_fine(m2),
            cusum: 0.0,
            ..self
        }
    }

    /// Statistics with the residual of one more pass, and the same mean.
    #[must_use]
    pub fn accumulate(self, residual: f64, deviation: f64) -> Self {
        if self.count == 0 {
            return Self {
                count: 1,
                ..Self::default()
            };
        }
        let residual = residual / (1.0 + 1.0 / f64::from(self.count)).sqrt();
        let step = (-residual / deviation).clamp(-STEP, STEP) - allowance(deviation);
        let residual = residual.clamp(-OUTLIER * deviation, OUTLIER * deviation);
        Self {
            count: self.count.saturating_add(1),
            m2: round_fine(self.m2 + residual * residual),
            cusum: round((self.cusum + step).clamp(0.0, LARGEST)),
            ..self
        }
    }

    /// True if passes may have drifted down, once the mean is settled.
    pub fn is_suspected(&self, deviation: f64) -> bool {
        self.count > SETTLED && self.cusum > limit(deviation, GPU_IN_CONTROL) * SUSPECTED
    }

    /// Standard deviation of a pass: the own residuals beside a prior of 12 degrees with this variance.
    pub fn deviation(&self, variance: f64) -> f64 {
        let degrees = f64::from(self.count.saturating_sub(1));
        ((DEGREES * variance + self.m2) / (DEGREES + degrees)).sqrt()
    }

    /// Statistics after a confirmation that refutes a drift. It is worth about as much as half of the alarm: five trials of one
    /// deployment vary too.
    #[must_use]
    pub fn settle(self) -> Self {
        Self {
            cusum: round(self.cusum / 2.0),
            ..self
        }
    }

    /// True if passes have drifted down; `deviation` as in [`Past::update`]. An alarm asks for a confirmation. Healthy passes alarm
    /// once in `in_control` of them.
    pub fn is_drifting(&self, deviation: f64, in_control: f64) -> bool {
        self.cusum > limit(deviation, in_control)
    }

    /// Factor (1 or more) by which this GPU's own variance exceeds `variance` of one pass in its stratum. Own passes count
    /// beside a prior of 12 degrees, and one standard error is taken off, so that chance makes few GPUs noisy. A GPU that was
    /// quiet by chance gets no smaller one.
    pub fn excess(&self, variance: f64) -> f64 {
        let degrees = DEGREES + f64::from(self.count.saturating_sub(1));
        let ratio = (DEGREES + self.m2 / variance) / degrees;
        (ratio * (1.0 - (2.0 / degrees).sqrt())).max(1.0)
    }
}

/// Allowance of a CUSUM (standard deviations), which each pass takes off: half the drift that is looked for.
fn allowance(deviation: f64) -> f64 {
    (loss(DRIFT) / 2.0 / deviation).clamp(0.25, 1.5)
}

/// Alarm limit of a CUSUM (standard deviations), by Siegmund's approximation of the run length.
fn limit(deviation: f64, in_control: f64) -> f64 {
    let k = allowance(deviation);
    // x with exp(x) - x - 1 = 2 k² run length; each round gains more than a digit.
    let mut x: f64 = 0.0;
    for _ in 0..ROUNDS {
        x = (2.0 * k * k * in_control + x + 1.0).ln();
    }
    (x / (2.0 * k) - 1.166).max(0.0) + ESTIMATED
}

fn round(value: f64) -> f64 {
    (value * DIGITS).round() / DIGITS
}

/// Squares of logarithms are small: 1e-4 is one percent.
fn round_fine(value: f64) -> f64 {
    (value * DIGITS * 1e3).round() / (DIGITS * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::centre::tests::gauss;

    fn next(past: Past, value: f64, deviation: f64) -> Past {
        past.update(value, value - past.mean, deviation)
    }

    #[test]
    fn residuals_add_up_to_the_plain_variance() {
        let values = [4.50, 4.52, 4.49, 4.51, 4.53];
        let past = values
            .iter()
            .fold(Past::default(), |past, value| next(past, *value, 0.02));
        let mean = values.iter().sum::<f64>() / 5.0;
        let m2: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        assert_eq!(past.count, 5);
        assert!((past.mean - mean).abs() < 1e-5, "{past:?}");
        assert!((past.m2 - m2).abs() < 1e-6, "{past:?} {m2}");
    }

    #[test]
    fn limits_follow_the_noise() {
        let (k, h) = (allowance(0.0225), limit(0.0225, 10_000.0));
        assert!((k - 0.677).abs() < 0.001 && (h - 6.37).abs() < 0.05, "{k} {h}");
        assert!(limit(0.01, 10_000.0) < h && limit(0.0225, 500.0) < h);
    }

    #[test]
    fn healthy_passes_alarm_once_in_two_thousand_and_a_drift_after_eight() {
        let mut random = fastrand::Rng::with_seed(11);
        let deviation = 0.0225;
        let (mut passes, mut alarms) = (0, 0);
        let mut delays = Vec::new();
        for _ in 0..400 {
            let mut past = Past::default();
            for _ in 0..100 {
                past = next(past, deviation * gauss(&mut random), deviation);
                passes += 1;
                if past.is_drifting(deviation, GPU_IN_CONTROL) {
                    alarms += 1;
                    past = past.settle();
                }
            }
            past = past.settle();
            let mut delay = 0;
            while !past.is_drifting(deviation, GPU_IN_CONTROL) && delay < 100 {
                past = next(past, deviation * gauss(&mut random) - loss(DRIFT), deviation);
                delay += 1;
            }
            delays.push(delay);
        }
        delays.sort_unstable();
        assert!(alarms <= 30, "{alarms} alarms in {passes} passes");
        assert!(delays[200] <= 8, "median {}", delays[200]);
    }

    #[test]
    fn a_noisy_gpu_is_trusted_less_and_a_quiet_one_not_more() {
        let noisy = Past {
            count: 9,
            m2: 68.0,
            ..Past::default()
        };
        assert!((noisy.excess(1.0) - 4.0 * (1.0 - 0.1_f64.sqrt())).abs() < 1e-9);
        assert!(
            (Past {
                count: 9,
                m2: 1.0,
                ..Past::default()
            }
            .excess(1.0)
                - 1.0)
                .abs()
                < 1e-9
        );
    }
}
