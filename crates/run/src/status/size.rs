//! Texts and statuses of bounded size.

use perfval_api::PerfValidationStatus;
use perfval_api::text::cut;
use perfval_verdict::diagnosis::cause::SHOWN;

use super::publish;

/// Largest status (bytes); etcd and every watcher carry it on each change.
const STATUS: usize = 31 * 1024;

/// Keeps a status within its size in every case. Explanations go before data that later passes need. The summary in
/// the results ConfigMap keeps all of it.
pub fn fit(status: &mut PerfValidationStatus) {
    const SHORT: usize = 80;
    let cuts: [fn(&mut PerfValidationStatus); 12] = [
        |status| {
            for entry in &mut status.state.history {
                entry.phases.clear();
            }
        },
        // Six runs are enough for a gate on a GPU's own past.
        |status| {
            for entry in status.state.history.iter_mut().skip(6) {
                entry.speeds.clear();
            }
        },
        |status| status.state.history.truncate(1),
        |status| {
            status.state.workers.clear();
            for entry in &mut status.state.history {
                entry.speeds.clear();
            }
        },
        |status| {
            for finding in &mut status.diagnosis {
                finding.evidence = cut(&finding.evidence, SHORT);
            }
        },
        |status| {
            for condition in &mut status.conditions {
                condition.message = cut(&condition.message, SHORT);
            }
        },
        |status| {
            for trial in &mut status.state.trials {
                trial.causes.truncate(1);
                trial.slow_gpus.clear();
                trial.cpu_shortage = trial.cpu_shortage.as_deref().map(|text| cut(text, SHORT));
            }
        },
        |status| {
            if let Some(comparison) = &mut status.state.comparison {
                comparison.differs.truncate(2);
            }
        },
        // It follows from the spec and the trial's number.
        |status| {
            for trial in &mut status.state.trials {
                trial.seed = None;
            }
        },
        |status| status.diagnosis.truncate(SHOWN),
        // The last phases: what a pass needs of the timeline is when the current one began.
        |status| {
            let timeline = &mut status.state.timeline;
            timeline.drain(..timeline.len().saturating_sub(4));
        },
        // The saved results have these numbers, and nothing is decided by them.
        |status| {
            for trial in &mut status.state.trials {
                (trial.errors, trial.requests, trial.ttft_p99_ms) = (None, None, None);
                if !trial.margins.is_empty() {
                    trial.margin_percent = None;
                }
            }
        },
    ];
    for shorten in cuts {
        if serde_json::to_string(status).is_ok_and(|json| json.len() <= STATUS) {
            return;
        }
        shorten(status);
        publish(status);
    }
    // The operator's state still has all of them.
    drop(status.trials.drain(..status.trials.len().saturating_sub(8)));
}
