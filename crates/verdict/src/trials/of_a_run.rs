use perfval_api::{PerfValidationSpec, TrialOutcome, TrialState};

use super::averages::{self, RESOLUTION};
use super::finished::{Finished, count, deciding, finished};
use super::rule::{is_unmeasurable, rule};
use super::wald::Ruling;
use crate::stats::mean;

/// Soaks of a run, if those before the last one miss: one noisy trial decides nothing, and two stalls that follow each other
/// are no rarity.
const SOAKS: usize = 3;

/// Ruling on the trials of a run: the rule on the deciding ones, then the soak if the spec has one.
pub fn ruling(spec: &PerfValidationSpec, trials: &[TrialState]) -> Ruling {
    let ruling = rule(&spec.trials, &deciding(trials));
    if ruling != Ruling::Pass || spec.benchmark.soak.is_none() {
        return ruling;
    }
    rule_on_soaks(&finished(trials.iter().filter(|trial| trial.soak)))
}

/// Ruling on the soaks. A passing soak is enough, and a missing one is repeated. All of them fail the run if they
/// miss clearly. If they lie near a gate on an average, the trials before them had passed it.
fn rule_on_soaks(soaks: &[Finished]) -> Ruling {
    if is_unmeasurable(soaks) {
        Ruling::Unmeasurable
    } else if count(soaks, TrialOutcome::Pass) > 0 {
        Ruling::Pass
    } else if count(soaks, TrialOutcome::Miss) < SOAKS {
        Ruling::Continue
    } else if miss_clearly(soaks) {
        Ruling::Fail
    } else {
        Ruling::Undecided
    }
}

fn miss_clearly(soaks: &[Finished]) -> bool {
    let missed: Vec<&Finished> = soaks.iter().filter(|soak| soak.outcome == TrialOutcome::Miss).collect();
    let gates = missed.iter().map(|soak| soak.margins.len()).max().unwrap_or(0);
    let every_gate: Vec<usize> = (0..gates).collect();
    let below = |gate: &usize| {
        let margins: Option<Vec<f64>> = missed.iter().map(|soak| soak.margins.get(*gate).copied()).collect();
        margins.is_some_and(|margins| mean(&margins) <= -RESOLUTION)
    };
    missed.iter().all(|soak| soak.is_plain_miss(&every_gate)) || every_gate.iter().any(below)
}

/// True if the deciding trials have passed, so that the soak is next.
pub fn soak_is_next(spec: &PerfValidationSpec, trials: &[TrialState]) -> bool {
    spec.benchmark.soak.is_some() && rule(&spec.trials, &deciding(trials)) == Ruling::Pass
}

/// Mean distance (percent) from the gate on an average that the trials lie near and that is missed by most; positive on the good
/// side. A soak follows trials that passed, so that only soaks count then.
pub fn mean_near_gate(trials: &[TrialState]) -> Option<f64> {
    let soaks = finished(trials.iter().filter(|trial| trial.soak));
    let finished = if soaks.is_empty() { deciding(trials) } else { soaks };
    let means = averages::near(&finished)
        .into_iter()
        .map(|gate| mean(&averages::noise(&finished, gate)));
    means.min_by(f64::total_cmp)
}
