//! The series of the operator, by the names that a query uses.

/// A series.
pub struct Series {
    /// Its name, without a histogram's `_bucket`, `_sum` or `_count`.
    pub name: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Whether it counts by size.
    pub is_histogram: bool,
}

const fn plain(name: &'static str, labels: &'static [&'static str]) -> Series {
    let is_histogram = false;
    Series {
        name,
        labels,
        is_histogram,
    }
}

const fn histogram(name: &'static str, labels: &'static [&'static str]) -> Series {
    let is_histogram = true;
    Series {
        name,
        labels,
        is_histogram,
    }
}

/// Labels of the series that each object has.
const OBJECT: &[&str] = &["namespace", "name"];

/// All of them.
pub const ALL: &[Series] = &[
    plain("perfvalidation_runs_total", &["verdict", "reason"]),
    plain("perfvalidation_trials_total", &["outcome"]),
    plain("perfvalidation_active_runs", &["phase"]),
    histogram("perfvalidation_phase_duration_seconds", &["phase"]),
    plain("perfvalidation_queue_length", &[]),
    histogram("perfvalidation_queue_wait_seconds", &[]),
    plain("perfvalidation_last_verdict", &["namespace", "name", "verdict"]),
    plain("perfvalidation_last_throughput_tokens_per_second", OBJECT),
    plain("perfvalidation_last_time_to_first_token_p99_seconds", OBJECT),
    plain("perfvalidation_last_error_ratio", OBJECT),
    plain("perfvalidation_held_gpus", OBJECT),
    histogram("perfvalidation_reconcile_duration_seconds", &["outcome"]),
    plain("perfvalidation_reconcile_errors_total", &["reason"]),
    plain("perfvalidation_api_requests_total", &["verb", "resource", "code"]),
    plain("perfvalidation_api_timeouts_total", &[]),
    plain("perfvalidation_watch_errors_total", &["kind"]),
    plain("perfvalidation_missing_rights", &[]),
    plain("perfvalidation_lost_events_total", &[]),
    plain("perfvalidation_leader", &[]),
    plain("perfvalidation_build_info", &["version", "revision"]),
];
