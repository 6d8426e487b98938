//! Every series, as it is registered and as docs/metrics.md lists it.

use prometheus_client::registry::{Metric, Registry, Unit};

/// Prefix of all names.
pub const PREFIX: &str = "perfvalidation";

/// One name, with what a reader has to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    pub(super) base: &'static str,
    pub(super) unit: Option<&'static str>,
    /// Its type.
    pub kind: SeriesKind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Meaning of the series.
    pub help: &'static str,
}

/// Type of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size; `_bucket`, `_sum` and `_count`.
    Histogram,
    /// Always 1; its labels hold the values.
    Info,
}

impl Series {
    /// The name that a query uses, without a histogram's `_bucket`, `_sum` or `_count`.
    pub fn name(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        let suffix = match self.kind {
            SeriesKind::Counter => "_total",
            SeriesKind::Info => "_info",
            SeriesKind::Gauge | SeriesKind::Histogram => "",
        };
        format!("{PREFIX}_{}{unit}{suffix}", self.base)
    }

    /// Adds a metric to a registry, which appends unit and suffix. Returns the metric.
    pub(super) fn register<M: Metric + Clone>(&self, registry: &mut Registry, metric: M) -> M {
        let kept = metric.clone();
        match self.unit {
            Some(unit) => registry.register_with_unit(self.base, self.help, Unit::Other(unit.into()), kept),
            None => registry.register(self.base, self.help, kept),
        }
        metric
    }
}

/// Labels of the series that each object has.
const OBJECT: &[&str] = &["namespace", "name"];
/// Labels of a result; the node is empty where the run chose none.
const RESULT: &[&str] = &["namespace", "name", "node"];
/// Label of the series that each node has.
const NODE: &[&str] = &["node"];
/// Labels of an object in a phase.
const IN_PHASE: &[&str] = &["namespace", "name", "phase"];

/// Declares each series, and all of them in the order of the documentation: none can be forgotten there.
macro_rules! table {
    ($($name:ident = $kind:ident, $base:literal, $unit:expr, $labels:expr, $help:literal;)*) => {
        $(pub(super) const $name: Series = Series {
            base: $base,
            unit: $unit,
            kind: SeriesKind::$kind,
            labels: $labels,
            help: $help,
        };)*

        /// Every series, in the order of the documentation.
        pub const ALL: &[Series] = &[$($name),*];
    };
}

// One line a series: type, name, unit, labels, meaning.
table! {
    RUNS = Counter, "runs", None, &["verdict", "reason"], "Runs that reached a verdict";
    TRIALS = Counter, "trials", None, &["outcome"], "Measured trials: Pass, Miss or Invalid";
    ACTIVE_RUNS = Gauge, "active_runs", None, &["phase"], "Objects whose run is not over";
    PHASE_DURATION = Histogram, "phase_duration", Some("seconds"), &["phase"], "Time in a phase";
    QUEUE_LENGTH = Gauge, "queue_length", None, &[], "Runs that wait for GPUs";
    PLANNED_RUNS = Gauge, "planned_runs", None, &[], "Waiting runs that the planner has looked at";
    QUEUE_WAIT = Histogram, "queue_wait", Some("seconds"), &[], "Time from asking for GPUs to a confirmed plan";
    LAST_VERDICT = Gauge, "last_verdict", None, &["namespace", "name", "node", "verdict"], "1 for the verdict of the last run that has one; of a policy only Error and Inconclusive, until a newer result of the node";
    LAST_VERDICT_TIME = Gauge, "last_verdict", Some("timestamp_seconds"), RESULT, "End of the run with this verdict";
    LAST_THROUGHPUT = Gauge, "last_throughput", Some("tokens_per_second"), RESULT, "Output tokens per second of the last measured run's deciding trial; once the next begins, its mean";
    LAST_TTFT_P99 = Gauge, "last_time_to_first_token_p99", Some("seconds"), RESULT, "Time to first token, 99th percentile, likewise";
    LAST_ERROR = Gauge, "last_error", Some("ratio"), RESULT, "Share of failed or short requests in the deciding trial; absent once the next run begins";
    LAST_SLOWEST_WORKER = Gauge, "last_slowest_worker", Some("ratio"), RESULT, "Decode speed of the slowest worker of the deciding trial over its peers' median, where the engines report it; absent once the next run begins";
    SLOW_GPU = Gauge, "slow_gpu", None, &["namespace", "name", "node", "gpu_uuid"], "1 for each GPU that the last run found slow (cause SlowWorker), until the next run begins; the UUID may be empty";
    UNSAVED_RESULTS = Gauge, "unsaved_results", None, RESULT, "1 if the last run's full results could not be saved";
    PHASE_SINCE = Gauge, "phase_since", Some("timestamp_seconds"), IN_PHASE, "Begin of the phase; absent once the run is over";
    PHASE_LIMIT = Gauge, "phase_limit", Some("timestamp_seconds"), IN_PHASE, "Limit of the phase; absent without one";
    HELD_GPUS = Gauge, "held_gpus", None, OBJECT, "GPUs of a run, until they are confirmed free";
    LEFTOVERS = Gauge, "leftovers", None, &["namespace", "name", "node", "state"], "1 while a run has objects left: Kept on request, or Overdue after `timeouts.cleanup`";
    NODE_VERDICT = Gauge, "node_verdict", None, &["node", "verdict"], "1 for the verdict of the recorded run of the node";
    NODE_MEASURED_TIME = Gauge, "node_measured", Some("timestamp_seconds"), NODE, "End of that run";
    NODE_OF_GATE = Gauge, "node_of_gate", Some("ratio"), NODE, "Result of the tightest enforced gate on an average, without `SlowestWorkerPercent` and `OwnPastPercent`; below 1 is a miss";
    NODE_OF_OWN_PAST = Gauge, "node_of_own_past", Some("ratio"), NODE, "Decode speed of the slowest GPU over its own earlier runs; absent until it has five";
    NODE_OF_PEERS = Gauge, "node_of_peers", Some("ratio"), NODE, "Decode speed of the slowest GPU over the median of the node's other GPUs";
    NODE_OUTLIER = Gauge, "node_outlier", None, &["policy", "node", "reason"], "1 for each outlier that is not only Suspected, at most 20 per policy";
    POLICY_READY = Gauge, "policy_ready", None, &["policy", "reason"], "1 if a policy is Ready, else 0";
    POLICY_NODES = Gauge, "policy_nodes", None, &["policy", "state"], "Nodes of a policy: Selected, and of these Fresh, Stale, NeverMeasured, Failed, Running and Busy";
    POLICY_GPU_MINUTES = Gauge, "policy_gpu_minutes_today", None, &["policy"], "GPU minutes of a policy since midnight (UTC)";
    RECONCILE_DURATION = Histogram, "reconcile_duration", Some("seconds"), &["outcome"], "Time of one pass";
    RECONCILE_ERRORS = Counter, "reconcile_errors", None, &["reason"], "Errors of passes and other work";
    API_REQUESTS = Counter, "api_requests", None, &["verb", "resource", "code"], "Calls of the API server, by HTTP status; none: no answer";
    API_TIMEOUTS = Counter, "api_timeouts", None, &[], "Calls of the API server without an answer in time";
    WATCH_ERRORS = Counter, "watch_errors", None, &["kind"], "Broken and restarted watches";
    MISSING_RIGHTS = Gauge, "missing_rights", None, &[], "Rights that the operator lacks; /readyz lists them";
    UNREADABLE = Gauge, "unreadable_objects", None, &[], "PerfValidations that the operator cannot parse, or has no room for (SpecUnreadable)";
    ORPHANS = Gauge, "orphaned_objects", None, &[], "Objects without their PerfValidation";
    LATE_OBJECTS = Counter, "late_objects", None, &[], "Objects that came after the confirmed end of their run";
    LOST_EVENTS = Counter, "lost_events", None, &[], "Events that could not be published";
    LEADER = Gauge, "leader", None, &[], "1 while this process holds the lease";
    BUILD = Info, "build", None, &["version", "revision"], "Version and commit of this operator";
}
