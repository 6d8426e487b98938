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

    /// Adds it to a registry, which appends unit and suffix.
    pub(super) fn register(&self, registry: &mut Registry, metric: impl Metric) {
        match self.unit {
            Some(unit) => registry.register_with_unit(self.base, self.help, Unit::Other(unit.into()), metric),
            None => registry.register(self.base, self.help, metric),
        }
    }
}

const fn series(kind: SeriesKind, base: &'static str, labels: &'static [&'static str], help: &'static str) -> Series {
    let unit = None;
    Series {
        base,
        unit,
        kind,
        labels,
        help,
    }
}

const fn with_unit(unit: &'static str, series: Series) -> Series {
    Series {
        unit: Some(unit),
        ..series
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

pub(super) const RECONCILE_DURATION: Series = with_unit(
    "seconds",
    series(
        SeriesKind::Histogram,
        "reconcile_duration",
        &["outcome"],
        "Time of one pass",
    ),
);
pub(super) const RECONCILE_ERRORS: Series = series(
    SeriesKind::Counter,
    "reconcile_errors",
    &["reason"],
    "Passes that ended in an error",
);
pub(super) const PHASE_DURATION: Series = with_unit(
    "seconds",
    series(
        SeriesKind::Histogram,
        "phase_duration",
        &["phase"],
        "Time spent in a phase",
    ),
);
pub(super) const RUNS: Series = series(
    SeriesKind::Counter,
    "runs",
    &["verdict", "reason"],
    "Runs that reached a verdict",
);
pub(super) const TRIALS: Series = series(
    SeriesKind::Counter,
    "trials",
    &["outcome"],
    "Trials that were measured: Pass, Miss or Invalid",
);
pub(super) const ACTIVE_RUNS: Series = series(
    SeriesKind::Gauge,
    "active_runs",
    &["phase"],
    "Objects whose run is not over, by phase",
);
pub(super) const QUEUE_LENGTH: Series = series(SeriesKind::Gauge, "queue_length", &[], "Runs that wait for GPUs");
pub(super) const PLANNED_RUNS: Series = series(
    SeriesKind::Gauge,
    "planned_runs",
    &[],
    "Runs that wait for GPUs and that the planner has looked at",
);
pub(super) const QUEUE_WAIT: Series = with_unit(
    "seconds",
    series(
        SeriesKind::Histogram,
        "queue_wait",
        &[],
        "Time from asking for GPUs to having a confirmed plan",
    ),
);
pub(super) const LAST_THROUGHPUT: Series = with_unit(
    "tokens_per_second",
    series(
        SeriesKind::Gauge,
        "last_throughput",
        RESULT,
        "Output tokens per second of the deciding trial of the last run that measured",
    ),
);
pub(super) const LAST_TTFT_P99: Series = with_unit(
    "seconds",
    series(
        SeriesKind::Gauge,
        "last_time_to_first_token_p99",
        RESULT,
        "Time to first token, 99th percentile, of the same trial",
    ),
);
pub(super) const LAST_ERROR: Series = with_unit(
    "ratio",
    series(
        SeriesKind::Gauge,
        "last_error",
        RESULT,
        "Share of the requests of the same trial that failed or came back short, 0 to 1; absent while the next run has not measured",
    ),
);
pub(super) const LAST_SLOWEST_WORKER: Series = with_unit(
    "ratio",
    series(
        SeriesKind::Gauge,
        "last_slowest_worker",
        RESULT,
        "Decode speed of the slowest worker of the same trial over its peers' median, where the engines report it; absent while the next run has not measured",
    ),
);
pub(super) const LAST_VERDICT: Series = series(
    SeriesKind::Gauge,
    "last_verdict",
    &["namespace", "name", "node", "verdict"],
    "1 for the verdict of the last run that has one; of a policy's validations only Error and Inconclusive have results here",
);
pub(super) const LAST_VERDICT_TIME: Series = with_unit(
    "timestamp_seconds",
    series(
        SeriesKind::Gauge,
        "last_verdict",
        RESULT,
        "Unix time of the end of the run with this verdict",
    ),
);
pub(super) const SLOW_GPU: Series = series(
    SeriesKind::Gauge,
    "slow_gpu",
    &["namespace", "name", "node", "gpu_uuid"],
    "1 for each GPU that the last run found slow (cause SlowWorker), until the next run begins; the UUID is empty where the driver publishes none",
);
pub(super) const UNSAVED_RESULTS: Series = series(
    SeriesKind::Gauge,
    "unsaved_results",
    RESULT,
    "1 where the last run measured and its full results could not be saved",
);
pub(super) const PHASE_SINCE: Series = with_unit(
    "timestamp_seconds",
    series(
        SeriesKind::Gauge,
        "phase_since",
        IN_PHASE,
        "Unix time at which the run entered its phase; absent once it is over",
    ),
);
pub(super) const PHASE_LIMIT: Series = with_unit(
    "timestamp_seconds",
    series(
        SeriesKind::Gauge,
        "phase_limit",
        IN_PHASE,
        "Unix time at which the limit of this phase passes; absent where it has none",
    ),
);
pub(super) const LEFTOVERS: Series = series(
    SeriesKind::Gauge,
    "leftovers",
    &["namespace", "name", "node", "state"],
    "1 while a run has something left in the cluster: Kept on request, or Overdue because it could not be removed in time",
);
pub(super) const HELD_GPUS: Series = series(
    SeriesKind::Gauge,
    "held_gpus",
    OBJECT,
    "GPUs of the plan that a run holds, until they are confirmed free again",
);
pub(super) const NODE_VERDICT: Series = series(
    SeriesKind::Gauge,
    "node_verdict",
    &["node", "verdict"],
    "1 for the verdict of the newest run that measured the node",
);
pub(super) const NODE_MEASURED_TIME: Series = with_unit(
    "timestamp_seconds",
    series(
        SeriesKind::Gauge,
        "node_measured",
        NODE,
        "Unix time of the end of that run",
    ),
);
pub(super) const NODE_OF_GATE: Series = with_unit(
    "ratio",
    series(
        SeriesKind::Gauge,
        "node_of_gate",
        NODE,
        "Result of the tightest enforced gate on an average over its threshold; below 1 is a miss",
    ),
);
pub(super) const NODE_OF_OWN_PAST: Series = with_unit(
    "ratio",
    series(
        SeriesKind::Gauge,
        "node_of_own_past",
        NODE,
        "Decode speed of the slowest GPU over that of its own earlier runs; absent until it has five",
    ),
);
pub(super) const NODE_OF_PEERS: Series = with_unit(
    "ratio",
    series(
        SeriesKind::Gauge,
        "node_of_peers",
        NODE,
        "Decode speed of the slowest GPU over the median of the node's other GPUs",
    ),
);
pub(super) const NODE_OUTLIER: Series = series(
    SeriesKind::Gauge,
    "node_outlier",
    &["policy", "node", "reason"],
    "1 for each outlier in the status of a policy that is not only Suspected, at most 20 per policy",
);
pub(super) const POLICY_NODES: Series = series(
    SeriesKind::Gauge,
    "policy_nodes",
    &["policy", "state"],
    "Nodes of a policy: Selected, and of these Fresh, Stale, NeverMeasured, Failed, Running and Busy",
);
pub(super) const API_REQUESTS: Series = series(
    SeriesKind::Counter,
    "api_requests",
    &["verb", "resource", "code"],
    "Calls of the API server, by HTTP status; none: no answer came",
);
pub(super) const API_TIMEOUTS: Series = series(
    SeriesKind::Counter,
    "api_timeouts",
    &[],
    "Calls of the API server without an answer in time",
);
pub(super) const WATCH_ERRORS: Series = series(
    SeriesKind::Counter,
    "watch_errors",
    &["kind"],
    "Watches of validations and their objects that broke and were started again",
);
pub(super) const MISSING_RIGHTS: Series = series(
    SeriesKind::Gauge,
    "missing_rights",
    &[],
    "Rights that the operator needs and does not have; /readyz names them",
);
pub(super) const ORPHANS: Series = series(
    SeriesKind::Gauge,
    "orphaned_objects",
    &[],
    "Objects whose PerfValidation was removed by force; Events on them name each",
);
pub(super) const LATE_OBJECTS: Series = series(
    SeriesKind::Counter,
    "late_objects",
    &[],
    "Objects of runs that were over, and confirmed to have left nothing, when they came; each is removed",
);
pub(super) const LOST_EVENTS: Series = series(
    SeriesKind::Counter,
    "lost_events",
    &[],
    "Events that could not be published",
);
pub(super) const LEADER: Series = series(SeriesKind::Gauge, "leader", &[], "1 while this process holds the lease");
pub(super) const BUILD: Series = series(
    SeriesKind::Info,
    "build",
    &["version", "revision"],
    "Version and commit of this operator",
);

/// Every series, in the order of the documentation.
pub const ALL: &[Series] = &[
    RUNS,
    TRIALS,
    ACTIVE_RUNS,
    PHASE_DURATION,
    QUEUE_LENGTH,
    PLANNED_RUNS,
    QUEUE_WAIT,
    LAST_VERDICT,
    LAST_VERDICT_TIME,
    LAST_THROUGHPUT,
    LAST_TTFT_P99,
    LAST_ERROR,
    LAST_SLOWEST_WORKER,
    SLOW_GPU,
    UNSAVED_RESULTS,
    PHASE_SINCE,
    PHASE_LIMIT,
    HELD_GPUS,
    LEFTOVERS,
    NODE_VERDICT,
    NODE_MEASURED_TIME,
    NODE_OF_GATE,
    NODE_OF_OWN_PAST,
    NODE_OF_PEERS,
    NODE_OUTLIER,
    POLICY_NODES,
    RECONCILE_DURATION,
    RECONCILE_ERRORS,
    API_REQUESTS,
    API_TIMEOUTS,
    WATCH_ERRORS,
    MISSING_RIGHTS,
    ORPHANS,
    LATE_OBJECTS,
    LOST_EVENTS,
    LEADER,
    BUILD,
];
