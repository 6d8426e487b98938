//! Recorded trials and saved runs judged without a cluster, by the very functions that judge them in one.

use chrono::{DateTime, Utc};
use perfval_api::{
    Finding, GateMode, OperatorState, PerfValidation, PerfValidationSpec, PerfValidationStatus, PlacementStatus,
    Reason, TrialOutcome, TrialState, Verdict, Why, WorkerLoss,
};

use crate::close::close;
use crate::conclusion;
use crate::diagnosis::cause::Cause;
use crate::gate::{Share, nothing_to_judge};
use crate::norms::Norms;
use crate::rejudge::judge_again;
use crate::saved::SavedRun;
use crate::trial::{self, Evidence, JudgedTrial};
use crate::trials::{self, Ruling};

/// Result of the trials.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Verdict that the run would have reached.
    pub verdict: Verdict,
    /// Its reason.
    pub reason: Reason,
    /// The message of the status.
    pub message: String,
    /// True if the trial rule had decided; if not, a run would continue with another trial.
    pub decided: bool,
    /// The trials that the rule needed, in order; those after its decision are not judged.
    pub trials: Vec<JudgedTrial>,
    /// The status as the run would have written it: trials, gates, headline numbers and diagnosis.
    pub status: PerfValidationStatus,
}

/// Judges recorded trials in order, until the rule of the spec decides or there are no more. `share` replaces that of each
/// trial: gates that scale need one, and without one they apply unscaled. Times in the answer are `now`.
pub fn judge(
    object: &PerfValidation,
    share: Option<Share>,
    recorded: &[Evidence<'_>],
    now: DateTime<Utc>,
) -> Judgement {
    let spec = &object.spec;
    let mut status = PerfValidationStatus {
        placement: share.map(|share| PlacementStatus {
            node: "an unnamed node".to_owned(),
            gpus: share.gpus,
            node_gpus: share.node_gpus,
            ..PlacementStatus::default()
        }),
        ..PerfValidationStatus::default()
    };
    let share = share.unwrap_or(Share::UNSCALED);
    let mut judged = Vec::new();
    for (number, trial) in (1..).zip(recorded) {
        if trials::ruling(spec, &status.state.trials) != Ruling::Continue {
            break;
        }
        let soak = trials::soak_is_next(spec, &status.state.trials);
        status.state.trials.push(TrialState {
            number,
            soak,
            started_at: now,
            ..TrialState::default()
        });
        let trial = trial::judge(Evidence { share, ..*trial }, spec);
        close(spec, &mut status, number, &trial, now);
        judged.push(trial);
    }
    let conclusion = conclusion::conclude(spec, &status);
    judgement(spec, status, judged, conclusion, |status| {
        without_decision(status, needs_more(spec, status, "given", "give more exports"))
    })
}

/// Judges the saved trials of a run by this manifest, as the operator does after a change of the gates. `run` is the status
/// that was saved with them: its placement and workers count, and so do the losses of workers that only the cluster showed.
/// Fails with the reason if the results do not suffice.
pub fn judge_run(
    object: &PerfValidation,
    run: &PerfValidationStatus,
    saved: &SavedRun,
    now: DateTime<Utc>,
) -> Result<Judgement, String> {
    let spec = &object.spec;
    if let Some(gate) = compared_with_a_reference(spec, run) {
        return Err(format!(
            "the run compared gate {gate} with earlier runs or a baseline, which its results do not contain: leave the \
             gate out, or give it mode Warn"
        ));
    }
    let placed = PerfValidationStatus {
        placement: run.placement.clone(),
        state: Box::new(OperatorState {
            plan: run.state.plan.clone(),
            environment: run.state.environment.clone(),
            worker_pods: run.state.worker_pods.clone(),
            ..OperatorState::default()
        }),
        ..PerfValidationStatus::default()
    };
    let again = judge_again(spec, &placed, saved, &Norms::default(), now)?;
    let undecided = |status: &PerfValidationStatus| undecided_run(spec, status);
    Ok(judgement(spec, again.status, again.trials, again.conclusion, undecided))
}

/// Name of an enforced gate that the run compared with earlier runs or a baseline. Its results contain neither.
fn compared_with_a_reference<'a>(spec: &'a PerfValidationSpec, run: &PerfValidationStatus) -> Option<&'a str> {
    let mut names = spec
        .gates
        .iter()
        .filter(|gate| gate.mode == GateMode::Enforce && gate.metric.needs_a_reference())
        .map(|gate| gate.name.as_str());
    names.find(|name| {
        let mut judged = run.gates.iter();
        judged.any(|gate| gate.name == *name && gate.observed.is_some())
    })
}

/// Adds a verdict to judged trials. `undecided` gives the one of trials that do not decide.
fn judgement(
    spec: &PerfValidationSpec,
    status: PerfValidationStatus,
    trials: Vec<JudgedTrial>,
    conclusion: Option<(Verdict, Why)>,
    undecided: impl FnOnce(&PerfValidationStatus) -> (Verdict, Why),
) -> Judgement {
    let skipped =
        nothing_to_judge(&spec.gates).map(|nothing| (Verdict::Skipped, Why::new(Reason::NothingToJudge, nothing)));
    let decision = skipped.or(conclusion);
    let decided = decision.is_some();
    let (verdict, why) = decision.unwrap_or_else(|| undecided(&status));
    Judgement {
        verdict,
        reason: why.reason,
        // Without GPUs the text before the colon is empty.
        message: why.message.trim_start_matches(": ").to_owned(),
        decided,
        trials,
        status,
    }
}

/// Verdict of a saved run whose rule needs more trials. A crash fails the run, however more trials would end.
fn undecided_run(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> (Verdict, Why) {
    let message = needs_more(spec, status, "saved", "run it again to measure more");
    if conclusion::worst_loss(status) != Some(WorkerLoss::Crashed) {
        return without_decision(status, message);
    }
    let crash = conclusion::finding_of(status, Cause::WorkerCrashed.as_str());
    (
        Verdict::Failed,
        Why::new(Reason::WorkerCrashed, with_cause(crash, message)),
    )
}

/// A message behind the cause, if there is one.
fn with_cause(cause: Option<&Finding>, message: String) -> String {
    match cause {
        Some(finding) => format!("{}: {}; {message}", finding.cause, finding.evidence),
        None => message,
    }
}

/// Number of trials, the rule that asks for more, and the remedy.
fn needs_more(spec: &PerfValidationSpec, status: &PerfValidationStatus, origin: &str, remedy: &str) -> String {
    let trials = match status.state.trials.len() {
        0 => "no trial was".to_owned(),
        1 => "1 trial was".to_owned(),
        count => format!("{count} trials were"),
    };
    format!(
        "{trials} {origin}, and the rule {:?} (max {}) asks for another one: {remedy}, or judge one trial alone with trials.rule \
         Single",
        spec.trials.rule, spec.trials.max
    )
}

/// Verdict of fewer trials than the rule needs: Inconclusive, or that on trials that measured nothing.
fn without_decision(status: &PerfValidationStatus, message: String) -> (Verdict, Why) {
    let trials = &status.state.trials;
    let measured = trials.iter().any(|trial| trial.outcome != Some(TrialOutcome::Invalid));
    if measured {
        return (Verdict::Inconclusive, Why::new(Reason::TrialsDisagree, message));
    }
    let (verdict, reason) = conclusion::unmeasurable(trials);
    (verdict, Why::new(reason, with_cause(status.diagnosis.first(), message)))
}
