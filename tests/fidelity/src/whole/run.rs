//! One run: trials until the rule has decided, as the operator plays them, or saved trials judged again.

use chrono::DateTime;
use perfval_api::{
    EarlierRun, Environment, PerfValidationSpec, PerfValidationStatus, RunStatus, TrialOutcome, TrialState, Verdict,
};
use perfval_verdict::close::close;
use perfval_verdict::conclusion::conclude;
use perfval_verdict::frame::TrialRecord;
use perfval_verdict::gate::Share;
use perfval_verdict::norms::Norms;
use perfval_verdict::rejudge::rejudge;
use perfval_verdict::saved::SavedRun;
use perfval_verdict::trial::{Evidence, judge};
use perfval_verdict::trials::{Ruling, soak_is_next};

/// End of a run.
pub struct Ended {
    pub verdict: Verdict,
    pub status: PerfValidationStatus,
}

/// Plays a run of trials that come one after the other.
pub fn play(spec: &PerfValidationSpec, gpus: i64, next: impl FnMut() -> TrialRecord) -> Ended {
    play_after(&[], spec, gpus, next)
}

/// The same after earlier runs of the same environment, the newest first.
pub fn play_after(
    earlier: &[EarlierRun],
    spec: &PerfValidationSpec,
    gpus: i64,
    mut next: impl FnMut() -> TrialRecord,
) -> Ended {
    let known = Some("known".to_owned());
    let mut status = PerfValidationStatus {
        run: Some(RunStatus::default()),
        ..PerfValidationStatus::default()
    };
    status.state.history = earlier.to_vec();
    status.state.environment = Some(Environment {
        model: "m".into(),
        image: "i:1".into(),
        image_digest: known.clone(),
        settings: known.clone(),
        gpu_product: known.clone(),
        gpus: Some(gpus),
        gpu_driver: known.clone(),
        aiperf: known,
        ..Environment::default()
    });
    for number in 1.. {
        status.state.trials.push(TrialState {
            number,
            soak: soak_is_next(spec, &status.state.trials),
            ..TrialState::default()
        });
        let record = next();
        let evidence = Evidence::new(&record, Share { gpus, node_gpus: gpus });
        let judged = judge(evidence, spec);
        if close(spec, &mut status, number, &judged, DateTime::UNIX_EPOCH) != Ruling::Continue {
            break;
        }
    }
    let (verdict, _) = conclude(spec, &status).expect("a verdict");
    Ended { verdict, status }
}

/// Judges a run of other gates again, which took as many trials as a run may take. A run that needs more is measured anew,
/// so nothing is decided.
pub fn play_again(spec: &PerfValidationSpec, mut next: impl FnMut() -> TrialRecord) -> Ended {
    let numbers = || 1..=i64::from(spec.trials.max);
    let trial = |number| TrialState {
        number,
        outcome: Some(TrialOutcome::Pass),
        ..TrialState::default()
    };
    let saved = SavedRun {
        trials: numbers().map(trial).collect(),
        records: numbers().map(|number| (number, next())).collect(),
        ..SavedRun::default()
    };
    let mut status = PerfValidationStatus::default();
    let judged = rejudge(spec, &mut status, &saved, &Norms::default(), DateTime::UNIX_EPOCH);
    let verdict = judged.map_or(Verdict::Inconclusive, |(verdict, _)| verdict);
    Ended { verdict, status }
}
