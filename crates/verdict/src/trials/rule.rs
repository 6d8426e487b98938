use std::cmp::Ordering;

use perfval_api::{TrialOutcome, TrialRule, TrialsSpec};

use super::averages;
use super::finished::{Finished, count};
use super::wald::{self, Ruling, sequential};

/// Invalid trials in a row after which measuring is given up.
const INVALID_IN_A_ROW: usize = 2;
/// Trials missed by half or more, with balanced workers, after which repeating is pointless.
const FAR_MISSES: usize = 2;

/// Applies the rule of the spec to the finished trials, in order.
pub fn rule(spec: &TrialsSpec, finished: &[Finished]) -> Ruling {
    if is_unmeasurable(finished) {
        return Ruling::Unmeasurable;
    }
    let passes = count(finished, TrialOutcome::Pass);
    let misses = count(finished, TrialOutcome::Miss);
    let number = |count: i32| usize::try_from(count).unwrap_or(1).max(1);
    let max = number(spec.max);
    let ruling = match spec.rule {
        TrialRule::Single => match passes.cmp(&misses) {
            Ordering::Greater => Ruling::Pass,
            Ordering::Less => Ruling::Fail,
            Ordering::Equal => Ruling::Continue,
        },
        TrialRule::All if misses > 0 => Ruling::Fail,
        TrialRule::All if passes >= max => Ruling::Pass,
        // Invalid trials prove nothing. Still, they must end at some point.
        TrialRule::All if finished.len() >= 2 * max => Ruling::Undecided,
        TrialRule::All => Ruling::Continue,
        TrialRule::Sequential if finished.iter().filter(|trial| trial.far).count() >= FAR_MISSES && passes == 0 => {
            Ruling::Fail
        }
        TrialRule::Sequential => match every_test(finished, spec.error_bound_percent) {
            Ruling::Continue if finished.len() >= max => Ruling::Undecided,
            ruling => ruling,
        },
    };
    // Later looks at the same evidence keep Wald's error bounds.
    let may_continue = spec.rule == TrialRule::Single || finished.len() < max;
    if may_continue && passes + misses < number(spec.min.unwrap_or(1)) {
        Ruling::Continue
    } else {
        ruling
    }
}

/// Returns true if the last trials were all invalid.
pub(super) fn is_unmeasurable(finished: &[Finished]) -> bool {
    let last = finished.iter().rev();
    let invalid = last.take_while(|trial| trial.outcome == TrialOutcome::Invalid);
    invalid.count() >= INVALID_IN_A_ROW
}

/// Passes and misses, where a distance that is noise around a gate on an average is no miss, and the distances from each gate
/// that the trials lie near. A deployment passes if all of them pass, and fails if one does.
fn every_test(finished: &[Finished], error_bound_percent: i32) -> Ruling {
    let near = averages::near(finished);
    let (passes, misses) = counted(finished, &near);
    let by_outcomes = sequential(passes, misses, error_bound_percent);
    let by_distances = near
        .iter()
        .map(|gate| averages::weigh(finished, *gate, error_bound_percent));
    let rulings: Vec<Ruling> = by_distances.chain([by_outcomes]).collect();
    if rulings.contains(&Ruling::Fail) {
        Ruling::Fail
    } else if rulings.contains(&Ruling::Continue) {
        Ruling::Continue
    } else {
        Ruling::Pass
    }
}

/// Passes and misses, if noise around these gates is no miss.
fn counted(finished: &[Finished], near: &[usize]) -> (usize, usize) {
    let valid = finished.iter().filter(|trial| trial.outcome != TrialOutcome::Invalid);
    let (misses, passes): (Vec<&Finished>, Vec<_>) = valid.partition(|trial| trial.is_plain_miss(near));
    (passes.len(), misses.len())
}

/// Evidence that [`every_test`] weighs: that of passes and misses, and that of the distances from the worst gate that
/// the trials lie near.
pub(super) fn evidence(finished: &[Finished]) -> (f64, Option<f64>) {
    let near = averages::near(finished);
    let (passes, misses) = counted(finished, &near);
    let distances = near
        .iter()
        .map(|gate| averages::evidence(&averages::noise(finished, *gate)));
    (wald::evidence(passes, misses), distances.min_by(f64::total_cmp))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(rule: TrialRule, max: i32) -> TrialsSpec {
        TrialsSpec {
            rule,
            error_bound_percent: 5,
            max,
            ..TrialsSpec::default()
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
                margins: Vec::new(),
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

    #[test]
    fn no_rule_decides_before_the_minimum_of_valid_trials() {
        use Ruling::{Continue, Fail, Pass, Undecided, Unmeasurable};
        use TrialRule::{All, Sequential, Single};
        let cases = [
            (Sequential, 8, "PP", Continue),
            (Sequential, 8, "PPI", Continue),
            (Sequential, 8, "PPP", Pass),
            (Sequential, 8, "FF", Continue),
            (Sequential, 8, "FFF", Fail),
            (Sequential, 3, "PIP", Pass),
            (Sequential, 3, "PIM", Undecided),
            (Sequential, 8, "PII", Unmeasurable),
            (Single, 1, "PM", Continue),
            (Single, 1, "PMM", Fail),
            (Single, 1, "IMPP", Pass),
            (Single, 1, "PMPM", Continue),
            (All, 3, "M", Continue),
            (All, 3, "MPP", Fail),
            (All, 3, "PPP", Pass),
        ];
        for (rule_name, max, letters, expected) in cases {
            let spec = TrialsSpec {
                min: Some(3),
                ..spec(rule_name, max)
            };
            let found = rule(&spec, &trials(letters));
            assert_eq!(found, expected, "{rule_name:?} max {max} {letters:?}");
        }
    }
}
