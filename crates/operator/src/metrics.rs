//! What the operator tells Prometheus. Labels are bounded: never the name of an object, a node or a model.

use std::sync::atomic::Ordering;
use std::time::Duration;

use perfval_api::{Phase, Verdict};
use perfval_cluster::Counts;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// Every series of the operator, under the prefix `perfvalidation_`.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Outcome, Histogram>,
    errors: Family<Reason, Counter>,
    phases: Family<InPhase, Histogram>,
    runs: Family<Judged, Counter>,
    active: Family<InPhase, Gauge>,
    watch_errors: Family<Kind, Counter>,
    api_timeouts: Counter,
    lost_events: Counter,
    leader: Gauge,
    queue: Gauge,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InPhase {
    phase: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Judged {
    verdict: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

/// A pass costs milliseconds; only log reads and a slow API server cost seconds.
const PASS_SECONDS: [f64; 9] = [0.005, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 20.0, 60.0];
/// A phase lasts seconds to an hour.
const PHASE_SECONDS: [f64; 9] = [1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1200.0, 2400.0, 3600.0];

impl Metrics {
    /// A registry of its own, with every series at zero that has no open label.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("perfvalidation");
        let reconciles = Family::<Outcome, Histogram>::new_with_constructor(|| Histogram::new(PASS_SECONDS));
        let phases = Family::<InPhase, Histogram>::new_with_constructor(|| Histogram::new(PHASE_SECONDS));
        let (errors, runs, active, watch_errors) = (
            Family::default(),
            Family::default(),
            Family::default(),
            Family::default(),
        );
        let (api_timeouts, lost_events) = (Counter::default(), Counter::default());
        let (leader, queue) = (Gauge::default(), Gauge::default());
        registry.register_with_unit(
            "reconcile_duration",
            "Time of one pass",
            Unit::Seconds,
            reconciles.clone(),
        );
        registry.register("reconcile_errors", "Passes that ended in an error", errors.clone());
        registry.register_with_unit("phase_duration", "Time spent in a phase", Unit::Seconds, phases.clone());
        registry.register("runs", "Runs that reached a verdict", runs.clone());
        registry.register("active_runs", "Objects whose run is not over", active.clone());
        registry.register(
            "watch_errors",
            "Watches that broke and were started again",
            watch_errors.clone(),
        );
        registry.register(
            "api_timeouts",
            "Calls of the API server without an answer in time",
            api_timeouts.clone(),
        );
        registry.register("lost_events", "Events that could not be published", lost_events.clone());
        registry.register("leader", "1 while this process holds the lease", leader.clone());
        registry.register("queue_length", "Runs for which the planner looked last", queue.clone());
        registry.register(
            "build",
            "Version of this operator",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        Self {
            registry,
            reconciles,
            errors,
            phases,
            runs,
            active,
            watch_errors,
            api_timeouts,
            lost_events,
            leader,
            queue,
        }
    }

    /// A pass is over.
    pub fn reconciled(&self, outcome: &'static str, took: Duration) {
        self.reconciles
            .get_or_create(&Outcome { outcome })
            .observe(took.as_secs_f64());
    }

    /// A pass ended in an error of this reason.
    pub fn failed(&self, reason: &'static str) {
        self.errors.get_or_create(&Reason { reason }).inc();
    }

    /// A phase was left.
    pub fn left(&self, phase: Phase, after: Duration) {
        self.phases
            .get_or_create(&InPhase { phase: phase.as_str() })
            .observe(after.as_secs_f64());
    }

    /// A run reached its verdict.
    pub fn judged(&self, verdict: Verdict, reason: &str) {
        // Only the words of the API may become a label.
        let known = perfval_api::Reason::ALL
            .iter()
            .map(|known| known.as_str())
            .find(|known| *known == reason);
        self.runs
            .get_or_create(&Judged {
                verdict: verdict.as_str(),
                reason: known.unwrap_or("Other"),
            })
            .inc();
    }

    /// A watch broke.
    pub fn watch_failed(&self, kind: &'static str) {
        self.watch_errors.get_or_create(&Kind { kind }).inc();
    }

    /// This process leads, or no longer does.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// The planner has looked for so many runs.
    pub fn queued(&self, runs: usize) {
        self.queue.set(i64::try_from(runs).unwrap_or(i64::MAX));
    }

    /// What the cluster's calls counted by now.
    pub fn calls(&self, counts: Counts) {
        for (series, count) in [
            (&self.api_timeouts, counts.timeouts),
            (&self.lost_events, counts.lost_events),
        ] {
            series.inner().fetch_max(count, Ordering::Relaxed);
        }
    }

    /// The text a scraper reads, with the phases of all objects as they are now.
    pub fn text(&self, phases: &[Phase]) -> String {
        for phase in Phase::ALL
            .into_iter()
            .filter(|phase| !matches!(phase, Phase::Completed | Phase::Suspended))
        {
            let count = phases.iter().filter(|other| **other == phase).count();
            self.active
                .get_or_create(&InPhase { phase: phase.as_str() })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        match text::encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => format!("# not encoded: {error}\n"),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_its_documented_name() {
        let metrics = Metrics::new();
        metrics.reconciled("ok", Duration::from_millis(30));
        metrics.failed("Timeout");
        metrics.left(Phase::Sizing, Duration::from_secs(3));
        metrics.judged(Verdict::Failed, "GatesMissed");
        metrics.watch_failed("Job");
        metrics.calls(Counts {
            timeouts: 3,
            lost_events: 1,
        });
        metrics.leads(true);
        metrics.queued(7);
        let text = metrics.text(&[Phase::Sizing, Phase::Sizing, Phase::Completed]);
        for line in [
            "perfvalidation_reconcile_duration_seconds_bucket{le=\"0.05\",outcome=\"ok\"} 1",
            "perfvalidation_reconcile_errors_total{reason=\"Timeout\"} 1",
            "perfvalidation_phase_duration_seconds_count{phase=\"Sizing\"} 1",
            "perfvalidation_runs_total{verdict=\"Failed\",reason=\"GatesMissed\"} 1",
            "perfvalidation_active_runs{phase=\"Sizing\"} 2",
            "perfvalidation_active_runs{phase=\"Pending\"} 0",
            "perfvalidation_watch_errors_total{kind=\"Job\"} 1",
            "perfvalidation_api_timeouts_total 3",
            "perfvalidation_lost_events_total 1",
            "perfvalidation_leader 1",
            "perfvalidation_queue_length 7",
            concat!(
                "perfvalidation_build_info{version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"} 1"
            ),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("phase=\"Completed\""), "{text}");
    }

    #[test]
    fn an_unknown_reason_does_not_become_a_label() {
        let metrics = Metrics::new();
        metrics.judged(Verdict::Error, "pod perf/x-7f9c is gone");
        assert!(metrics.text(&[]).contains("reason=\"Other\"} 1"));
    }
}
