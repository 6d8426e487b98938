use perfval_api::{PerfValidationSpec, TrialOutcome, TrialRule, TrialState};

use super::finished::deciding;
use super::of_a_run::ruling;
use super::rule::evidence;
use super::wald::{Ruling, healthy_above};

/// The rule's way to its ruling, trial by trial: shown to people, never used for a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Evidence beyond which the sequential rule decides, on both sides of zero; `None` under another rule, which weighs
    /// nothing.
    pub boundary: Option<f64>,
    /// The finished trials, in order.
    pub steps: Vec<PathStep>,
}

/// Evidence after one finished trial.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    /// Its number.
    pub trial: i64,
    /// Outcome of the trial.
    pub outcome: TrialOutcome,
    /// True if it is the soak, which decides alone.
    pub soak: bool,
    /// Evidence of passes and misses until now: the logarithm of how much likelier they are of a healthy deployment
    /// than of a degraded one.
    pub by_outcomes: f64,
    /// Evidence of the distances from a gate on an average, where most trials lie so near it that they count.
    pub by_distances: Option<f64>,
    /// Ruling after this trial.
    pub ruling: Ruling,
}

/// The path of a run through its rule.
pub fn path(spec: &PerfValidationSpec, trials: &[TrialState]) -> Path {
    let sequential = spec.trials.rule == TrialRule::Sequential;
    let steps = trials.iter().enumerate().filter_map(|(at, trial)| {
        let outcome = trial.outcome?;
        let so_far = &trials[..=at];
        let (by_outcomes, by_distances) = evidence(&deciding(so_far));
        Some(PathStep {
            trial: trial.number,
            outcome,
            soak: trial.soak,
            by_outcomes,
            by_distances,
            ruling: ruling(spec, so_far),
        })
    });
    Path {
        steps: steps.collect(),
        boundary: sequential.then(|| healthy_above(spec.trials.error_bound_percent)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path_of(margins: &[Option<&str>], outcomes: &[TrialOutcome]) -> Path {
        let spec: PerfValidationSpec = serde_json::from_value(json!({
            "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "benchmark": {},
            "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "100"}],
        }))
        .unwrap();
        let trials: Vec<TrialState> = (1..)
            .zip(margins.iter().zip(outcomes))
            .map(|(number, (margin, outcome))| TrialState {
                number,
                outcome: Some(*outcome),
                margin_percent: margin.map(str::to_owned),
                ..TrialState::default()
            })
            .collect();
        path(&spec, &trials)
    }

    #[test]
    fn the_evidence_crosses_the_boundary_in_the_trial_in_which_the_rule_decides() {
        use TrialOutcome::{Miss, Pass};
        for (margins, outcomes) in [
            (vec![None; 2], vec![Pass; 2]),
            (vec![None; 3], vec![Pass, Miss, Pass]),
            (vec![None; 4], vec![Miss; 4]),
            // Near a gate both have to agree.
            (vec![Some("4"); 4], vec![Pass; 4]),
        ] {
            let path = path_of(&margins, &outcomes);
            let boundary = path.boundary.expect("a sequential rule");
            let (last, before) = path.steps.split_last().expect("steps");
            let beyond = |step: &PathStep| {
                let evidence = [Some(step.by_outcomes), step.by_distances];
                evidence.iter().flatten().all(|evidence| evidence.abs() >= boundary)
            };
            assert!(
                beyond(last) && last.ruling != Ruling::Continue,
                "{outcomes:?}: {last:?}"
            );
            assert!(
                before
                    .iter()
                    .all(|step| !beyond(step) && step.ruling == Ruling::Continue),
                "{outcomes:?}: {before:?}"
            );
            assert_eq!(last.by_distances.is_some(), margins[0].is_some());
        }
    }
}
