//! Metrics that the operator exports to Prometheus: docs/metrics.md.

mod fleet;
mod last;
mod newest;
mod objects;
mod samples;
pub mod series;
mod trials;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perfval_api::fleet::{NodePerformanceStatus, PerfValidationPolicyStatus};
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, TrialOutcome, Verdict};
use perfval_cluster::Counts;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use self::fleet::FleetSeries;
use self::objects::ObjectSeries;
use crate::version::{REVISION, VERSION};

/// Labels with words of the code, as name and value: their number is bounded.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Labels of a call of the API server.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    verb: &'static str,
    resource: &'static str,
    code: String,
}

/// Every series of the operator.
pub struct OperatorMetrics {
    registry: Registry,
    reconciles: Family<Labels<1>, Histogram>,
    errors: Family<Labels<1>, Counter>,
    phases: Family<Labels<1>, Histogram>,
    runs: Family<Labels<2>, Counter>,
    trials: Family<Labels<1>, Counter>,
    queue_wait: Histogram,
    requests: Family<Request, Counter>,
    watch_errors: Family<Labels<1>, Counter>,
    missing_rights: Gauge,
    unreadable: Gauge,
    orphans: Gauge,
    late_objects: Counter,
    api_timeouts: Counter,
    lost_events: Counter,
    leader: Gauge,
    planned: Gauge,
    /// Renewed by each look at the policies.
    fleet: Arc<FleetSeries>,
    each_object: bool,
    /// Bytes of the last text.
    length: AtomicUsize,
}

/// A pass costs milliseconds; only log reads and a slow API server cost seconds.
const PASS_SECONDS: [f64; 9] = [0.005, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 20.0, 60.0];
/// A phase lasts seconds to an hour.
const PHASE_SECONDS: [f64; 9] = [1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1200.0, 2400.0, 3600.0];
/// A confirmed plan takes two seconds, the queue before it hours.
const WAIT_SECONDS: [f64; 9] = [3.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14400.0, 43200.0];

impl OperatorMetrics {
    /// A registry of its own, with every series at zero whose labels are few: Prometheus sees no increase in a counter that
    /// begins with its first event. `each_object` adds the series of every object.
    pub fn new(each_object: bool) -> Self {
        let mut registry = Registry::with_prefix(series::PREFIX);
        let fleet = Arc::new(FleetSeries::new(each_object));
        registry.register_collector(Box::new(fleet.clone()));
        let into = &mut registry;
        // In the order of the page.
        let mut all = Self {
            reconciles: series::RECONCILE_DURATION.register(into, histograms(|| Histogram::new(PASS_SECONDS))),
            errors: series::RECONCILE_ERRORS.register(into, Family::default()),
            phases: series::PHASE_DURATION.register(into, histograms(|| Histogram::new(PHASE_SECONDS))),
            runs: series::RUNS.register(into, Family::default()),
            trials: series::TRIALS.register(into, Family::default()),
            queue_wait: series::QUEUE_WAIT.register(into, Histogram::new(WAIT_SECONDS)),
            requests: series::API_REQUESTS.register(into, Family::default()),
            api_timeouts: series::API_TIMEOUTS.register(into, Counter::default()),
            watch_errors: series::WATCH_ERRORS.register(into, Family::default()),
            missing_rights: series::MISSING_RIGHTS.register(into, Gauge::default()),
            unreadable: series::UNREADABLE.register(into, Gauge::default()),
            orphans: series::ORPHANS.register(into, Gauge::default()),
            late_objects: series::LATE_OBJECTS.register(into, Counter::default()),
            lost_events: series::LOST_EVENTS.register(into, Counter::default()),
            leader: series::LEADER.register(into, Gauge::default()),
            planned: series::PLANNED_RUNS.register(into, Gauge::default()),
            fleet,
            each_object,
            length: AtomicUsize::default(),
            registry,
        };
        let build = Info::new([("version", VERSION), ("revision", REVISION)]);
        all.registry.register(series::BUILD.base, series::BUILD.help, build);
        for phase in objects::active_phases() {
            drop(all.phases.get_or_create(&[("phase", phase.as_str())]));
        }
        for outcome in [TrialOutcome::Pass, TrialOutcome::Miss, TrialOutcome::Invalid] {
            drop(all.trials.get_or_create(&trial_label(outcome)));
        }
        all
    }

    /// A pass is over.
    pub fn reconciled(&self, outcome: &'static str, took: Duration) {
        self.reconciles
            .get_or_create(&[("outcome", outcome)])
            .observe(took.as_secs_f64());
    }

    /// A pass ended in an error of this reason.
    pub fn failed(&self, reason: &'static str) {
        self.errors.get_or_create(&[("reason", reason)]).inc();
    }

    /// A phase was left.
    pub fn left(&self, phase: Phase, after: Duration) {
        self.phases
            .get_or_create(&[("phase", phase.as_str())])
            .observe(after.as_secs_f64());
    }

    /// A run has its plan.
    pub fn placed(&self, after: Duration) {
        self.queue_wait.observe(after.as_secs_f64());
    }

    /// A status was recorded: counts the trials that it adds.
    pub fn trials(&self, before: &PerfValidationStatus, after: &PerfValidationStatus) {
        for outcome in trials::measured(before, after) {
            self.measured(outcome);
        }
    }

    fn measured(&self, outcome: TrialOutcome) {
        self.trials.get_or_create(&trial_label(outcome)).inc();
    }

    /// A run reached its verdict.
    pub fn judged(&self, verdict: Verdict, reason: &str) {
        // Only the words of the API may become a label.
        let known = perfval_api::Reason::ALL
            .iter()
            .map(|known| known.as_str())
            .find(|known| *known == reason);
        self.runs
            .get_or_create(&[("verdict", verdict.as_str()), ("reason", known.unwrap_or("Other"))])
            .inc();
    }

    /// The API server was called; no code: it gave no answer.
    pub fn called(&self, verb: &'static str, resource: &'static str, code: Option<u16>) {
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        let request = Request { verb, resource, code };
        self.requests.get_or_create(&request).inc();
    }

    /// A watch broke.
    pub fn watch_failed(&self, kind: &'static str) {
        self.watch_errors.get_or_create(&[("kind", kind)]).inc();
    }

    /// Sets the number of objects that cannot be read.
    pub fn unreadable(&self, objects: usize) {
        self.unreadable.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }

    /// Sets the number of objects that have lost their owner.
    pub fn orphaned(&self, objects: usize) {
        self.orphans.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }

    /// An object came after the end of its run.
    pub fn came_late(&self) {
        self.late_objects.inc();
    }

    /// Sets the number of missing rights.
    pub fn lacks(&self, rights: usize) {
        self.missing_rights.set(i64::try_from(rights).unwrap_or(i64::MAX));
    }

    /// This process leads.
    pub fn leads(&self) {
        self.leader.set(1);
    }

    /// Counts a look of the planner for this number of runs.
    pub fn planned(&self, runs: usize) {
        self.planned.set(i64::try_from(runs).unwrap_or(i64::MAX));
    }

    /// Takes over the counts of the cluster's calls.
    pub fn calls(&self, counts: Counts) {
        for (series, count) in [
            (&self.api_timeouts, counts.timeouts),
            (&self.lost_events, counts.lost_events),
        ] {
            series.inner().fetch_max(count, Ordering::Relaxed);
        }
    }

    /// Takes over the recorded measurement of each node.
    pub fn nodes<'a>(&self, nodes: impl Iterator<Item = (String, &'a NodePerformanceStatus)>) {
        self.fleet.set_nodes(nodes);
    }

    /// Takes over the state of each policy; `None` of a policy that cannot be parsed.
    pub fn policies<'a>(&self, policies: impl Iterator<Item = (String, Option<&'a PerfValidationPolicyStatus>)>) {
        self.fleet.set_policies(policies);
    }

    /// The text a scraper reads, with the objects as they are now.
    pub fn text(&self, objects: impl IntoIterator<Item = PerfValidation>) -> String {
        let mut of_objects = Registry::with_prefix(series::PREFIX);
        of_objects.register_collector(Box::new(ObjectSeries::new(self.each_object, objects)));
        // A text that doubles takes three times its size while it is copied.
        let last = self.length.load(Ordering::Relaxed);
        let mut text = String::with_capacity(last + last / 8);
        let encoded = text::encode_registry(&mut text, &self.registry)
            .and_then(|()| text::encode_registry(&mut text, &of_objects))
            .and_then(|()| text::encode_eof(&mut text));
        self.length.store(text.len(), Ordering::Relaxed);
        match encoded {
            Ok(()) => text,
            Err(error) => format!("# not encoded: {error}\n"),
        }
    }
}

fn histograms(new: fn() -> Histogram) -> Family<Labels<1>, Histogram> {
    Family::new_with_constructor(new)
}

fn trial_label(outcome: TrialOutcome) -> Labels<1> {
    [("outcome", outcome.as_str())]
}

#[cfg(test)]
mod tests;
