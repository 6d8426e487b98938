//! Exact odds of the rule that ends a run.

use std::collections::BTreeMap;

use perfval_api::{TrialOutcome, TrialsSpec};
use perfval_verdict::trials::{Finished, Ruling, rule};

/// Pass rates of the whole curve: 0.00, 0.05 … 1.00, each with how a run of the rule ends.
pub fn curve(spec: &TrialsSpec) -> impl Iterator<Item = (f64, Odds)> {
    let rates = (0..=20).map(|step| f64::from(step) / 20.0);
    rates.map(|rate| (rate, odds(spec, 1.0 - rate, 0.0)))
}

/// Probabilities (0 to 1) of a run's results, and the number of trials until then.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Odds {
    /// Passed.
    pub passed: f64,
    /// Failed.
    pub failed: f64,
    /// Neither could be decided.
    pub inconclusive: f64,
    /// Trials of a run, on average.
    pub trials: f64,
}

/// Odds of a deployment whose trials miss with probability `miss`, and miss far with probability `far`, independently
/// of each other; all other trials pass. Exact: the rule looks at counts, and every count that it can meet is
/// weighed. Invalid trials are not included.
pub fn odds(spec: &TrialsSpec, miss: f64, far: f64) -> Odds {
    alike(spec, [1.0 - miss - far, miss, far], 0.0)
}

/// The same for trials that pass or miss narrowly, each correlated with the one before: a chain of two states.
pub fn correlated_odds(spec: &TrialsSpec, miss: f64, correlation: f64) -> Odds {
    alike(spec, [1.0 - miss, miss, 0.0], correlation)
}

/// Shares of passes, misses and far misses, and the probability beyond chance that a trial ends as the one before.
fn alike(spec: &TrialsSpec, shares: [f64; 3], correlation: f64) -> Odds {
    let kinds = [
        trial(TrialOutcome::Pass, false),
        trial(TrialOutcome::Miss, false),
        trial(TrialOutcome::Miss, true),
    ];
    let chance = |last: Option<usize>, kind: usize| match last {
        None => shares[kind],
        Some(last) => (1.0 - correlation) * shares[kind] + if last == kind { correlation } else { 0.0 },
    };
    let mut odds = Odds::default();
    let mut open = BTreeMap::from([(([0_usize; 3], None), 1.0_f64)]);
    let mut length = 0.0;
    while !open.is_empty() {
        length += 1.0;
        let mut next = BTreeMap::new();
        for ((counts, last), weight) in open {
            for kind in (0..kinds.len()).filter(|kind| shares[*kind] > 0.0) {
                let mut counts: [usize; 3] = counts;
                counts[kind] += 1;
                // Independent trials need no memory: half of the counts.
                let remembered = (correlation > 0.0).then_some(kind);
                *next.entry((counts, remembered)).or_insert(0.0) += weight * chance(last, kind);
            }
        }
        next.retain(|(counts, _), weight| {
            let trials: Vec<Finished> = kinds
                .iter()
                .zip(counts)
                .flat_map(|(trial, count)| std::iter::repeat_n(trial.clone(), *count))
                .collect();
            let ended = match rule(spec, &trials) {
                Ruling::Continue => return true,
                Ruling::Pass => &mut odds.passed,
                Ruling::Fail => &mut odds.failed,
                Ruling::Undecided | Ruling::Unmeasurable => &mut odds.inconclusive,
            };
            *ended += *weight;
            odds.trials += *weight * length;
            false
        });
        open = next;
    }
    odds
}

fn trial(outcome: TrialOutcome, far: bool) -> Finished {
    Finished {
        outcome,
        far,
        margins: Vec::new(),
    }
}
