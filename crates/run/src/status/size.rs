//! A status of bounded size.

use perfval_api::text::cut;
use perfval_api::{PerfValidationStatus, Phase};
use perfval_verdict::diagnosis::cause::SHOWN;

use super::publish;

/// Largest status (bytes); etcd and every watcher carry it on each change.
const STATUS: usize = 31 * 1024;

/// Keeps a status within its size in every case. Explanations go before data that later passes need. The results
/// ConfigMap keeps each trial's record.
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
        // A pass needs the start of the current phase. A policy counts GPU time from the last deployment.
        |status| {
            let timeline = &mut status.state.timeline;
            let last = timeline.split_off(timeline.len().saturating_sub(4));
            timeline.retain(|entry| entry.phase == Phase::Deploying);
            timeline.drain(..timeline.len().saturating_sub(1));
            timeline.extend(last);
        },
        // Each trial's record has these numbers. Failed requests stay, because they decide which logs are saved.
        |status| {
            for trial in &mut status.state.trials {
                trial.errors = trial.errors.filter(|errors| *errors > 0);
                trial.requests = trial.requests.filter(|_| trial.errors.is_some());
                trial.ttft_p99_ms = None;
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
