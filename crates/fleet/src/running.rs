//! Running mean of a GPU's decode speed, as a `NodePerformance` keeps it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Runs from which on a comparison with the own past is published.
const LEAST_RUNS: u32 = 5;
/// Digits after the point that are stored: a millionth of a logarithm.
const DIGITS: f64 = 1e6;

/// Statistics of the runs of one GPU in one environment (Welford).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct Running {
    /// Digest of the environment. Runs in another one begin anew.
    #[serde(default)]
    environment: Option<String>,
    /// Number of runs.
    #[serde(default)]
    pub(crate) n: u32,
    /// Mean logarithm of the speed.
    #[serde(default)]
    mean: f64,
    /// Sum of squared differences from the mean.
    #[serde(default)]
    m2: f64,
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
        (self.n >= LEAST_RUNS).then(|| 100.0 * (speed.ln() - self.mean).exp())
    }

    /// Statistics with one more run.
    pub(crate) fn update(self, speed: f64) -> Self {
        let value = speed.ln();
        let n = self.n.saturating_add(1);
        let delta = value - self.mean;
        let mean = self.mean + delta / f64::from(n);
        let m2 = self.m2 + delta * (value - mean);
        let round = |value: f64| (value * DIGITS).round() / DIGITS;
        Self {
            n,
            mean: round(mean),
            m2: round(m2),
            ..self
        }
    }

    /// JSON that a `NodePerformance` stores.
    pub(crate) fn to_value(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }
}
