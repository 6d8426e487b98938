//! Past of the part of the decode speed that the GPUs of a node share, as its `NodePerformance` keeps it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::centre::{median, trimmed_mean};
use crate::numbers::loss;
use crate::past::{NODE_IN_CONTROL, Past, REFUTED};
use crate::scale::Scale;

/// Statistics of a node in one environment. Those of its GPUs lack this part: it would make each of them noisier.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct SharedPast {
    /// Digest of the environment. Another environment starts new statistics.
    #[serde(default, rename = "e")]
    environment: Option<String>,
    /// Residuals of the runs. The mean speed is that of the GPUs, so the one here is 0.
    #[serde(flatten)]
    past: Past,
    /// Difference (logarithm) of the newest run from the past of the GPUs. It is not learned yet.
    #[serde(default, rename = "r", skip_serializing_if = "Option::is_none")]
    newest: Option<f64>,
    /// Difference of the run that was to confirm it.
    #[serde(default, rename = "d", skip_serializing_if = "Option::is_none")]
    confirmed: Option<f64>,
}

impl SharedPast {
    /// Reads stored statistics; new ones if they are of another version or environment.
    pub(crate) fn read(stored: Option<&Value>, environment: Option<&str>) -> Self {
        let stored: Option<Self> = stored.and_then(|stored| serde_json::from_value(stored.clone()).ok());
        let is_same = |stored: &Self| environment.is_some() && stored.environment.as_deref() == environment;
        stored.filter(is_same).unwrap_or_else(|| Self {
            environment: environment.map(str::to_owned),
            ..Self::default()
        })
    }

    /// Residuals of the runs before the newest one.
    pub(crate) fn past(&self) -> Past {
        self.past
    }

    /// Adds a run, or its confirmation, by the differences of the GPUs from their pasts.
    pub(crate) fn add(&mut self, residuals: &[f64], is_confirmation: bool) {
        let residual = trimmed_mean(residuals).map(|residual| (residual * 1e4).round() / 1e4);
        if is_confirmation {
            self.confirmed = residual;
        } else {
            (self.newest, self.confirmed) = (residual, None);
        }
    }

    /// Learns the newest run. `common` is the difference that all nodes share now, and `variance` that of one run by the prior.
    /// Returns the part of the run that is not to be learned as normal, because the node may drift.
    pub(crate) fn learn(&mut self, common: f64, variance: f64) -> f64 {
        let Some(newest) = self.newest.take() else { return 0.0 };
        let (residual, deviation) = (newest - common, self.past.deviation(variance));
        self.past = self.past.accumulate(residual, deviation);
        let suspected = if self.past.is_suspected(deviation) {
            residual
        } else {
            0.0
        };
        let confirmed = self.confirmed.take();
        let is_refuted = confirmed.is_some_and(|confirmed| confirmed - common > -loss(REFUTED));
        if is_refuted && self.past.is_drifting(deviation, NODE_IN_CONTROL) {
            self.past = self.past.settle();
        }
        suspected
    }

    /// Forgets the newest run.
    pub(crate) fn skip(&mut self) {
        (self.newest, self.confirmed) = (None, None);
    }

    /// JSON that a `NodePerformance` stores.
    pub(crate) fn to_value(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }
}

/// Median difference of the nodes from their pasts in this environment: a change of all nodes is the fault of none. 0 for few nodes.
pub(crate) fn common_residual<'a>(states: impl Iterator<Item = &'a Value>, environment: Option<&str>) -> f64 {
    let newest = states.filter_map(|state| SharedPast::read(Some(state), environment).newest);
    let newest: Vec<f64> = newest.collect();
    median(&newest)
        .filter(|_| !Scale::is_few(newest.len()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variance of a run: 2 %.
    const VARIANCE: f64 = 4e-4;

    fn add_runs(past: &mut SharedPast, residuals: &[f64], common: f64) -> f64 {
        let mut suspected = 0.0;
        for residual in residuals {
            past.add(&[*residual], false);
            suspected = past.learn(common, VARIANCE);
        }
        suspected
    }

    fn settled() -> SharedPast {
        let mut past = SharedPast::read(None, Some("0123"));
        add_runs(&mut past, &[0.01, -0.01].repeat(15), 0.0);
        past
    }

    #[test]
    fn another_environment_starts_new_statistics() {
        let mut past = settled();
        past.add(&[-0.02, -0.02, 0.5], false);
        past.add(&[-0.01], true);
        let stored = past.to_value().expect("JSON");
        assert_eq!(SharedPast::read(Some(&stored), Some("0123")), past);
        assert_eq!(SharedPast::read(Some(&stored), Some("4567")).past(), Past::default());
        assert_eq!(SharedPast::read(Some(&stored), None).past(), Past::default());
    }

    #[test]
    fn a_suspected_drift_is_not_learned_until_a_confirmation_refutes_it() {
        let mut past = settled();
        assert!(add_runs(&mut past, &[-0.03; 12], 0.0) < -0.02);
        assert!(
            past.past()
                .is_drifting(past.past().deviation(VARIANCE), NODE_IN_CONTROL)
        );
        let mut refuted = past.clone();
        refuted.add(&[-0.03], false);
        refuted.add(&[0.0], true);
        refuted.learn(0.0, VARIANCE);
        past.add(&[-0.03], false);
        past.add(&[-0.03], true);
        past.learn(0.0, VARIANCE);
        let (refuted, shown) = (refuted.past().cusum, past.past().cusum);
        assert!(
            (refuted - shown / 2.0).abs() < 1e-3,
            "{refuted} {shown}: the loss is still there"
        );
    }

    #[test]
    fn a_loss_of_all_nodes_is_no_drift_of_one() {
        let nodes: Vec<Value> = (0..8)
            .map(|_| {
                let mut past = settled();
                past.add(&[-0.03], false);
                past.to_value().expect("JSON")
            })
            .collect();
        let common = common_residual(nodes.iter(), Some("0123"));
        assert!((common + 0.03).abs() < 1e-9, "{common}");
        assert!(common_residual(nodes.iter().take(7), Some("0123")).abs() < f64::EPSILON);
        assert!(common_residual(nodes.iter(), Some("4567")).abs() < f64::EPSILON);
        let mut past = settled();
        assert!(add_runs(&mut past, &[-0.03; 12], common).abs() < f64::EPSILON);
    }
}
