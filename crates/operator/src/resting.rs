//! The part of an object that the watch's store keeps.
//!
//! With ten runs of history and eight workers a finished object took 25 KB, and 5,000 of them did not fit into 128 MiB. A pass
//! that changes anything reads the whole object first.

use std::mem::take;

use kube::api::ObjectMeta;
use perfval_api::meta::{DUE_REASON, ERRORS_BEFORE, NO_CLEANUP, RERUN};
use perfval_api::{EarlierRun, PerfValidation, PerfValidationStatus, Phase, TrialState};
use perfval_run::status;
use perfval_verdict::diagnosis::cause::Cause;

/// Annotations that are read.
pub(crate) const READ: [&str; 4] = [RERUN, NO_CLEANUP, ERRORS_BEFORE, DUE_REASON];

/// Drops metadata that nothing here reads, such as the manifest that `kubectl apply` keeps. Kubernetes limits the number of
/// neither annotations nor owners, but allows one controller.
pub fn strip(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    metadata.labels = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|key, _| READ.contains(&key.as_str()));
    }
    let mut owners = metadata.owner_references.take().into_iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    metadata.owner_references = controller.map(|owner| vec![owner]);
}

/// Drops what no decision needs; of a finished object also what only a change of it needs.
pub fn reduce(object: &mut PerfValidation) {
    strip(&mut object.metadata);
    if !is_reduced(object) {
        return;
    }
    let Some(status) = &mut object.status else { return };
    // The metrics show the last run that measured. The verdict is that of the run itself, which is over.
    let measured = |entry: &EarlierRun| entry.throughput.is_some();
    let last = take(&mut status.state.history).into_iter().find(measured);
    status.state.history = last.into_iter().collect();
    status.gates = Vec::new();
    status.state.workers = Vec::new();
    keep_slow_gpus(status);
    status.state.progress = None;
    status.state.timeline = Vec::new();
    status.state.comparison = None;
    status.state.last_passed = None;
    status.state.worker_pods = Vec::new();
    status::publish(status);
}

/// Keeps of trials and findings which GPUs the run found slow; most runs find none.
fn keep_slow_gpus(status: &mut PerfValidationStatus) {
    status.state.trials.retain(|trial| !trial.slow_gpus.is_empty());
    for trial in &mut status.state.trials {
        *trial = TrialState {
            number: trial.number,
            slow_gpus: take(&mut trial.slow_gpus),
            ..TrialState::default()
        };
    }
    status.state.trials.shrink_to_fit();
    status
        .diagnosis
        .retain(|finding| finding.cause == Cause::SlowWorker.as_str());
    for finding in &mut status.diagnosis {
        (finding.evidence, finding.remedy) = (String::new(), String::new());
    }
    status.diagnosis.shrink_to_fit();
}

/// Returns true if the store has only a part of this object.
pub fn is_reduced(object: &PerfValidation) -> bool {
    let phase = object.status.as_ref().and_then(|status| status.phase);
    phase == Some(Phase::Completed)
}
