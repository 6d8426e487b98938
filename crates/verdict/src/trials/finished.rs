use perfval_api::{TrialOutcome, TrialStatus};

use super::averages;

/// One finished trial, as the rule sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// What it showed.
    pub outcome: TrialOutcome,
    /// A miss that no repetition can change: an enforced gate missed by half or more with balanced workers.
    pub far: bool,
    /// Distance of the worst enforced average from its gate (percent), where nothing else made it a miss.
    pub margin: Option<f64>,
}

impl Finished {
    /// Whether an average lies so near its gate that its side of it says little.
    pub(super) fn is_near(self) -> bool {
        self.margin.is_some_and(|margin| margin.abs() <= averages::NEAR)
    }

    /// Whether its distance is noise around a gate, or better.
    pub(super) fn is_noise(self) -> bool {
        self.margin.is_some_and(|margin| margin >= -averages::NEAR)
    }
}

/// The finished trials of a status, as the rule sees them: nothing else carries a run over a restart of the operator.
pub fn finished(trials: &[TrialStatus]) -> Vec<Finished> {
    let finished = |trial: &TrialStatus| {
        Some(Finished {
            outcome: trial.outcome?,
            far: trial.far,
            margin: trial.margin_percent.as_deref().and_then(averages::read),
        })
    };
    trials.iter().filter_map(finished).collect()
}

/// How many of them ended so.
pub(super) fn count(finished: &[Finished], outcome: TrialOutcome) -> usize {
    finished.iter().filter(|trial| trial.outcome == outcome).count()
}

/// Whether more trials are near than clearly passed. Between clear passes a near one is a stall that ended there.
pub(super) fn most_are_near(finished: &[Finished]) -> bool {
    let (near, plain): (Vec<Finished>, Vec<Finished>) = finished.iter().copied().partition(|trial| trial.is_near());
    near.len() > count(&plain, TrialOutcome::Pass)
}
