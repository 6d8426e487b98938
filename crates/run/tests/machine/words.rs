//! What is written for people decides nothing; and a status of an older version, which lacks a field, is still read.

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Evaluating, Sizing, WaitingForReady};
use perfval_api::{Leftovers, OperatorState, Phase, Trigger, Verdict, condition, meta};
use perfval_run::observed::DryRunResult;
use perfval_sizing::Seen;
use proptest::prelude::*;
use serde_json::json;

use super::laws::{happen, happening};
use super::moments::{at, changed, fills_cache, gate, kept, moved, overdue, remove_deployment};
use super::story::Story;

/// A run of several trials that makes a model cache first.
fn with_cache() -> Story {
    changed(fills_cache("Running"), |story| {
        story.cache_job = None;
        story.spec(json!({"trials": {"rule": "Sequential", "max": 4}}));
    })
}

fn reword(story: &mut Story) {
    for condition in story.object.status.iter_mut().flat_map(|status| &mut status.conditions) {
        condition.reason = "Reworded".into();
        condition.message = "in other words".into();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_decision_reads_a_condition(happenings in proptest::collection::vec(happening(), 1..120)) {
        let (mut story, mut reworded) = (with_cache(), with_cache());
        for what in &happenings {
            reword(&mut reworded);
            // Other words are news. News moves the heartbeat, and is written with the uid of a new Job.
            let state = story.status().state;
            if let Some(status) = &mut reworded.object.status {
                status.state = state;
            }
            let decisions = [&mut story, &mut reworded].map(|story| {
                happen(story, what);
                let needs = story.needs();
                let decision = story.step();
                let effects: Vec<_> = decision.effects.iter().map(std::mem::discriminant).collect();
                let mut status = decision.status;
                status.state.last_looked_at = None;
                for trial in &mut status.state.trials {
                    trial.job_uid = None;
                }
                (needs, effects, status.phase, status.verdict, status.run, status.placement, status.state)
            });
            prop_assert_eq!(&decisions[0], &decisions[1]);
            if story.gone {
                break;
            }
        }
    }
}

#[test]
fn a_run_whose_operator_state_was_damaged_is_followed_by_another() {
    let filling = || {
        changed(fills_cache("Running"), |story| {
            story.until(Deploying).step();
            story.step();
            story.cache_job = Some("Complete");
        })
    };
    let checking = || {
        changed(at(WaitingForReady), |story| {
            story.step();
            assert_eq!(story.reason(), "WorkloadNotReady", "the endpoint is asked");
        })
    };
    let looks_again = || {
        changed(moved(), |story| {
            story.until(WaitingForReady);
        })
    };
    let damage = |story: &mut Story| {
        let status = story.object.status.as_mut().expect("a status");
        *status.state = OperatorState::default();
    };
    let measuring = || {
        changed(at(Benchmarking), |story| {
            story.step();
        })
    };
    let moments: [&dyn Fn() -> Story; 6] = [&filling, &checking, &looks_again, &measuring, &|| at(Sizing), &|| {
        at(Evaluating)
    }];
    for begin in moments {
        let mut story = changed(begin(), damage);
        story.assert_passes();
        story.assert_run(2, Trigger::StateLost);
    }
    let mut over = changed(at(Completed), damage);
    over.step();
    let run = over.status().run.expect("a run");
    assert_eq!(
        (run.number, over.verdict()),
        (1, Some(Verdict::Passed)),
        "its verdict stays"
    );
}

fn leftovers(story: &Story) -> Option<Leftovers> {
    story.status().state.leftovers
}

#[test]
fn kept_objects_stay_until_the_user_removes_the_annotation() {
    assert_eq!(leftovers(&kept()), Some(Leftovers::Kept));
    let mut story = kept();
    story.steps(2);
    assert!(story.deployed);
    assert!(!story.status().state.settled, "the list of held nodes shows it");
    story.annotate(meta::NO_CLEANUP, None);
    story.steps(5);
    assert!(!story.deployed);
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
    assert_eq!((story.phase(), leftovers(&story)), (Some(Completed), None));
    assert!(story.status().state.settled);
}

/// As in a random world on the lab: the annotation came between the removal and its confirmation, and a finished run
/// that had nothing any more held its node.
#[test]
fn an_annotation_after_the_removal_keeps_nothing() {
    let mut story = changed(at(CleaningUp), |story| {
        story.step();
        story.annotate(meta::NO_CLEANUP, Some("true"));
    });
    assert!(!story.deployed, "the removal came first");
    story.until(Completed);
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
    assert_eq!(leftovers(&story), None);
    assert!(!perfval_sizing::holds_node(&story.status()));
}

#[test]
fn an_annotation_during_the_removal_keeps_nothing() {
    let mut story = changed(at(CleaningUp), |story| {
        story.stuck = true;
        story.step();
        story.annotate(meta::NO_CLEANUP, Some("true"));
        story.step();
    });
    assert!(story.deployed, "it ends");
    story.stuck = false;
    story.until(Completed);
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
    assert_eq!(leftovers(&story), None);
}

/// A user has seen enough.
#[test]
fn keeping_ends_with_the_deployment() {
    let mut story = changed(kept(), remove_deployment);
    story.until(CleaningUp).until(Completed);
    assert!(condition::is_true(&story.status(), condition::CLEANED_UP));
    assert!(!perfval_sizing::holds_node(&story.status()), "its GPUs are free");
}

#[test]
fn unreadable_kept_objects_stay_kept() {
    let mut story = changed(kept(), |story| {
        remove_deployment(story);
        story.unreadable = true;
    });
    story.steps(2);
    assert_eq!(
        (story.phase(), leftovers(&story)),
        (Some(Completed), Some(Leftovers::Kept))
    );
}

/// Only a removal may be past the time for removal.
#[test]
fn a_run_that_judges_again_has_its_own_time_although_the_last_one_left_something() {
    let mut story = overdue();
    story.results_unreadable = true;
    story.spec(gate("900"));
    story.until(Evaluating);
    story.steps(5);
    let run = story.status().run.expect("a run");
    assert_eq!((story.phase(), run.trigger), (Some(Evaluating), Trigger::GatesChanged));
    assert_eq!(leftovers(&story), Some(Leftovers::Overdue));
    story.results_unreadable = false;
    story.assert_passes();
    story.stuck = false;
    story.steps(2);
    assert!(!story.deployed);
}

#[test]
fn the_deployment_of_another_plan_has_a_new_dry_run() {
    let mut story = changed(fills_cache("Running"), |story| {
        story.until(Deploying).step();
    });
    assert!(story.status().state.accepted_at.is_some());
    let status = story.object.status.as_mut().expect("a status");
    perfval_run::status::enter(status, Sizing, story.now);
    assert!(story.status().state.accepted_at.is_none());
}

/// Dynamo's webhook may go down while the cache is filled for half an hour.
#[test]
fn a_refusal_after_the_fill_is_reported() {
    let filled = |admission: Seen<DryRunResult>| {
        let mut story = fills_cache("Running");
        story.until(Deploying).step();
        story.step();
        (story.cache_job, story.admission) = (Some("Complete"), admission);
        story.step();
        assert!(!story.deployed);
        story
    };
    let mut away = filled(Seen::Unknown("dry run: 500: failed calling webhook".to_owned()));
    away.assert_at(Deploying, "CallFailed");
    away.assert_message("failed calling webhook");
    away.admission = Seen::Present(DryRunResult::Accepted);
    away.assert_passes();

    let refused = filled(Seen::Present(DryRunResult::Rejected("webhook says no".to_owned())));
    refused.assert_error("DeploymentRejected");
}
