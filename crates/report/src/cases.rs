//! A run as test cases: its verdict, one for each gate, one for each trial.

use chrono::{DateTime, Utc};
use perfval_api::{Finding, Gate, GateMode, GateResult, GateStatus, TrialOutcome, TrialState, Verdict};

use crate::facts::Facts;
use crate::words::{self, recorded};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseState {
    Passed,
    Failed,
    /// Could not be measured, or not trusted.
    Error,
    /// Nothing that counts: a warning, or a miss that the trial rule absorbed.
    Skipped,
    /// Not known yet.
    Pending,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// `verdict`, `gates` or `trials`.
    pub suite: &'static str,
    pub name: String,
    pub state: CaseState,
    /// The word of the status.
    pub word: String,
    /// Reason in one line; empty for a case that passed.
    pub message: String,
    /// Everything worth reading, line by line.
    pub details: String,
    pub started: Option<DateTime<Utc>>,
    pub ended: Option<DateTime<Utc>>,
}

/// The suites, in order.
pub(crate) const SUITES: [&str; 3] = ["verdict", "gates", "trials"];

/// The cases of a run. One has failed, or is an error, exactly if the run has a verdict that is neither Passed nor Skipped: a
/// pipeline that counts failures must not contradict the verdict.
pub(crate) fn cases(facts: &Facts) -> Vec<Case> {
    let status = &facts.status;
    let mut cases = vec![verdict_case(facts)];
    cases.extend(status.gates.iter().map(|gate| gate_case(facts, gate)));
    cases.extend(status.state.trials.iter().map(|trial| trial_case(facts, trial)));
    if matches!(status.verdict, None | Some(Verdict::Passed | Verdict::Skipped)) {
        for case in &mut cases {
            if matches!(case.state, CaseState::Failed | CaseState::Error) {
                case.state = CaseState::Skipped;
            }
        }
    }
    cases
}

fn verdict_case(facts: &Facts) -> Case {
    let status = &facts.status;
    let run = status.run.as_ref();
    let message = status.message.clone().unwrap_or_default();
    let mut details = vec![message.clone()];
    details.extend(status.diagnosis.iter().map(finding));
    details.extend(facts.notes.iter().cloned());
    Case {
        suite: SUITES[0],
        name: "verdict".to_owned(),
        state: match status.verdict {
            Some(Verdict::Passed) => CaseState::Passed,
            Some(Verdict::Failed) => CaseState::Failed,
            Some(Verdict::Inconclusive | Verdict::Error) => CaseState::Error,
            Some(Verdict::Skipped) => CaseState::Skipped,
            None => CaseState::Pending,
        },
        word: words::verdict(facts),
        message,
        details: details.join("\n"),
        started: run.and_then(|run| recorded(run.started_at)),
        ended: run.and_then(|run| run.completed_at),
    }
}

/// A finding in one line.
pub(crate) fn finding(finding: &Finding) -> String {
    format!(
        "{} ({:?}): {}; {}",
        finding.cause, finding.severity, finding.evidence, finding.remedy
    )
}

fn gate_case(facts: &Facts, gate: &GateStatus) -> Case {
    // Without earlier runs or an approved baseline a trial counts without the gate.
    let voids = |gate: &Gate| gate.mode == GateMode::Enforce && !gate.metric.needs_a_reference();
    let is_error = facts
        .gate(&gate.name)
        .map_or(facts.status.verdict != Some(Verdict::Passed), voids);
    let text = words::gate(facts, gate);
    Case {
        suite: SUITES[1],
        name: gate.name.clone(),
        state: match gate.result {
            GateResult::Met => CaseState::Passed,
            GateResult::Missed => CaseState::Failed,
            GateResult::Unmeasured if is_error => CaseState::Error,
            GateResult::Warned | GateResult::Unmeasured => CaseState::Skipped,
        },
        word: format!("{:?}", gate.result),
        message: match gate.result {
            GateResult::Met => String::new(),
            GateResult::Warned => format!("only reported (mode Warn): {text}"),
            GateResult::Missed | GateResult::Unmeasured => text.clone(),
        },
        details: text,
        started: None,
        ended: None,
    }
}

fn trial_case(facts: &Facts, trial: &TrialState) -> Case {
    let text = words::trial(trial);
    let causes = |finding: &&Finding| trial.causes.contains(&finding.cause);
    let mut details = vec![text.clone()];
    details.extend(facts.status.diagnosis.iter().filter(causes).map(finding));
    Case {
        suite: SUITES[2],
        name: if trial.soak {
            format!("trial {} (soak)", trial.number)
        } else {
            format!("trial {}", trial.number)
        },
        state: match trial.outcome {
            Some(TrialOutcome::Pass) => CaseState::Passed,
            Some(TrialOutcome::Miss) => CaseState::Failed,
            Some(TrialOutcome::Invalid) => CaseState::Error,
            None => CaseState::Pending,
        },
        word: words::outcome(trial.outcome).to_owned(),
        message: match trial.outcome {
            Some(TrialOutcome::Pass) | None => String::new(),
            Some(TrialOutcome::Miss | TrialOutcome::Invalid) => text,
        },
        details: details.join("\n"),
        started: recorded(trial.started_at),
        ended: trial.completed_at.and_then(recorded),
    }
}
