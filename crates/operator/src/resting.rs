//! Finished objects in the watch's store: what shows whether there is anything to do, and what the metrics show.
//!
//! With ten runs of history and eight workers a finished object took 25 KB, and 5,000 of them did not fit into 128 MiB. A pass
//! that changes anything reads the whole object first.

use std::mem::take;

use kube::ResourceExt as _;
use perfval_api::{HistoryEntry, PerfValidation, PerfValidationStatus, Phase, TrialStatus};
use perfval_verdict::diagnosis::cause::Cause;

/// `kubectl apply` keeps the whole manifest in it; nothing here reads it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Drops what no decision needs; of a finished object also what only a change of it needs.
pub fn reduce(object: &mut PerfValidation) {
    object.metadata.managed_fields = None;
    object.annotations_mut().remove(LAST_APPLIED);
    if !is_reduced(object) {
        return;
    }
    let Some(status) = &mut object.status else { return };
    // The metrics show the last run that measured something.
    let measured = |entry: &HistoryEntry| entry.throughput.is_some() || entry.verdict.is_some();
    let last = take(&mut status.history).into_iter().find(measured);
    status.history = last.into_iter().collect();
    status.gates = Vec::new();
    status.workers = Vec::new();
    keep_slow_gpus(status);
    status.progress = None;
    status.timeline = Vec::new();
    status.comparison = None;
}

/// Keeps of trials and findings which GPUs the run found slow; most runs find none.
fn keep_slow_gpus(status: &mut PerfValidationStatus) {
    status.trials.retain(|trial| !trial.slow_gpus.is_empty());
    for trial in &mut status.trials {
        *trial = TrialStatus {
            number: trial.number,
            slow_gpus: take(&mut trial.slow_gpus),
            ..TrialStatus::default()
        };
    }
    status.trials.shrink_to_fit();
    status
        .diagnosis
        .retain(|finding| finding.cause == Cause::SlowWorker.as_str());
    for finding in &mut status.diagnosis {
        (finding.evidence, finding.remedy) = (String::new(), String::new());
    }
    status.diagnosis.shrink_to_fit();
}

/// Whether the store has only a part of this object.
pub fn is_reduced(object: &PerfValidation) -> bool {
    let phase = object.status.as_ref().and_then(|status| status.phase);
    phase == Some(Phase::Completed)
}
