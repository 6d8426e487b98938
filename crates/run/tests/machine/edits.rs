//! Edits of the spec: what was not measured is never claimed, and what was measured is not measured again.

use k8s_openapi::ByteString;
use perfval_api::{Phase, TrialOutcome, Trigger, Verdict, condition, meta};
use perfval_run::build;
use serde_json::json;

use super::moments::{at, changed, gate, judging_again, kept, stricter};
use super::story::Story;

/// Value, reason and generation of a condition.
fn shown_condition(story: &Story, name: &str) -> (String, String, i64) {
    let status = story.status();
    let found = condition::find(&status, name).expect("the condition");
    (
        found.status.clone(),
        found.reason.clone(),
        found.observed_generation.expect("a generation"),
    )
}

fn is(value: &str, reason: &str, generation: i64) -> (String, String, i64) {
    (value.into(), reason.into(), generation)
}

fn run_number(story: &Story) -> i64 {
    story.status().run.map_or(0, |run| run.number)
}

#[test]
fn a_suspended_edit_of_measured_fields_is_not_ready() {
    let mut story = at(Phase::Completed);
    story.step();
    assert_eq!(shown_condition(&story, condition::READY), is("True", "GatesMet", 1));
    story.spec(json!({"workload": {"dynamo": {"image": "vllm-runtime:1.4.3"}}, "suspend": true}));
    story.step();
    assert_eq!(shown_condition(&story, condition::READY), is("False", "Suspended", 2));
    assert_eq!(
        shown_condition(&story, condition::PASSED),
        is("Unknown", "Suspended", 2)
    );
    assert_eq!(
        shown_condition(&story, condition::COMPLETE),
        is("False", "Suspended", 2)
    );
    assert_eq!(shown_condition(&story, condition::STALLED), is("False", "Suspended", 2));
    assert_eq!(shown_condition(&story, condition::CLEANED_UP), is("True", "RunOver", 1));
    let status = story.status();
    assert_eq!(status.observed_generation, 2);
    let run = status.run.expect("a run");
    assert_eq!(
        (status.verdict, run.number, run.generation),
        (Some(Verdict::Passed), 1, 1),
        "the record of the last run stays"
    );

    // The edit is taken back: what was measured is what is asked for.
    story.spec(json!({"workload": {"dynamo": {"image": "vllm-runtime:1.4.2"}}}));
    story.step();
    assert_eq!(shown_condition(&story, condition::READY), is("True", "GatesMet", 3));
    assert_eq!(shown_condition(&story, condition::CLEANED_UP), is("True", "RunOver", 3));

    story.spec(json!({"workload": {"dynamo": {"image": "vllm-runtime:1.4.3"}}, "suspend": false}));
    story.step();
    story.assert_run(2, Trigger::SpecChanged);
}

#[test]
fn an_edit_while_the_last_run_is_removed_is_not_passed() {
    let mut story = at(Phase::CleaningUp);
    assert_eq!(shown_condition(&story, condition::PASSED), is("True", "GatesMet", 1));
    story.stuck = true;
    story.spec(json!({"workload": {"dynamo": {"image": "vllm-runtime:1.4.3"}}}));
    story.step();
    assert_eq!(shown_condition(&story, condition::PASSED), is("Unknown", "Running", 2));
    assert_eq!(
        shown_condition(&story, condition::CLEANED_UP),
        is("False", "Running", 1)
    );
}

#[test]
fn a_held_back_edit_keeps_the_object_and_removes_leftovers() {
    let mut story = Story::with(json!({"ttlSecondsAfterFinished": 60}));
    story.until(Phase::CleaningUp);
    story.stuck = true;
    story.step();
    story.wait(4000);
    story.until(Phase::Completed);
    story.spec(json!({"workload": {"dynamo": {"image": "vllm-runtime:1.4.3"}}, "suspend": true}));
    story.stuck = false;
    story.wait(4000);
    story.steps(4);
    assert!(
        story.object.metadata.deletion_timestamp.is_none(),
        "a run is still to come"
    );
    assert_eq!(shown_condition(&story, condition::CLEANED_UP).0, "True");
}

#[test]
fn an_edit_outside_of_measured_and_judged_fields_changes_nothing() {
    for edit in [
        json!({"ttlSecondsAfterFinished": 86_400}),
        json!({"timeouts": {"workloadReady": "20m"}}),
        json!({"workload": {"dynamo": {"onMissing": "Skip"}}}),
        json!({"suspend": true}),
    ] {
        let mut story = at(Phase::Completed);
        story.spec(edit.clone());
        let decision = story.step();
        assert_eq!(decision.effects, [], "{edit}");
        assert_eq!(
            (story.phase(), run_number(&story)),
            (Some(Phase::Completed), 1),
            "{edit}"
        );
        for name in [
            condition::READY,
            condition::PASSED,
            condition::COMPLETE,
            condition::CLEANED_UP,
        ] {
            let (value, _, generation) = shown_condition(&story, name);
            assert_eq!((value.as_str(), generation), ("True", 2), "{edit}: {name}");
        }
        assert_eq!(story.status().run.map(|run| run.generation), Some(2));
    }
}

#[test]
fn an_active_run_goes_on_after_such_an_edit_and_keeps_its_new_limits() {
    let mut story = at(Phase::WaitingForReady);
    story.workers_ready = false;
    story.spec(json!({"ttlSecondsAfterFinished": 86_400, "timeouts": {"workloadReady": "2h"}}));
    story.step();
    // Past the limit that it began with.
    story.wait(3600);
    story.step();
    assert_eq!((story.phase(), run_number(&story)), (Some(Phase::WaitingForReady), 1));
    story.workers_ready = true;
    story.until(Phase::Completed);
    assert_eq!((story.verdict(), run_number(&story)), (Some(Verdict::Passed), 1));
    assert_eq!(shown_condition(&story, condition::READY), is("True", "GatesMet", 2));
}

#[test]
fn a_limit_that_kept_a_run_from_measuring_is_tried_again_when_it_changes() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.workers_ready = false;
    story.step();
    story.wait(4000);
    story.until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Error));
    story.spec(json!({"ttlSecondsAfterFinished": 86_400}));
    story.step();
    assert_eq!(run_number(&story), 1);
    story.spec(json!({"timeouts": {"workloadReady": "2h"}}));
    story.step();
    story.assert_run(2, Trigger::SpecChanged);
}

#[test]
fn changed_gates_judge_the_saved_trials_in_a_run_of_its_own() {
    let mut story = changed(at(Phase::Completed), stricter);
    let measured = story.status();
    let passes = story.log.len();
    story.until(Phase::Evaluating).until(Phase::Completed);
    for decision in &story.log[passes..] {
        assert_eq!(decision.effects, []);
    }
    let status = story.status();
    let run = status.run.clone().expect("a run");
    assert_eq!(
        (run.number, run.trigger, status.state.judged_run),
        (2, Trigger::GatesChanged, Some(1))
    );
    assert_eq!(status.verdict, Some(Verdict::Failed));
    let message = status.message.clone().unwrap_or_default();
    assert!(
        message.contains("trials of run 1, judged again; nothing was measured"),
        "{message}"
    );
    assert_eq!(status.state.trials[0].outcome, Some(TrialOutcome::Miss));
    assert_eq!(status.state.trials[0].started_at, measured.state.trials[0].started_at);
    assert_eq!(
        status.state.trials[0].completed_at,
        measured.state.trials[0].completed_at
    );
    assert_eq!(status.state.metrics, measured.state.metrics);
    assert_eq!(status.placement, measured.placement);
    assert_eq!(status.environment, measured.environment);
    assert_eq!(status.results_ref, measured.results_ref);
    assert_eq!(status.state.history[0].verdict, Some(Verdict::Passed));
    assert_eq!(shown_condition(&story, condition::READY), is("False", "GatesMissed", 2));
    assert_eq!(shown_condition(&story, condition::CLEANED_UP), is("True", "RunOver", 2));
    assert!(!perfval_sizing::holds_node(&status));

    // And back again: still the trials of run 1.
    story.spec(gate("1000"));
    story.until(Phase::Evaluating);
    assert!(!perfval_sizing::holds_node(&story.status()), "it needs no node");
    story.until(Phase::Completed);
    let status = story.status();
    let run = status.run.expect("a run");
    assert_eq!(
        (run.number, status.state.judged_run, story.verdict()),
        (3, Some(1), Some(Verdict::Passed))
    );
    assert_eq!(shown_condition(&story, condition::READY), is("True", "GatesMet", 3));
}

#[test]
fn trials_that_a_run_left_out_count_again_for_the_next_one() {
    let mut story = Story::with(json!({"trials": {"rule": "All", "max": 3}}));
    story.until(Phase::Completed);
    assert_eq!(story.status().state.trials.len(), 3);
    stricter(&mut story);
    story.until(Phase::Evaluating).until(Phase::Completed);
    assert_eq!(
        (story.verdict(), story.status().state.trials.len()),
        (Some(Verdict::Failed), 1)
    );
    story.spec(gate("1000"));
    story.until(Phase::Evaluating).until(Phase::Completed);
    assert_eq!(
        (story.verdict(), story.status().state.trials.len()),
        (Some(Verdict::Passed), 3)
    );
}

#[test]
fn insufficient_saved_trials_are_measured_again_and_the_event_has_the_reason() {
    let cases: [(Change, &str); 5] = [
        (|story| story.results.clear(), "is gone"),
        (
            |story| {
                story.spec(json!({"trials": {"rule": "All", "max": 3}}));
            },
            "asks for more trials than the 1",
        ),
        (
            |story| {
                for results in story.results.values_mut() {
                    results.binary_data = None;
                }
            },
            "was changed",
        ),
        (
            |story| saved_instead(story, None),
            "trial 1 is not in the saved results",
        ),
        (
            |story| saved_instead(story, Some(b"no gzip")),
            "trial-1.json.gz cannot be read",
        ),
    ];
    for (change, why) in cases {
        let mut story = changed(at(Phase::Completed), |story| {
            story.spec(gate("900"));
            change(story);
        });
        story.until(Phase::Evaluating);
        let decision = story.step();
        let notes: Vec<&str> = decision.events.iter().map(|event| event.note.as_str()).collect();
        assert!(notes.iter().any(|note| note.contains(why)), "{why}: {notes:?}");
        let status = story.status();
        let run = status.run.expect("a run");
        assert_eq!(
            (story.phase(), run.trigger, status.state.judged_run),
            (Some(Phase::Pending), Trigger::SpecChanged, None)
        );
        story.until(Phase::Completed);
        assert_eq!(story.verdict(), Some(Verdict::Passed), "{why}");
    }
}

/// Something that happens to a story.
type Change = fn(&mut Story);

/// The run saved something else of its trial.
fn saved_instead(story: &mut Story, payload: Option<&[u8]>) {
    let status = story.object.status.as_mut().expect("a status");
    let reference = status.results_ref.as_mut().expect("results");
    let results = story.results.get_mut(&reference.name).expect("results");
    results.binary_data = payload.map(|bytes| [("trial-1.json.gz".into(), ByteString(bytes.to_vec()))].into());
    reference.sha256 = build::results_sha256(results);
}

#[test]
fn changed_gates_interrupt_a_run_that_is_still_measuring() {
    let mut story = changed(at(Phase::Benchmarking), stricter);
    story.step();
    story.assert_at(Phase::CleaningUp, "Interrupted");
    story.until(Phase::Pending);
    story.assert_run(2, Trigger::SpecChanged);
}

#[test]
fn a_rerun_measures_although_the_gates_changed_too() {
    let mut story = changed(at(Phase::Completed), stricter);
    story.annotate(meta::RERUN, Some("x"));
    story.step();
    let run = story.status().run.expect("a run");
    assert_eq!((story.phase(), run.trigger), (Some(Phase::Pending), Trigger::Rerun));
}

#[test]
fn gates_that_are_all_taken_away_leave_nothing_to_judge() {
    let mut story = at(Phase::Completed);
    story.spec(json!({"gates": []}));
    story.until(Phase::Pending).until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Skipped));
}

#[test]
fn a_trial_that_a_restart_voided_stays_void_under_other_gates() {
    let mut story = Story::with(json!({"trials": {"rule": "Sequential", "max": 8}}));
    story.until(Phase::Benchmarking).step();
    story.restarts = 1;
    story.until(Phase::Completed);
    let outcomes =
        |story: &Story| -> Vec<_> { story.status().state.trials.iter().map(|trial| trial.outcome).collect() };
    assert_eq!(outcomes(&story)[0], Some(TrialOutcome::Invalid));
    let measured = story.status();
    story.spec(gate("900"));
    story.until(Phase::Evaluating).until(Phase::Completed);
    assert_eq!(outcomes(&story)[0], Some(TrialOutcome::Invalid));
    assert_eq!(story.status().state.trials[0].causes, measured.state.trials[0].causes);
    assert_eq!(story.verdict(), measured.verdict);
}

#[test]
fn objects_kept_for_a_post_mortem_stay_and_are_removed_later() {
    let mut story = kept();
    stricter(&mut story);
    story.until(Phase::Evaluating).until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Failed));
    assert_eq!(shown_condition(&story, condition::CLEANED_UP).1, "NoCleanupRequested");
    assert!(story.deployed && perfval_sizing::holds_node(&story.status()));
    story.annotate(meta::NO_CLEANUP, None);
    story.until(Phase::CleaningUp).until(Phase::Completed);
    assert!(!story.deployed);
    assert_eq!(shown_condition(&story, condition::CLEANED_UP).0, "True");
}

#[test]
fn an_object_that_is_deleted_while_its_trials_are_judged_again_leaves() {
    let mut story = changed(judging_again(), |story| {
        story.delete();
    });
    story.steps(4);
    assert!(story.gone);
}

/// A run that is to judge saved trials again, which cannot be read.
fn unreadable() -> Story {
    changed(judging_again(), |story| {
        story.results_unreadable = true;
        story.step();
    })
}

#[test]
fn saved_trials_that_cannot_be_read_are_waited_for_and_never_measured_again() {
    let mut story = unreadable();
    for _ in 0..10 {
        story.wait(600).step();
        assert_eq!((story.phase(), run_number(&story)), (Some(Phase::Evaluating), 2));
    }
    story.assert_message("403");
    assert!(!perfval_sizing::holds_node(&story.status()));
    story.results_unreadable = false;
    story.until(Phase::Completed);
    assert_eq!((story.verdict(), run_number(&story)), (Some(Verdict::Failed), 2));
}

#[test]
fn results_that_stay_unreadable_are_read_in_growing_pauses() {
    let mut story = unreadable();
    let pauses: Vec<_> = (0..5)
        .map(|_| story.outage(30).step().recheck.expect("it is read again"))
        .collect();
    assert!(pauses.is_sorted() && pauses[0] < pauses[4], "{pauses:?}");
}

#[test]
fn gates_that_change_again_while_the_saved_trials_cannot_be_read_ask_for_no_measurement() {
    let mut story = unreadable();
    story.spec(gate("1000"));
    story.step();
    assert_eq!((story.phase(), run_number(&story)), (Some(Phase::Evaluating), 2));
    story.results_unreadable = false;
    story.until(Phase::Completed);
    story.steps(4);
    let status = story.status();
    let run = status.run.expect("a run");
    assert_eq!(
        (story.verdict(), status.state.judged_run),
        (Some(Verdict::Passed), Some(1))
    );
    assert_eq!(run.generation, 3, "the newest gates were judged");
}

#[test]
fn a_request_for_a_measurement_does_not_wait_for_saved_trials() {
    let asks: [(Change, Trigger); 2] = [
        (
            |story| {
                story.annotate(meta::RERUN, Some("x"));
            },
            Trigger::Rerun,
        ),
        (
            |story| {
                story.spec(json!({"placement": {"maxGPUs": 1}}));
            },
            Trigger::SpecChanged,
        ),
    ];
    for (ask, trigger) in asks {
        let mut story = changed(unreadable(), ask);
        story.step();
        let run = story.status().run.expect("a run");
        assert_eq!((story.phase(), run.trigger), (Some(Phase::Pending), trigger));
    }
}

#[test]
fn a_suspended_object_measures_nothing_for_saved_trials_that_are_gone() {
    let mut story = changed(judging_again(), |story| {
        story.spec(json!({"suspend": true}));
        story.results.clear();
    });
    story.until(Phase::Suspended);
    assert_eq!(run_number(&story), 2, "no run began");
    story.spec(json!({"suspend": false}));
    story.until(Phase::Completed);
    assert_eq!((story.verdict(), run_number(&story)), (Some(Verdict::Failed), 3));
}
