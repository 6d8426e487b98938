//! Closing a trial: what it showed is written into the status, and the rule says whether another one is needed.

use chrono::{DateTime, Utc};
use perfval_api::{Finding, PerfValidationSpec, PerfValidationStatus, TrialOutcome};

use crate::diagnosis::cause::{Cause, SHOWN};
use crate::gate::show;
use crate::history;
use crate::trial::JudgedTrial;
use crate::trials::{self, Ruling};

/// Findings that status keeps.
const FINDINGS: usize = 16;

/// Writes a judged trial into the status. A trial that proves nothing leaves the numbers of the one before it.
pub fn close(
    spec: &PerfValidationSpec,
    status: &mut PerfValidationStatus,
    number: i64,
    judged: &JudgedTrial,
    now: DateTime<Utc>,
) -> Ruling {
    if let Some(open) = status.trials.iter_mut().find(|trial| trial.number == number) {
        open.outcome = Some(judged.outcome);
        open.throughput.clone_from(&judged.metrics.output_token_throughput);
        open.ttft_p99_ms.clone_from(&judged.metrics.ttft_p99_ms);
        open.errors = judged.requests.map(|(errors, _)| errors);
        open.requests = judged.requests.map(|(_, all)| all);
        open.completed_at = Some(now);
        open.causes = judged
            .findings
            .iter()
            .map(|(cause, _)| cause.as_str().to_owned())
            .collect();
        open.far = judged.far;
        open.slow_gpus.clone_from(&judged.slow_gpus);
        open.margin_percent = judged.margin.map(show);
        // A worker may have been lost since the trial before.
        open.worker_loss = open.worker_loss.max(judged.worker_loss);
    }
    status.progress = None;
    if judged.outcome != TrialOutcome::Invalid {
        status.metrics = Some(judged.metrics.clone());
        status.gates.clone_from(&judged.gates);
        status.workers.clone_from(&judged.workers);
    }
    if let (Some(version), Some(environment)) = (&judged.aiperf_version, &mut status.environment) {
        environment.aiperf = Some(version.clone());
    }
    for (cause, finding) in &judged.findings {
        let mut finding = finding.clone();
        if let (Cause::SlowWorker, Some(before)) = (cause, history::of_slow_gpus(&status.history, &judged.slow_gpus)) {
            finding = cause.finding(format!("{}; {before}", finding.evidence));
        }
        keep(&mut status.diagnosis, finding);
    }
    if let Some(why) = &judged.gpus_unread {
        keep(&mut status.diagnosis, Cause::GPUsNotSampled.finding(why.as_str()));
    }
    keep_the_most_telling(&mut status.diagnosis);
    status.detectable_loss_percent = trials::detectable_loss(spec, status).map(|loss| format!("{loss:.1}"));
    trials::ruling(spec, &status.trials)
}

/// Keeps one finding per cause: the newest evidence of it.
pub fn keep(known: &mut Vec<Finding>, finding: Finding) {
    match known.iter().position(|known| known.cause == finding.cause) {
        Some(at) => known[at] = finding,
        None if known.len() < FINDINGS => known.push(finding),
        None => {}
    }
}

fn keep_the_most_telling(diagnosis: &mut Vec<Finding>) {
    diagnosis.sort_by_key(|finding| Cause::rank(&finding.cause));
    diagnosis.truncate(SHOWN);
}
