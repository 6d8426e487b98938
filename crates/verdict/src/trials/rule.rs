use perfval_api::{TrialOutcome, TrialRule, TrialsSpec};

use super::averages;
use super::finished::{Finished, count, most_are_near};
use super::wald::{self, Ruling, sequential};

/// Invalid trials in a row after which measuring is given up.
pub const INVALID_IN_A_ROW: usize = 2;
/// Trials missed by half or more, with balanced workers, after which repeating is pointless.
pub const FAR_MISSES: usize = 2;

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

/// Passes and misses alone, unless the trials lie near a gate on an average: then a distance that is noise is no miss, and the
/// distances are weighed too. A deployment passes if both say so, and fails if either does.
fn both_tests(finished: &[Finished], error_percent: i32) -> Ruling {
    let passes = count(finished, TrialOutcome::Pass);
    let misses = count(finished, TrialOutcome::Miss);
    let by_outcomes = sequential(passes, misses, error_percent);
    if !most_are_near(finished) {
        return by_outcomes;
    }
    let (distances, passes, misses) = near_a_gate(finished);
    let by_stalls = sequential(passes, misses, error_percent);
    // A deployment at the far end of what is near has trials on both sides of that end: too few to weigh, and all are misses.
    let missed_throughout = by_outcomes == Ruling::Fail && averages::mean(&distances) <= -averages::INDIFFERENT;
    match (by_stalls, averages::weigh(&distances, error_percent)) {
        _ if missed_throughout => Ruling::Fail,
        (Ruling::Fail, _) | (_, Ruling::Fail) => Ruling::Fail,
        (Ruling::Pass, Ruling::Pass) => Ruling::Pass,
        _ => Ruling::Continue,
    }
}

/// What counts near a gate: the distances that are noise, and what passed or missed if those are no misses.
fn near_a_gate(finished: &[Finished]) -> (Vec<f64>, usize, usize) {
    let (noise, plain): (Vec<Finished>, Vec<Finished>) = finished.iter().copied().partition(|trial| trial.is_noise());
    let distances = noise.iter().filter_map(|trial| trial.margin).collect();
    let passes = noise.len() + count(&plain, TrialOutcome::Pass);
    (distances, passes, count(&plain, TrialOutcome::Miss))
}

/// What [`both_tests`] weighs: the evidence of passes and misses, and that of the distances where they count.
pub(super) fn evidence(finished: &[Finished]) -> (f64, Option<f64>) {
    if !most_are_near(finished) {
        let (passes, misses) = (count(finished, TrialOutcome::Pass), count(finished, TrialOutcome::Miss));
        return (wald::evidence(passes, misses), None);
    }
    let (distances, passes, misses) = near_a_gate(finished);
    (wald::evidence(passes, misses), Some(averages::evidence(&distances)))
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
