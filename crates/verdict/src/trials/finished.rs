use perfval_api::{TrialOutcome, TrialState};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// Distance (percent) beyond which an average is not near: further above counts as this much, further below is a stall or
/// a fault and no noise of an average, and is a plain miss.
pub const NEAR: f64 = 10.0;

/// One finished trial, as the rule sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Outcome of the trial.
    pub outcome: TrialOutcome,
    /// A miss that no repetition can change: a throughput gate missed by half or more with balanced workers.
    pub far: bool,
    /// Distances of the enforced averages from their gates (percent), in the order of the spec; empty where anything else
    /// made the trial a miss.
    pub margins: Vec<f64>,
}

impl Finished {
    /// A trial whose outcome these distances decide.
    pub fn from_margins(margins: Vec<f64>) -> Self {
        let missed = margins.iter().any(|margin| *margin < 0.0);
        Self {
            outcome: if missed { TrialOutcome::Miss } else { TrialOutcome::Pass },
            far: false,
            margins,
        }
    }

    /// Returns true if it missed in a way that no noise of these averages explains.
    pub(super) fn is_plain_miss(&self, near: &[usize]) -> bool {
        let is_noise = |gate: usize, margin: f64| margin >= -NEAR && near.contains(&gate);
        let missed = || self.margins.iter().enumerate().filter(|(_, margin)| **margin < 0.0);
        self.outcome == TrialOutcome::Miss
            && (missed().next().is_none() || missed().any(|(gate, margin)| !is_noise(gate, *margin)))
    }
}

/// The finished trials of a status, as the rule sees them: nothing else carries a run over a restart of the operator.
pub fn finished<'a>(trials: impl IntoIterator<Item = &'a TrialState>) -> Vec<Finished> {
    let finished = |trial: &TrialState| {
        let outcome = trial.outcome?;
        let valid = outcome != TrialOutcome::Invalid;
        Some(Finished {
            outcome,
            far: trial.far && valid,
            margins: if valid { margins(trial) } else { Vec::new() },
        })
    };
    trials.into_iter().filter_map(finished).collect()
}

/// The finished trials that are no soak.
pub(super) fn deciding(trials: &[TrialState]) -> Vec<Finished> {
    finished(trials.iter().filter(|trial| !trial.soak))
}

/// Distances of a trial; that of the only gate stands alone.
fn margins(trial: &TrialState) -> Vec<f64> {
    let texts = match trial.margins.as_slice() {
        [] => trial.margin_percent.as_slice(),
        several => several,
    };
    let number = |text: &String| text.parse::<Decimal>().ok()?.to_f64();
    let read: Option<Vec<f64>> = texts.iter().map(number).collect();
    read.unwrap_or_default()
}

/// Number of trials with this outcome.
pub(super) fn count(finished: &[Finished], outcome: TrialOutcome) -> usize {
    finished.iter().filter(|trial| trial.outcome == outcome).count()
}
