//! Last run of an object that has a verdict, and the last that measured.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use perfval_api::{EarlierRun, PerfValidationStatus, Phase, Severity, Verdict};
use perfval_run::status::phase_started_at;
use perfval_verdict::diagnosis::cause::Cause;

/// Verdict of the last run that has one.
pub(super) struct LastVerdict {
    pub(super) verdict: Verdict,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) node: String,
    /// UUIDs of the GPUs that it blames; an empty one where the driver publishes none. The history has GPUs that a single trial
    /// found slow, so it blames none.
    pub(super) slow_gpus: BTreeSet<String>,
}

impl LastVerdict {
    pub(super) fn from_status(status: &PerfValidationStatus) -> Option<Self> {
        if let Some(verdict) = status.verdict {
            let completed_at = status.run.as_ref().and_then(|run| run.completed_at);
            return Some(Self {
                verdict,
                at: completed_at.or_else(|| phase_started_at(status)),
                node: node(status),
                slow_gpus: slow_gpus(status),
            });
        }
        let judged = |entry: &&EarlierRun| entry.verdict.is_some();
        let entry = status.state.history.iter().find(judged)?;
        Some(Self {
            verdict: entry.verdict?,
            at: Some(entry.completed_at),
            node: entry.node.clone().unwrap_or_default(),
            slow_gpus: BTreeSet::new(),
        })
    }
}

/// Numbers of the last run that measured.
#[derive(Default)]
pub(super) struct LastNumbers {
    pub(super) node: String,
    pub(super) throughput: Option<f64>,
    pub(super) ttft_p99_ms: Option<f64>,
    pub(super) error_percent: Option<f64>,
    pub(super) slowest_worker_percent: Option<f64>,
}

impl LastNumbers {
    pub(super) fn from_status(status: &PerfValidationStatus) -> Self {
        let read = |text: &Option<String>| text.as_ref()?.parse().ok();
        if let Some(measured) = &status.state.metrics {
            return Self {
                node: node(status),
                throughput: read(&measured.output_token_throughput),
                ttft_p99_ms: read(&measured.ttft_p99_ms),
                error_percent: read(&measured.request_error_percent),
                slowest_worker_percent: read(&measured.slowest_worker_percent),
            };
        }
        let measured = |entry: &&EarlierRun| entry.throughput.is_some();
        let Some(entry) = status.state.history.iter().find(measured) else {
            return Self::default();
        };
        Self {
            node: entry.node.clone().unwrap_or_default(),
            throughput: read(&entry.throughput),
            ttft_p99_ms: read(&entry.ttft_p99_ms),
            ..Self::default()
        }
    }
}

pub(super) fn node(status: &PerfValidationStatus) -> String {
    status
        .placement
        .as_ref()
        .map(|plan| plan.node.clone())
        .unwrap_or_default()
}

/// Returns true if the run is over, measured, and has no ConfigMap with its results.
pub(super) fn lost_results(status: &PerfValidationStatus) -> bool {
    let is_over = matches!(status.phase, Some(Phase::CleaningUp | Phase::Completed));
    is_over && status.verdict.is_some() && status.state.metrics.is_some() && status.results_ref.is_none()
}

/// GPUs of a judged run. A trial may find one slow that the verdict does not blame.
fn slow_gpus(status: &PerfValidationStatus) -> BTreeSet<String> {
    let is_blamed = status
        .diagnosis
        .iter()
        .any(|finding| finding.cause == Cause::SlowWorker.as_str() && finding.severity != Severity::Info);
    if !is_blamed {
        return BTreeSet::new();
    }
    let named: BTreeSet<String> = status
        .state
        .trials
        .iter()
        .flat_map(|trial| trial.slow_gpus.clone())
        .collect();
    if named.is_empty() {
        return BTreeSet::from([String::new()]);
    }
    named
}
