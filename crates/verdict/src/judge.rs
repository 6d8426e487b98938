//! Recorded trials judged without a cluster, by the very functions that judge them in one.

use chrono::{DateTime, Utc};
use perfval_api::{
    DeviceStatus, PerfValidation, PerfValidationSpec, PerfValidationStatus, PlacementStatus, Reason, TrialOutcome,
    TrialState, Verdict, Why, WorkerPod,
};

use crate::close::close;
use crate::conclusion;
use crate::frame::TrialRecord;
use crate::gate::{Share, nothing_to_judge};
use crate::trial::{self, Evidence, JudgedTrial};
use crate::trials::{self, Ruling};

/// A trial as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Record that the runner handed over.
    pub record: TrialRecord,
    /// The workers when the trial began; empty where they were not observed: then nothing is known of restarts.
    pub before: Vec<WorkerPod>,
    /// The workers when it ended.
    pub after: Vec<WorkerPod>,
    /// The GPUs that the workers had, where they are known.
    pub devices: Vec<DeviceStatus>,
    /// Their product name, where it is known.
    pub product: Option<String>,
}

impl From<TrialRecord> for Recorded {
    fn from(record: TrialRecord) -> Self {
        Self {
            record,
            before: Vec::new(),
            after: Vec::new(),
            devices: Vec::new(),
            product: None,
        }
    }
}

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

/// Judges recorded trials in order, until the rule of the spec decides or there are no more. Gates that scale need a
/// share; without one they apply unscaled. Times in the answer are `now`.
pub fn judge(object: &PerfValidation, share: Option<Share>, recorded: &[Recorded], now: DateTime<Utc>) -> Judgement {
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
    let share = share.unwrap_or(Share { gpus: 1, node_gpus: 1 });
    let mut judged = Vec::new();
    for (number, trial) in (1..).zip(recorded) {
        if ruling(spec, &status) != Ruling::Continue {
            break;
        }
        let soak = trials::soak_is_next(spec, &status.state.trials);
        status.state.trials.push(TrialState {
            number,
            soak,
            started_at: now,
            ..TrialState::default()
        });
        let evidence = Evidence {
            record: &trial.record,
            before: &trial.before,
            after: &trial.after,
            share,
            devices: &trial.devices,
            product: trial.product.as_deref(),
            norm: None,
        };
        let trial = trial::judge(evidence, spec);
        close(spec, &mut status, number, &trial, now);
        judged.push(trial);
    }
    let nothing = nothing_to_judge(&spec.gates);
    let decided = nothing.is_some() || ruling(spec, &status) != Ruling::Continue;
    let (verdict, why) = match nothing {
        Some(nothing) => (Verdict::Skipped, Why::new(Reason::NothingToJudge, nothing)),
        None => conclusion::conclude(spec, &status).unwrap_or_else(|| undecided(spec, &status)),
    };
    Judgement {
        verdict,
        reason: why.reason,
        // Without GPUs the text before the colon is empty.
        message: why.message.trim_start_matches(": ").to_owned(),
        decided,
        trials: judged,
        status,
    }
}

fn ruling(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Ruling {
    trials::ruling(spec, &status.state.trials)
}

/// Verdict of fewer trials than the rule needs: not enough to decide, or no measurement at all.
fn undecided(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> (Verdict, Why) {
    let trials = &status.state.trials;
    let message = format!(
        "{} given, and the rule {:?} (max {}) asks for another one: give more exports, or judge one trial alone with trials.rule Single",
        match trials.len() {
            0 => "no trial was".to_owned(),
            1 => "1 trial was".to_owned(),
            count => format!("{count} trials were"),
        },
        spec.trials.rule,
        spec.trials.max
    );
    let measured = trials.iter().any(|trial| trial.outcome != Some(TrialOutcome::Invalid));
    if measured {
        return (Verdict::Inconclusive, Why::new(Reason::TrialsDisagree, message));
    }
    let (verdict, reason) = conclusion::unmeasurable(trials);
    let evidence = status.diagnosis.first().map_or(String::new(), |finding| {
        format!("{}: {}; ", finding.cause, finding.evidence)
    });
    (verdict, Why::new(reason, format!("{evidence}{message}")))
}
