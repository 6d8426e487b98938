use perfval_api::{PerfValidationSpec, PerfValidationStatus, TrialRule, TrialStatus, TrialsSpec};

use super::averages;
use super::finished::{finished, most_are_near};
use super::rule::rule;
use super::wald::Ruling;

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
