//! Evaluating: the verdict is computed and everything that supports it is saved, before anything is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use perfval_api::{GateResult, PerfValidationStatus, Reason, ResultsRef, TrialOutcome, TrialStatus, Verdict};

use super::benchmarking::finished;
use crate::decision::Effect;
use crate::frame::{self, Framed};
use crate::pass::{Pass, Step};
use crate::seen::Seen;
use crate::status::Why;
use crate::trials::{self, Ruling};
use crate::{build, names};

/// The ConfigMap is not watched: it is looked for right after it was written.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// One text from the first pass to the last: the saved summary holds the status, and must not differ between passes.
pub(crate) const SAVING: &str = "the trials decide; saving the results";

pub(crate) fn step(pass: &mut Pass<'_>) -> Step {
    pass.look_again_in(LOOK_AGAIN);
    let payloads = match payloads(pass) {
        Ok(payloads) => payloads,
        Err(unread) => {
            pass.look_again_in(Duration::from_secs(2));
            return Step::wait(Reason::Running, format!("saving the results: {unread}"));
        }
    };
    let results = build::results(pass.run, &payloads);
    let sha256 = build::results_sha256(&results);
    match &pass.seen.results {
        Seen::Present(Some(saved)) if *saved == sha256 => {
            let name = names::results(pass.run.name(), &pass.run.id());
            pass.status.results_ref = Some(ResultsRef { name, sha256 });
            conclude(pass)
        }
        Seen::Present(_) | Seen::Absent => {
            pass.act(Effect::SaveResults(Box::new(results)));
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
pub(crate) fn end_without_results(pass: &Pass<'_>, why: &Why) -> Step {
    match conclude(pass) {
        Step::End(verdict, reached) => Step::End(
            verdict,
            Why {
                message: format!("{} (full results not saved: {})", reached.message, why.message),
                ..reached
            },
        ),
        other => other,
    }
}

fn conclude(pass: &Pass<'_>) -> Step {
    let status = &pass.status;
    let (verdict, reason) = match trials::rule(&pass.run.spec().trials, &finished(&status.trials)) {
        Ruling::Pass => (Verdict::Passed, Reason::GatesMet),
        Ruling::Fail => (Verdict::Failed, why_failed(status)),
        Ruling::Undecided | Ruling::Continue => (Verdict::Inconclusive, Reason::TrialsDisagree),
        Ruling::Unmeasurable => unmeasurable(&status.trials),
    };
    Step::End(verdict, Why::new(reason, summary(pass, verdict)))
}

/// Errors outrank gates: numbers of the successes alone say little.
fn why_failed(status: &PerfValidationStatus) -> Reason {
    let last = status
        .trials
        .iter()
        .rev()
        .find(|trial| trial.outcome == Some(TrialOutcome::Miss));
    let errors = last.is_some_and(|trial| trial.causes.iter().any(|cause| cause == Reason::RequestErrors.as_str()));
    if errors {
        Reason::RequestErrors
    } else {
        Reason::GatesMissed
    }
}

/// Two invalid trials in a row: could not be measured, or was measured and is not to be trusted.
fn unmeasurable(trials: &[TrialStatus]) -> (Verdict, Reason) {
    let cause = trials
        .last()
        .and_then(|trial| trial.causes.first())
        .map_or("", String::as_str);
    let untrusted = [
        Reason::GeneratorStarved,
        Reason::WorkerRestarted,
        Reason::GpuChanged,
        Reason::UnevenService,
    ];
    if let Some(reason) = untrusted.into_iter().find(|reason| reason.as_str() == cause) {
        return (Verdict::Inconclusive, reason);
    }
    let unmeasured = [
        Reason::ResultIncomplete,
        Reason::MetricMissing,
        Reason::BenchmarkTimeout,
    ];
    let reason = unmeasured.into_iter().find(|reason| reason.as_str() == cause);
    (Verdict::Error, reason.unwrap_or(Reason::BenchmarkFailed))
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
    let cause = (verdict != Verdict::Passed).then(|| status.diagnosis.first()).flatten();
    let cause = cause.map(|finding| format!("{}: {}", finding.cause, finding.evidence));
    let gates = Some(gates.join(", ")).filter(|gates| !gates.is_empty());
    let parts: Vec<String> = gates.into_iter().chain([trials]).chain(cause).collect();
    format!("{place}: {}", parts.join("; "))
}
