//! Past of a GPU in one environment, as a `NodePerformance` keeps it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::past::Past;
use crate::prior::prior;

/// Runs from which on a comparison with the own past is published.
const LEAST_RUNS: u32 = 5;

/// Statistics of the decode speeds of one GPU in one environment.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct Running {
    /// Digest of the environment. Another environment starts new statistics.
    #[serde(default)]
    environment: Option<String>,
    #[serde(flatten)]
    past: Past,
    /// Mean before the newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<f64>,
}

impl Running {
    /// Reads stored statistics; those of another version or environment count as none.
    pub(crate) fn read(stored: Option<&Value>, environment: Option<&str>) -> Self {
        let stored = stored.and_then(|value| serde_json::from_value::<Self>(value.clone()).ok());
        let same = stored.filter(|stored| stored.environment.as_deref() == environment && environment.is_some());
        same.unwrap_or_else(|| Self {
            environment: environment.map(str::to_owned),
            ..Self::default()
        })
    }

    /// Decode speed (percent of the mean of the earlier runs), once there are enough of them.
    pub(crate) fn compare(&self, speed: f64) -> Option<f64> {
        (self.past.count >= LEAST_RUNS).then(|| 100.0 * (speed.ln() - self.past.mean).exp())
    }

    /// Statistics with one more run of a GPU of this product.
    pub(crate) fn update(self, speed: f64, product: &str) -> Self {
        let spread = prior(product).spread;
        let deviation = spread.trial.hypot(spread.pass).hypot(spread.noise);
        let value = speed.ln();
        Self {
            past: self.past.update(value, value - self.past.mean, deviation),
            was: (self.past.count > 0).then_some(self.past.mean),
            ..self
        }
    }

    /// Statistics without the newest run, which had this speed.
    pub(crate) fn before(&self, speed: f64) -> Past {
        let past = self.past;
        let Some(mean) = self.was else {
            return Past::default();
        };
        let count = past.count - 1;
        let residual = (speed.ln() - mean) / (1.0 + 1.0 / f64::from(count)).sqrt();
        Past {
            count,
            mean,
            // Its own residual would make the newest run look usual.
            m2: (past.m2 - residual * residual).max(0.0),
            ..past
        }
    }

    /// JSON that a `NodePerformance` stores.
    pub(crate) fn to_value(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_before_the_newest_run_are_those_without_it() {
        let mut running = Running::read(None, Some("0123"));
        for speed in [100.0, 103.0, 98.0, 101.0, 99.0] {
            running = running.update(speed, "NVIDIA H100");
        }
        // A usual run, and one beyond the step by which a run may move the mean.
        for speed in [102.0, 50.0] {
            let before = running.clone().update(speed, "NVIDIA H100").before(speed);
            assert_eq!(before.count, 5);
            assert!((before.mean - running.past.mean).abs() < 1e-6, "{before:?}");
            assert!((before.m2 - running.past.m2).abs() < 1e-6, "{before:?}");
        }
    }
}
