//! Evaluating: the verdict is computed and everything that supports it is saved, before anything is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use perfval_api::{
    Finding, GateResult, PerfValidationStatus, Phase, Reason, ResultsRef, TrialOutcome, TrialStatus, Verdict,
};

use super::benchmarking::finished;
use crate::decision::Effect;
use crate::diagnosis::cause::Cause;
use crate::frame::{self, Framed};
use crate::pass::{Pass, Step};
use crate::seen::Seen;
use crate::status::Why;
use crate::trials::{self, Ruling};
use crate::{build, names};

/// The ConfigMap is not watched: it is looked for right after it was written.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Pause after a read that failed: each reads every trial's log again.
const READ_AGAIN: Duration = Duration::from_secs(2);
/// One text from the first pass to the last: the saved summary holds the status, and must not differ between passes.
pub(crate) const SAVING: &str = "the trials decide; saving the results";

pub(crate) fn step(pass: &mut Pass<'_>) -> Step {
    pass.look_again_in(READ_AGAIN);
    let (verdict, why) = match conclude(pass) {
        Ok(conclusion) => conclusion,
        Err(step) => return step,
    };
    let payloads = match payloads(pass) {
        Ok(payloads) => payloads,
        Err(unread) => return Step::wait(Reason::Running, format!("saving the results: {unread}")),
    };
    let results = build::results(pass.run, verdict, &why, &payloads);
    let sha256 = build::results_sha256(&results);
    match &pass.seen.results {
        Seen::Present(Some(saved)) if *saved == sha256 => {
            let name = names::results(pass.run.name(), &pass.run.id());
            pass.status.results_ref = Some(ResultsRef { name, sha256 });
            Step::End(verdict, why)
        }
        Seen::Present(_) | Seen::Absent => {
            pass.act(Effect::SaveResults(Box::new(results)));
            pass.look_again_in(LOOK_AGAIN);
            Step::work(Reason::Running, SAVING)
        }
        unread => Step::wait(
            Reason::Running,
            format!("saving the results: {}", unread.unknown().unwrap_or_default()),
        ),
    }
}

/// The framed output of every trial that left one. A log that cannot be read now may be readable in a moment; one that
/// is gone, or holds no frame, is left out.
fn payloads(pass: &Pass<'_>) -> Result<BTreeMap<i64, String>, String> {
    let mut payloads = BTreeMap::new();
    for trial in &pass.status.trials {
        let nonce = names::nonce(pass.run.uid(), &pass.run.id(), trial.number);
        match pass.seen.trial_logs.get(&trial.number) {
            Some(Seen::Present(log)) => {
                if let Framed::Complete(payload) = frame::find(log, &nonce)
                    && let Ok(json) = serde_json::to_string(&payload)
                {
                    payloads.insert(trial.number, json);
                }
            }
            Some(Seen::Unknown(why)) => return Err(format!("log of trial {}: {why}", trial.number)),
            Some(Seen::Absent | Seen::NotAsked) | None => {}
        }
    }
    Ok(payloads)
}

/// The time limit passed: the numbers are in the status, so the verdict stands without the full exports.
pub(crate) fn end_without_results(pass: &Pass<'_>, waited: &Why) -> Step {
    match conclude(pass) {
        Ok((verdict, why)) => {
            let message = format!("{} (full results not saved: {})", why.message, waited.message);
            Step::End(verdict, Why { message, ..why })
        }
        Err(step) => step,
    }
}

/// The verdict of the trials; `Err` if there is none any more, because the spec that they were made for changed.
fn conclude(pass: &Pass<'_>) -> Result<(Verdict, Why), Step> {
    let status = &pass.status;
    if let Some(failure) = status.run.as_ref().and_then(|run| run.failure.as_ref()) {
        return Ok((
            Verdict::Error,
            Why::new(Reason::from_word(&failure.reason), failure.message.clone()),
        ));
    }
    let (verdict, reason) = match trials::rule(&pass.run.spec().trials, &finished(&status.trials)) {
        Ruling::Pass => (Verdict::Passed, Reason::GatesMet),
        Ruling::Fail => (Verdict::Failed, why_failed(status)),
        Ruling::Undecided => (Verdict::Inconclusive, Reason::TrialsDisagree),
        Ruling::Continue => {
            let why = "the spec changed before the verdict was saved: this run stops, a new one follows";
            return Err(Step::go(Phase::CleaningUp, Reason::SpecChanged, why));
        }
        Ruling::Unmeasurable => unmeasurable(&status.trials),
    };
    Ok((verdict, Why::new(reason, summary(pass, verdict))))
}

/// Errors outrank gates: numbers of the successes alone say little.
fn why_failed(status: &PerfValidationStatus) -> Reason {
    let missed = status
        .trials
        .iter()
        .rev()
        .find(|trial| trial.outcome == Some(TrialOutcome::Miss));
    let reasons = missed.into_iter().flat_map(reasons);
    reasons
        .into_iter()
        .find(|reason| *reason == Reason::RequestErrors)
        .unwrap_or(Reason::GatesMissed)
}

/// Two invalid trials in a row: could not be measured, or was measured and is not to be trusted.
fn unmeasurable(trials: &[TrialStatus]) -> (Verdict, Reason) {
    match trials.last().and_then(|last| reasons(last).next()) {
        Some(
            untrusted @ (Reason::GeneratorStarved
            | Reason::WorkerRestarted
            | Reason::GPUChanged
            | Reason::UnevenService),
        ) => (Verdict::Inconclusive, untrusted),
        unmeasured => (Verdict::Error, unmeasured.unwrap_or(Reason::BenchmarkFailed)),
    }
}

fn reasons(trial: &TrialStatus) -> impl Iterator<Item = Reason> {
    trial
        .causes
        .iter()
        .filter_map(|cause| Cause::from_word(cause)?.reason())
}

/// One line: where, how many GPUs, the gates with their effective thresholds, the trials.
fn summary(pass: &Pass<'_>, verdict: Verdict) -> String {
    let status = &pass.status;
    let place = status.placement.as_ref().map_or(String::new(), |plan| {
        format!("{}/{} GPUs on {}", plan.gpus, plan.node_gpus, plan.node)
    });
    let gates: Vec<String> = pass
        .run
        .spec()
        .gates
        .iter()
        .filter_map(|gate| {
            let judged = status.gates.iter().find(|judged| judged.name == gate.name)?;
            let observed = judged.observed.as_deref().unwrap_or("nothing");
            let mark = if judged.result == GateResult::Missed {
                " MISSED"
            } else {
                ""
            };
            let (unit, sign) = (gate.metric.unit(), gate.operator.sign());
            Some(format!(
                "{} {observed} {unit} ({sign} {}){mark}",
                gate.name, judged.effective
            ))
        })
        .collect();
    let counted = |outcome| {
        status
            .trials
            .iter()
            .filter(|trial| trial.outcome == Some(outcome))
            .count()
    };
    let trials = format!(
        "trials: {} passed, {} missed, {} invalid",
        counted(TrialOutcome::Pass),
        counted(TrialOutcome::Miss),
        counted(TrialOutcome::Invalid)
    );
    let cause = (verdict != Verdict::Passed).then(|| deciding_finding(status)).flatten();
    let cause = cause.map(|finding| format!("{}: {}", finding.cause, finding.evidence));
    let gates = Some(gates.join(", ")).filter(|gates| !gates.is_empty());
    let parts: Vec<String> = gates.into_iter().chain([trials]).chain(cause).collect();
    format!("{place}: {}", parts.join("; "))
}

/// The finding that explains the last trial.
fn deciding_finding(status: &PerfValidationStatus) -> Option<&Finding> {
    let cause = status.trials.last()?.causes.first()?;
    status.diagnosis.iter().find(|finding| finding.cause == *cause)
}
