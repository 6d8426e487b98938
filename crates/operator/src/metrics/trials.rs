//! Trials, counted as they are recorded.

use perfval_api::{PerfValidationStatus, TrialOutcome};

/// Outcomes that a decision adds to the trials of a run; judging saved trials again measures nothing.
pub(super) fn measured(
    before: &PerfValidationStatus,
    after: &PerfValidationStatus,
) -> impl Iterator<Item = TrialOutcome> {
    let run = |status: &PerfValidationStatus| status.run.as_ref().map(|run| run.number);
    let judges_again = after.state.judged_run.is_some();
    let of_same_run = run(before) == run(after);
    let known = move |number| {
        let mut trials = before.trials.iter().filter(|_| of_same_run);
        trials.any(|trial| trial.number == number && trial.outcome.is_some())
    };
    let trials = after.trials.iter();
    let trials = trials.filter(move |trial| !judges_again && !known(trial.number));
    trials.filter_map(|trial| trial.outcome)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(run: i64, judged_run: Option<i64>, outcomes: &[Option<&str>]) -> PerfValidationStatus {
        let trials: Vec<Value> = (1..)
            .zip(outcomes)
            .map(|(number, outcome)| json!({"number": number, "outcome": outcome}))
            .collect();
        serde_json::from_value(json!({
            "observedGeneration": 1, "trials": trials,
            "run": {"number": run, "trigger": "Created", "generation": 1, "startedAt": "2026-11-20T10:00:00Z"},
            "operatorState": {"judgedRun": judged_run},
        }))
        .unwrap()
    }

    #[test]
    fn a_trial_counts_once_when_its_outcome_is_known() {
        let (open, first) = (status(1, None, &[None]), status(1, None, &[Some("Pass")]));
        let second = status(1, None, &[Some("Pass"), Some("Miss")]);
        let counted = |before, after| measured(before, after).collect::<Vec<_>>();
        assert_eq!(counted(&open, &first), [TrialOutcome::Pass]);
        assert_eq!(counted(&first, &first), []);
        assert_eq!(counted(&first, &second), [TrialOutcome::Miss]);
        let next = status(2, None, &[Some("Invalid")]);
        assert_eq!(counted(&second, &next), [TrialOutcome::Invalid], "of another run");
        let again = status(2, Some(1), &[Some("Miss"), Some("Miss")]);
        assert_eq!(counted(&second, &again), [], "the same trials, judged again");
    }
}
