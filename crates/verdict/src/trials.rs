//! From trials to a verdict.
//!
//! `Sequential` is Wald's sequential probability ratio test on pass/miss: after each trial the likelihood of a healthy
//! deployment is weighed against that of a degraded one, and the run ends as soon as either is clear.

mod odds;

use perfval_api::{TrialOutcome, TrialRule, TrialStatus, TrialsSpec};

pub use odds::{DOCUMENTED, Odds, odds};

/// Pass rate of a healthy deployment: the worst window of the published runs passed 2 of 3 trials
/// (NVIDIA/aicr `inference-perf-fluctuation.md`), so at least 60 %.
pub const HEALTHY_PASS_RATE: f64 = 0.60;
/// Pass rate of a degraded deployment: at most one lucky trial in twenty.
pub const DEGRADED_PASS_RATE: f64 = 0.05;
/// Invalid trials in a row after which measuring is given up.
pub const INVALID_IN_A_ROW: usize = 2;
/// Trials missed by half or more, with balanced workers, after which repeating is pointless.
pub const FAR_MISSES: usize = 2;

/// What the trials so far say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Run another trial.
    Continue,
    /// Healthy.
    Pass,
    /// Degraded.
    Fail,
    /// `max` trials, and the rule cannot tell.
    Undecided,
    /// Invalid trials in a row: it cannot be measured.
    Unmeasurable,
}

/// One finished trial, as the rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What it showed.
    pub outcome: TrialOutcome,
    /// A miss that no repetition can change: an enforced gate missed by half or more with balanced workers.
    pub far: bool,
}

/// The finished trials of a status, as the rule sees them: nothing else carries a run over a restart of the operator.
pub fn finished(trials: &[TrialStatus]) -> Vec<Finished> {
    let finished = |trial: &TrialStatus| {
        Some(Finished {
            outcome: trial.outcome?,
            far: trial.far,
        })
    };
    trials.iter().filter_map(finished).collect()
}

/// Applies the rule of the spec to the finished trials, in order.
pub fn rule(spec: &TrialsSpec, finished: &[Finished]) -> Ruling {
    let invalid_at_the_end = finished
        .iter()
        .rev()
        .take_while(|trial| trial.outcome == TrialOutcome::Invalid)
        .count();
    if invalid_at_the_end >= INVALID_IN_A_ROW {
        return Ruling::Unmeasurable;
    }
    let passes = count(finished, TrialOutcome::Pass);
    let misses = count(finished, TrialOutcome::Miss);
    let max = usize::try_from(spec.max).unwrap_or(1).max(1);
    match spec.rule {
        TrialRule::Single if passes > 0 => Ruling::Pass,
        TrialRule::Single | TrialRule::All if misses > 0 => Ruling::Fail,
        TrialRule::All if passes >= max => Ruling::Pass,
        // Invalid trials prove nothing, but they end somewhere.
        TrialRule::All if finished.len() >= 2 * max => Ruling::Undecided,
        TrialRule::Single | TrialRule::All => Ruling::Continue,
        TrialRule::Sequential if finished.iter().filter(|trial| trial.far).count() >= FAR_MISSES && passes == 0 => {
            Ruling::Fail
        }
        TrialRule::Sequential => match sequential(passes, misses, spec.error_percent) {
            Ruling::Continue if finished.len() >= max => Ruling::Undecided,
            ruling => ruling,
        },
    }
}

/// Wald's test after `passes` and `misses`, with both error bounds `error_percent`.
fn sequential(passes: usize, misses: usize, error_percent: i32) -> Ruling {
    let error = f64::from(error_percent.clamp(1, 49)) / 100.0;
    let healthy_above = ((1.0 - error) / error).ln();
    let weight = |times: usize, healthy: f64, degraded: f64| {
        f64::from(u32::try_from(times).unwrap_or(u32::MAX)) * (healthy / degraded).ln()
    };
    let evidence = weight(passes, HEALTHY_PASS_RATE, DEGRADED_PASS_RATE)
        + weight(misses, 1.0 - HEALTHY_PASS_RATE, 1.0 - DEGRADED_PASS_RATE);
    if evidence >= healthy_above {
        Ruling::Pass
    } else if evidence <= -healthy_above {
        Ruling::Fail
    } else {
        Ruling::Continue
    }
}

fn count(finished: &[Finished], outcome: TrialOutcome) -> usize {
    finished.iter().filter(|trial| trial.outcome == outcome).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(rule: TrialRule, max: i32) -> TrialsSpec {
        TrialsSpec {
            rule,
            error_percent: 5,
            max,
        }
    }

    /// `P` pass, `M` miss, `F` far miss, `I` invalid.
    fn trials(letters: &str) -> Vec<Finished> {
        let outcome = |letter| match letter {
            'P' => TrialOutcome::Pass,
            'I' => TrialOutcome::Invalid,
            _ => TrialOutcome::Miss,
        };
        letters
            .chars()
            .map(|letter| Finished {
                outcome: outcome(letter),
                far: letter == 'F',
            })
            .collect()
    }

    #[test]
    fn every_rule_decides_as_documented() {
        use Ruling::{Continue, Fail, Pass, Undecided, Unmeasurable};
        use TrialRule::{All, Sequential, Single};
        let cases = [
            (Sequential, 8, "", Continue),
            (Sequential, 8, "P", Continue),
            (Sequential, 8, "PP", Pass),
            (Sequential, 8, "MMM", Continue),
            (Sequential, 8, "MMMM", Fail),
            (Sequential, 8, "PM", Continue),
            (Sequential, 8, "PMP", Pass),
            (Sequential, 8, "F", Continue),
            (Sequential, 8, "FF", Fail),
            (Sequential, 8, "PFF", Continue),
            (Sequential, 2, "PM", Undecided),
            (Sequential, 8, "PMMMMMM", Continue),
            (Sequential, 8, "PMMMMMMM", Fail),
            (Sequential, 7, "PMMMMMM", Undecided),
            (Sequential, 8, "PI", Continue),
            (Sequential, 8, "PII", Unmeasurable),
            (Sequential, 8, "IPI", Continue),
            (Single, 1, "", Continue),
            (Single, 1, "P", Pass),
            (Single, 1, "M", Fail),
            (Single, 1, "I", Continue),
            (Single, 1, "II", Unmeasurable),
            (All, 3, "PP", Continue),
            (All, 3, "PPP", Pass),
            (All, 3, "PM", Fail),
            (All, 3, "PIP", Continue),
        ];
        for (rule_name, max, letters, expected) in cases {
            assert_eq!(
                rule(&spec(rule_name, max), &trials(letters)),
                expected,
                "{rule_name:?} max {max} {letters:?}"
            );
        }
    }
}
