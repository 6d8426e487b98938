//! From trials to a verdict.
//!
//! `Sequential` is Wald's sequential probability ratio test on pass/miss: after each trial the likelihood of a healthy
//! deployment is weighed against that of a degraded one, and the run ends as soon as either is clear. Near a gate on an
//! average a second one, on the distance from it, has to agree ([`averages`]).

pub mod averages;
mod odds;

use perfval_api::{PerfValidationSpec, PerfValidationStatus, TrialOutcome, TrialRule, TrialStatus, TrialsSpec};

pub use odds::{DOCUMENTED, Odds, curve, odds};

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
    fn is_near(self) -> bool {
        self.margin.is_some_and(|margin| margin.abs() <= averages::NEAR)
    }

    /// Whether its distance is noise around a gate, or better.
    fn is_noise(self) -> bool {
        self.margin.is_some_and(|margin| margin >= -averages::NEAR)
    }
}

/// What the trials of a run say: the rule on those that decide, then the soak, where one is asked for.
pub fn ruling(spec: &PerfValidationSpec, trials: &[TrialStatus]) -> Ruling {
    let (soaks, deciding): (Vec<TrialStatus>, Vec<TrialStatus>) = trials.iter().cloned().partition(|trial| trial.soak);
    let ruling = rule(&spec.trials, &finished(&deciding));
    if ruling != Ruling::Pass || spec.benchmark.soak.is_none() {
        return ruling;
    }
    let one = TrialsSpec {
        rule: TrialRule::Single,
        ..spec.trials.clone()
    };
    rule(&one, &finished(&soaks))
}

/// Whether the trials that decide have passed, so that the next one is the soak.
pub fn soak_is_next(spec: &PerfValidationSpec, trials: &[TrialStatus]) -> bool {
    let deciding: Vec<TrialStatus> = trials.iter().filter(|trial| !trial.soak).cloned().collect();
    spec.benchmark.soak.is_some() && rule(&spec.trials, &finished(&deciding)) == Ruling::Pass
}

/// Loss against what the run measured (percent) that it would have failed with a probability of 95 %.
pub fn detectable_loss(spec: &PerfValidationSpec, status: &PerfValidationStatus) -> Option<f64> {
    let deciding: Vec<TrialStatus> = status.trials.iter().filter(|trial| !trial.soak).cloned().collect();
    let noise = finished(&deciding).into_iter().filter(|trial| trial.is_noise());
    let distances: Vec<f64> = noise.filter_map(|trial| trial.margin).collect();
    averages::detectable_loss(&spec.trials, &spec.gates, &status.gates, &distances)
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
        TrialRule::Sequential => match both_tests(finished, spec.error_percent) {
            Ruling::Continue if finished.len() >= max => Ruling::Undecided,
            ruling => ruling,
        },
    }
}

/// Mean distance from the gate (percent) of trials that lie so near it that their distances decide.
pub fn mean_near_gate(trials: &[TrialStatus]) -> Option<f64> {
    let finished = finished(trials);
    let distances: Vec<f64> = finished
        .iter()
        .filter(|trial| trial.is_noise())
        .filter_map(|trial| trial.margin)
        .collect();
    most_are_near(&finished).then(|| averages::mean(&distances))
}

/// Whether more trials are near than clearly passed. Between clear passes a near one is a stall that ended there.
fn most_are_near(finished: &[Finished]) -> bool {
    let (near, plain): (Vec<Finished>, Vec<Finished>) = finished.iter().copied().partition(|trial| trial.is_near());
    near.len() > count(&plain, TrialOutcome::Pass)
}

/// Passes and misses alone, unless the trials lie near a gate on an average: then a distance that is noise is no miss, and the
/// distances have to agree. A deployment passes if neither speaks against it, and fails if either does.
fn both_tests(finished: &[Finished], error_percent: i32) -> Ruling {
    let passes = count(finished, TrialOutcome::Pass);
    let misses = count(finished, TrialOutcome::Miss);
    if !most_are_near(finished) {
        return sequential(passes, misses, error_percent);
    }
    let (noise, plain): (Vec<Finished>, Vec<Finished>) = finished.iter().copied().partition(|trial| trial.is_noise());
    let distances: Vec<f64> = noise.iter().filter_map(|trial| trial.margin).collect();
    let passes = noise.len() + count(&plain, TrialOutcome::Pass);
    let by_misses = sequential(passes, count(&plain, TrialOutcome::Miss), error_percent);
    match (by_misses, averages::weigh(&distances, error_percent)) {
        (Ruling::Fail, _) | (_, Ruling::Fail) => Ruling::Fail,
        (Ruling::Pass, Ruling::Pass) => Ruling::Pass,
        _ => Ruling::Continue,
    }
}

/// Wald's test after `passes` and `misses`, with both error bounds `error_percent`.
fn sequential(passes: usize, misses: usize, error_percent: i32) -> Ruling {
    let healthy_above = healthy_above(error_percent);
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

/// Wald's boundary: a logarithm of likelihoods beyond which an answer is wrong with `error_percent` at most.
fn healthy_above(error_percent: i32) -> f64 {
    let error = f64::from(error_percent.clamp(1, 49)) / 100.0;
    ((1.0 - error) / error).ln()
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
                margin: None,
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
