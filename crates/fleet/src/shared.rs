//! Past of the part of the decode speed that the GPUs of a node share, as its `NodePerformance` keeps it.

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::fleet::StatisticsText;
use serde::{Deserialize, Serialize};

use crate::centre::{median, trimmed_mean};
use crate::numbers::{loss, round};
use crate::past::{NODE_IN_CONTROL, Past, REFUTED};
use crate::reading::RunTimes;
use crate::scale::Scale;

/// Number of runs of nodes beside which a run is learned: their median is certain enough, and older ones may be of another time.
const NEAREST: usize = 40;

/// Statistics of a node in one environment. Those of its GPUs lack this part: it would make each of them noisier.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct SharedPast {
    /// Digest of the environment. Another environment starts new statistics.
    #[serde(rename = "e")]
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
    /// Sum of the residuals that are not learned while a drift is suspected.
    #[serde(default, rename = "w", skip_serializing_if = "Option::is_none")]
    withheld: Option<f64>,
    /// Times of the runs.
    #[serde(flatten)]
    times: RunTimes,
}

impl SharedPast {
    /// Reads stored statistics; new ones if they are of another version or environment.
    pub(crate) fn read(stored: Option<&StatisticsText>, environment: Option<&str>) -> Self {
        let stored: Option<Self> = stored.and_then(StatisticsText::read);
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

    /// Times of the runs.
    pub(crate) fn times(&self) -> RunTimes {
        self.times
    }

    /// Sets the times of a run. A confirmation, and a run after a confirmed loss, keep the begin.
    pub(crate) fn set_times(&mut self, began_at: DateTime<Utc>, ended_at: DateTime<Utc>) {
        self.times.began_at.get_or_insert(began_at);
        self.times.ended_at = Some(ended_at);
    }

    /// Forgets the begin: the newest run shows no loss that may go on.
    pub(crate) fn forget_begin(&mut self) {
        self.times.began_at = None;
    }

    /// Adds a run by the differences of the GPUs from their pasts. GPUs without a past have none.
    pub(crate) fn add(&mut self, residuals: &[f64]) {
        (self.newest, self.confirmed) = (Some(shared(residuals)), None);
    }

    /// Adds the confirmation of the newest run.
    pub(crate) fn confirm(&mut self, residuals: &[f64]) {
        self.confirmed = self.newest.map(|_| shared(residuals));
    }

    /// Residuals of the first runs, as they are without outliers.
    pub(crate) fn set_first(&mut self, runs: usize, m2: f64) {
        if usize::try_from(self.past.count) == Ok(runs) {
            self.past = self.past.with_first(0.0, m2);
        }
    }

    /// Learns the newest run. `common` is the difference that all nodes share, if there are enough of them, and `variance` that of
    /// one run by the prior. Returns the part of the run that is not to be learned as normal if the node may drift and this run
    /// `withholds` it. It has the other sign once the node did not.
    pub(crate) fn learn(&mut self, common: Option<f64>, variance: f64, withholds: bool) -> f64 {
        self.forget_begin();
        let Some(newest) = self.newest.take() else { return 0.0 };
        let (shift, deviation) = (common.unwrap_or_default(), self.past.deviation(variance));
        let residual = newest - shift;
        self.past = self.past.accumulate(residual, deviation);
        // Among few nodes no drift of one is followed, and all of them may have changed.
        let is_suspected = withholds && common.is_some() && self.past.is_suspected(deviation);
        let confirmed = self.confirmed.take();
        let is_refuted = confirmed.is_some_and(|confirmed| confirmed - shift > -loss(REFUTED));
        if confirmed.is_some() && !is_refuted {
            self.withheld = None;
        }
        if is_refuted && self.past.is_drifting(deviation, NODE_IN_CONTROL) {
            self.past = self.past.settle();
        }
        if is_suspected {
            self.withheld = Some(round(self.withheld.unwrap_or_default() + residual));
            residual
        } else if self.past.cusum > 0.0 {
            0.0
        } else {
            // The suspicion is over. Without these runs the means of healthy nodes became 0.4 % too high after 200 passes (computed).
            -self.withheld.take().unwrap_or_default()
        }
    }

    /// Forgets the newest run, and the withheld residuals before it: they were no chance, or of other GPUs.
    pub(crate) fn skip(&mut self) {
        (self.newest, self.confirmed, self.withheld) = (None, None, None);
    }

    /// JSON that a `NodePerformance` stores.
    pub(crate) fn to_text(&self) -> Option<StatisticsText> {
        StatisticsText::new(self)
    }
}

/// Part of the differences of some GPUs from their pasts that they share.
fn shared(residuals: &[f64]) -> f64 {
    round(trimmed_mean(residuals).unwrap_or_default())
}

/// Difference from their pasts that the nodes of this environment share: the median of the runs that ended next to `at`. A change of
/// all nodes is the fault of none. `None` for few nodes.
pub(crate) fn common_residual<'a>(
    states: impl Iterator<Item = (DateTime<Utc>, &'a StatisticsText)>,
    environment: Option<&str>,
    at: DateTime<Utc>,
) -> Option<f64> {
    let newest = states.filter_map(|(ended_at, state)| {
        let node = SharedPast::read(Some(state), environment);
        let newest = node.newest.filter(|_| node.past.count > 0)?;
        Some(((ended_at - at).abs(), newest))
    });
    let mut newest: Vec<(TimeDelta, f64)> = newest.collect();
    newest.sort_by_key(|(distance, _)| *distance);
    // All that are as near as the last one count.
    let farthest = newest.get(NEAREST - 1).map(|(distance, _)| *distance);
    let near = newest
        .iter()
        .filter(|(distance, _)| farthest.is_none_or(|farthest| *distance <= farthest));
    let newest: Vec<f64> = near.map(|(_, newest)| *newest).collect();
    median(&newest).filter(|_| !Scale::is_few(newest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variance of a run: 2 %.
    const VARIANCE: f64 = 4e-4;

    fn add_runs(past: &mut SharedPast, residuals: &[f64], common: Option<f64>) -> f64 {
        let mut suspected = 0.0;
        for residual in residuals {
            past.add(&[*residual]);
            suspected = past.learn(common, VARIANCE, true);
        }
        suspected
    }

    fn settled() -> SharedPast {
        let mut past = SharedPast::read(None, Some("0123"));
        add_runs(&mut past, &[0.01, -0.01].repeat(15), Some(0.0));
        past
    }

    #[test]
    fn another_environment_starts_new_statistics() {
        let mut past = settled();
        past.add(&[-0.02, -0.02, 0.5]);
        past.confirm(&[-0.01]);
        let stored = past.to_text().expect("JSON");
        assert_eq!(SharedPast::read(Some(&stored), Some("0123")), past);
        assert_eq!(SharedPast::read(Some(&stored), Some("4567")).past(), Past::default());
        assert_eq!(SharedPast::read(Some(&stored), None).past(), Past::default());
    }

    #[test]
    fn a_suspected_drift_is_not_learned_until_a_confirmation_refutes_it() {
        let mut past = settled();
        let few = add_runs(&mut past.clone(), &[-0.03; 12], None);
        assert!(few.abs() < f64::EPSILON, "few nodes learn it");
        assert!(add_runs(&mut past, &[-0.03; 12], Some(0.0)) < -0.02);
        let deviation = past.past().deviation(VARIANCE);
        assert!(past.past().is_drifting(deviation, NODE_IN_CONTROL));
        let confirmed = |residual: f64| {
            let mut past = past.clone();
            past.add(&[-0.03]);
            past.confirm(&[residual]);
            past.learn(Some(0.0), VARIANCE, true);
            past.past().cusum
        };
        let (refuted, shown) = (confirmed(0.0), confirmed(-0.03));
        assert!(
            (refuted - shown / 2.0).abs() < 1e-3,
            "{refuted} {shown}: the loss is still there"
        );
    }

    #[test]
    fn healthy_runs_end_a_long_suspicion() {
        let mut past = settled();
        add_runs(&mut past, &[-0.03; 200], Some(0.0));
        let mut back = 0.0;
        for _ in 0..40 {
            back += add_runs(&mut past, &[0.0], Some(0.0));
        }
        assert!(back > 5.0, "all that was withheld comes back: {back}");
    }

    #[test]
    fn a_loss_of_all_nodes_is_no_drift_of_one() {
        let at = |hour: u32| DateTime::from_timestamp(i64::from(hour) * 3600, 0).expect("a time");
        let nodes: Vec<(DateTime<Utc>, StatisticsText)> = (0..8_u32)
            .map(|hour| {
                let mut past = settled();
                past.add(&[-0.03]);
                (at(hour), past.to_text().expect("JSON"))
            })
            .collect();
        let common = |nodes: &[(DateTime<Utc>, StatisticsText)], environment: &str| {
            let states = nodes.iter().map(|(at, state)| (*at, state));
            common_residual(states, Some(environment), at(3))
        };
        let found = common(&nodes, "0123").expect("enough nodes");
        assert!((found + 0.03).abs() < 1e-9, "{found}");
        assert_eq!((common(&nodes[..7], "0123"), common(&nodes, "4567")), (None, None));
        let mut past = settled();
        assert!(add_runs(&mut past, &[-0.03; 12], Some(found)).abs() < f64::EPSILON);
        // Later runs of another level do not count.
        let later = (0..100_u32).map(|hour| {
            let mut past = settled();
            past.add(&[0.0]);
            (at(1000 + hour), past.to_text().expect("JSON"))
        });
        let many: Vec<_> = nodes.iter().cloned().cycle().take(40).chain(later).collect();
        assert_eq!(common(&many, "0123"), Some(found));
    }
}
