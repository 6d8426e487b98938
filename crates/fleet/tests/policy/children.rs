//! Validations of a policy: names, objects, pauses, and the end of each.

use chrono::TimeDelta;
use perfval_fleet::policy::PolicyDecision;
use serde_json::json;

use crate::{World, ago, ended, names, node, now, phase, policy, targets};

fn deleted(decision: &PolicyDecision) -> Vec<(&str, Option<&str>)> {
    let deleted = decision.delete.iter();
    deleted
        .map(|deletion| (deletion.name.as_str(), deletion.set_back.as_deref()))
        .collect()
}

#[test]
fn a_validation_is_the_template_with_its_node_and_its_owner() {
    let mut world = World::new(&["n1"], &json!({}));
    world.nodes[0].name = "n1.example".to_owned();
    let created = world.decide().create.remove(0);
    let metadata = serde_json::to_value(&created.metadata).expect("JSON");
    assert_eq!(
        metadata,
        json!({
            "name": "p-n1-a259d84e-1", "namespace": "perf",
            "labels": {"team": "a", "perfvalidation.dev/policy": "p", "perfvalidation.dev/node": "n1"},
            "annotations": {"perfvalidation.dev/errors-before": "0", "perfvalidation.dev/due-reason": "NeverMeasured"},
            "ownerReferences": [{
                "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "name": "p", "uid": "uid-p",
                "controller": true, "blockOwnerDeletion": false,
            }],
        })
    );
    let mut expected = world.policies[0].spec.validation_template.spec.clone();
    expected
        .placement
        .node_selector
        .insert("kubernetes.io/hostname".to_owned(), "n1".to_owned());
    "30m".clone_into(&mut expected.timeouts.sizing);
    assert_eq!(created.spec, expected);
}

#[test]
fn the_same_attempt_has_the_same_name_and_the_next_one_another() {
    let mut world = World::new(&["n1", "n2"], &json!({}));
    let first = names(&world.decide().create);
    // The operator died before it saw that it had created them.
    assert_eq!(names(&world.decide().create), first);
    world.create(&ended("Passed", now()));
    world.now += TimeDelta::hours(200);
    let next = world.create(&ended("Passed", world.now));
    assert_eq!(next.len(), 2);
    assert!(
        next.iter().all(|name| name.ends_with("-2") && !first.contains(name)),
        "{next:?}"
    );
    // The first one is deleted, and its number is not used again.
    world.validations.retain(|validation| validation.name.ends_with("-2"));
    world.now += TimeDelta::hours(200);
    let next = names(&world.decide().create);
    assert!(
        next.len() == 2 && next.iter().all(|name| name.ends_with("-3")),
        "{next:?}"
    );
}

#[test]
fn the_number_of_an_attempt_does_not_overflow() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&ended("Passed", now()));
    world.validations[0].name = format!("p-{}", u64::MAX);
    world.now += TimeDelta::hours(200);
    let next = names(&world.decide().create);
    assert!(next[0].ends_with(&u64::MAX.to_string()), "{next:?}");
}

#[test]
fn a_recreated_policy_uses_no_name_of_the_deleted_one() {
    let mut world = World::new(&["n1"], &json!({}));
    let first = names(&world.decide().create);
    world.policies[0].metadata.uid = Some("another".to_owned());
    assert_ne!(names(&world.decide().create), first);
}

#[test]
fn long_names_stay_short_and_apart() {
    let (one, other) = ("Gpu.".repeat(15) + "a", "Gpu.".repeat(15) + "b");
    let mut world = World::new(&[&one, &other], &json!({}));
    world.policies = vec![policy(&"p".repeat(63), &json!({}))];
    let created = names(&world.decide().create);
    assert_ne!(created[0], created[1]);
    for name in created {
        assert!(name.len() <= 55, "{name}");
        assert!(
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{name}"
        );
    }
}

#[test]
fn a_run_that_cannot_measure_doubles_the_pause_of_its_node() {
    for verdict in ["Error", "Skipped"] {
        let mut world = World::new(&["n1"], &json!({"validationHistory": {"failed": 1}}));
        let mut pauses = Vec::new();
        for _ in 0..10 {
            world.create(&ended(verdict, world.now));
            let gone = world.decide().delete;
            world
                .validations
                .retain(|known| gone.iter().all(|deletion| deletion.uid != known.uid));
            assert_eq!(world.validations.len(), 1);
            let began = world.now;
            while world.decide().create.is_empty() {
                world.now += TimeDelta::minutes(10);
            }
            pauses.push((world.now - began).num_minutes());
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440], "{verdict}");
        world.create(&ended("Passed", world.now));
        world.now += TimeDelta::hours(168);
        assert_eq!(targets(&world.decide()), ["n1"], "a measurement ends the pauses");
    }
}

#[test]
fn a_new_machine_has_no_pause_of_the_one_before() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&ended("Error", world.now));
    world.now += TimeDelta::minutes(10);
    world.create(&ended("Error", world.now));
    assert!(world.decide().create.is_empty());
    // The cleanup of the last run outlasted its machine.
    world.nodes[0].created_at = world.now - TimeDelta::minutes(1);
    let next = world.decide().create.remove(0);
    let annotations = next.metadata.annotations.expect("annotations");
    assert_eq!(annotations["perfvalidation.dev/errors-before"], "0");
}

#[test]
fn a_validation_goes_with_its_node() {
    let mut world = World::new(&["n1", "n2"], &json!({}));
    let created = world.create(&phase("Sizing"));
    world.nodes.remove(0);
    assert_eq!(deleted(&world.decide()), [(created[0].as_str(), None)]);
    world.validations[0].is_deleting = true;
    assert_eq!(world.decide().delete, []);
}

#[test]
fn a_run_continues_and_its_result_stays_for_an_hour_although_the_node_left() {
    let mut world = World::new(&["n1"], &json!({}));
    let created = world.create(&phase("Benchmarking"));
    world.nodes.clear();
    assert_eq!(world.decide().delete, []);
    world.validations[0].outline.state = perfval_fleet::policy::RunState::Ended {
        at: world.now,
        verdict: Some(perfval_api::Verdict::Error),
    };
    world.now += TimeDelta::minutes(60);
    assert_eq!(world.decide().delete, []);
    world.now += TimeDelta::minutes(1);
    assert_eq!(deleted(&world.decide()), [(created[0].as_str(), None)]);
}

#[test]
fn a_label_that_is_missing_for_a_moment_costs_no_result() {
    let mut world = World::new(&["n1"], &json!({}));
    let created = world.create(&ended("Passed", world.now));
    world.now += TimeDelta::hours(48);
    let mut look = |nodes: &[&str], minutes: i64| {
        world.now += TimeDelta::minutes(minutes);
        world.nodes = nodes.iter().map(|name| node(name)).collect();
        let deletions = world.decide().delete.into_iter();
        deletions.map(|deletion| deletion.name).collect::<Vec<_>>()
    };
    let none = Vec::<String>::new();
    assert_eq!(look(&[], 1), none);
    assert_eq!(look(&[], 59), none);
    assert_eq!(look(&["n1"], 1), none, "the label is back");
    assert_eq!(look(&[], 1), none);
    assert_eq!(look(&[], 60), none);
    assert_eq!(look(&[], 1), created, "the node left");
}

#[test]
fn a_rerun_waits_the_full_time_again() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&phase("Sizing"));
    world.now += TimeDelta::hours(2);
    world.validations[0].outline.phase_since = Some(world.now - TimeDelta::minutes(9));
    assert_eq!(world.decide().delete, []);
    world.now += TimeDelta::minutes(2);
    assert_eq!(world.decide().delete.len(), 1);
}

#[test]
fn a_validation_that_gets_no_gpus_gives_up_and_its_node_goes_to_the_back() {
    let mut world = World::new(&["n1", "n2"], &json!({}));
    let created = world.create(&phase("Sizing"));
    let deploying = world.decide_all();
    assert_eq!(deploying[0].delete, []);
    world.validations[1].outline.state = perfval_fleet::policy::RunState::Active;
    world.now += TimeDelta::minutes(11);
    assert_eq!(deleted(&world.decide()), [(created[0].as_str(), Some("n1"))]);
}

#[test]
fn a_missing_prerequisite_ends_a_validation_before_it_gives_up() {
    for (template, expected) in [("24h", "5m"), ("4m", "4m")] {
        let mut world = World::new(&["n1"], &json!({}));
        let timeouts = &mut world.policies[0].spec.validation_template.spec.timeouts;
        template.clone_into(&mut timeouts.prerequisites);
        let created = world.decide().create.remove(0);
        assert_eq!(created.spec.timeouts.prerequisites, expected);
    }
}

#[test]
fn a_suspended_validation_stays_and_keeps_its_node() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&phase("Suspended"));
    world.now += TimeDelta::hours(1);
    let decision = world.decide();
    assert_eq!((decision.create.len(), decision.delete.len()), (0, 0));
    assert_eq!(decision.status.nodes.map(|nodes| nodes.busy), Some(1));
}

/// Finished validations of one node, the oldest first: their verdicts, and the numbers of those that are deleted.
fn surplus(verdicts: &[&str], spec: &serde_json::Value) -> Vec<usize> {
    let mut world = World::new(&["n1"], spec);
    "1h".clone_into(&mut world.policies[0].spec.freshness.max_age);
    for (number, verdict) in verdicts.iter().enumerate() {
        world.now = ago(2000) + TimeDelta::hours(100 * i64::try_from(number).expect("few"));
        world.create(&ended(verdict, world.now));
        assert_eq!(world.validations.len(), number + 1);
    }
    let ends = world.decide();
    let mut gone: Vec<usize> = ends
        .delete
        .iter()
        .filter_map(|deletion| deletion.name.rsplit('-').next()?.parse().ok())
        .collect();
    gone.sort_unstable();
    gone
}

#[test]
fn the_newest_finished_validations_are_kept() {
    let history = |failed: i32, passed: i32| json!({"validationHistory": {"failed": failed, "passed": passed}});
    assert_eq!(surplus(&["Passed", "Passed", "Passed"], &json!({})), [1, 2]);
    assert_eq!(
        surplus(&["Failed", "Error", "Failed", "Inconclusive", "Passed"], &json!({})),
        [1]
    );
    assert_eq!(surplus(&["Passed", "Passed", "Failed"], &history(1, 0)), [1, 2]);
    // The newest one stays: the number of the next attempt follows from it.
    assert_eq!(surplus(&["Failed", "Failed", "Passed"], &history(1, 0)), [1]);
}

#[test]
fn validations_of_today_stay_while_a_budget_counts_their_minutes() {
    let count = |budgets: serde_json::Value| {
        let mut world = World::new(&["n1"], &json!({"budgets": budgets, "freshness": {"maxAge": "1h"}}));
        for hours in [14, 4, 2] {
            world.now = ago(hours);
            world.create(&ended("Passed", world.now));
        }
        world.now = now();
        world.decide().delete.len()
    };
    assert_eq!(count(json!([{"nodes": 1}])), 2);
    assert_eq!(count(json!([{"nodes": 1, "gpuMinutesPerDay": 1000}])), 1);

    let mut world = World::new(&["n1"], &json!({"budgets": [{"gpuMinutesPerDay": 1000}]}));
    world.now = ago(2);
    world.create(&ended("Passed", world.now));
    world.nodes.clear();
    assert_eq!(world.decide().delete, []);
    world.now = now();
    assert_eq!(world.decide().delete, [], "the node left today");
}
