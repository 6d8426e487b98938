//! Condition `Ready`, suspension and refusals.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use perfval_fleet::calibration::Calibration;
use perfval_fleet::detectable::DetectableLoss;
use perfval_fleet::policy::{CreateRefusal, EnvironmentShift, PolicyFacts, Snapshot, decide, unreadable};
use serde_json::{Value, json};

use crate::{World, ago, ended, now, phase, policy, ready};

fn refusal(is_namespace_missing: bool) -> CreateRefusal {
    CreateRefusal {
        is_namespace_missing,
        message: "403 Forbidden: no quota".to_owned(),
        until: now() + TimeDelta::minutes(1),
    }
}

#[test]
fn a_suspended_policy_creates_nothing_and_reports_its_nodes() {
    let mut world = World::new(&["n1", "n2"], &json!({}));
    world.measure("n1", "Passed", ago(1));
    assert_eq!(world.create(&phase("Benchmarking")).len(), 1);
    world.policies[0].spec.suspend = true;
    let decision = world.decide();
    assert_eq!((decision.create.len(), decision.delete.len()), (0, 0));
    assert_eq!(decision.status.nodes.map(|nodes| nodes.running), Some(1));
    assert_eq!(decision.status.fresh_percent, Some(50));
    assert_eq!((ready(&decision).0, ready(&decision).1), ("True", "Suspended"));
}

#[test]
fn a_policy_without_nodes_is_not_ready() {
    let decision = World::new(&[], &json!({})).decide();
    assert_eq!((ready(&decision).0, ready(&decision).1), ("False", "NoNodes"));
    assert_eq!(decision.status.fresh_percent, None);
}

#[test]
fn a_refusal_is_reported_and_ends_all_attempts_for_a_while() {
    let mut world = World::new(&["n1"], &json!({}));
    world.refusal = Some(refusal(false));
    let decision = world.decide();
    assert!(decision.create.is_empty());
    let message = "No validation can be created: 403 Forbidden: no quota. Remove the cause; the operator tries again every few minutes.";
    assert_eq!(ready(&decision), ("False", "Refused", message));
    world.now += TimeDelta::minutes(1);
    let decision = world.decide();
    assert_eq!(decision.create.len(), 1);
    assert_eq!(ready(&decision).1, "Refused", "until an attempt succeeds");
}

#[test]
fn an_old_refusal_without_another_attempt_is_not_reported() {
    let mut world = World::new(&["n1"], &json!({}));
    world.refusal = Some(refusal(false));
    world.measure("n1", "Passed", now());
    world.now += TimeDelta::days(1);
    assert_eq!(ready(&world.decide()).1, "Reconciled");
    world.measured.clear();
    assert_eq!(ready(&world.decide()).1, "Refused");
}

#[test]
fn a_validation_that_measured_nothing_is_named() {
    let mut world = World::new(&["n1", "n2"], &json!({}));
    let created = world.create(&ended("Error", now()));
    let decision = world.decide();
    let (_, reason, message) = ready(&decision);
    assert_eq!(reason, "Reconciled");
    let expected = format!(
        "0 of 2 nodes have a fresh verdict. The last validations of 2 nodes measured nothing. See why: kubectl describe perfval -n perf {}",
        created[0]
    );
    assert_eq!(message, expected);
}

#[test]
fn nodes_whose_validations_do_not_start_are_reported() {
    let mut world = World::new(&["n1", "n2", "n3", "n4"], &json!({}));
    world.set_back = ["n1", "n2", "n3"].map(|node| (node.to_owned(), now())).into();
    // Others use it now.
    world.nodes[2].is_free = false;
    let expected = "0 of 4 nodes have a fresh verdict. The last validations of 2 nodes did not start, such as that of n1. If this repeats, \
                    check the quotas of namespace perf, the requests of the template and the operator's log.";
    assert_eq!(ready(&world.decide()), ("True", "Reconciled", expected));
    world.create(&phase("Sizing"));
    assert_eq!(ready(&world.decide()).2, expected, "the next attempts wait too");
    world.validations.clear();
    world.create(&phase("Benchmarking"));
    assert_eq!(ready(&world.decide()).2, "0 of 4 nodes have a fresh verdict.");
}

#[test]
fn a_setback_before_the_last_begun_validation_is_not_reported() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&phase("Sizing"));
    world.validations[0].outline.began_at = Some(world.now);
    for (minutes, is_reported) in [(-10, false), (10, true)] {
        world.set_back = [("n1".to_owned(), world.now + TimeDelta::minutes(minutes))].into();
        let decision = world.decide();
        assert_eq!(ready(&decision).2.contains("did not start"), is_reported, "{minutes}");
    }
}

#[test]
fn outliers_and_small_nodes_are_reported_beside_another_reason() {
    let names: Vec<String> = (10..32).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names, &json!({}));
    let outliers = names[..21]
        .iter()
        .map(|node| json!({"node": node, "reason": "BelowGate", "validation": "perf/earlier"}));
    world.comparison.outliers = serde_json::from_value(outliers.collect::<Value>()).expect("outliers");
    world.nodes[0].is_free = false;
    world.nodes[0].is_too_small = true;
    let addition = " status.outliers lists the worst 20 of 21. 1 due node has fewer whole GPUs than a validation needs, such as n10. If \
                    GPUs are missing there, repair it. Else exclude such nodes in spec.nodeSelector.";

    world.refusal = Some(refusal(false));
    let refused = world.decide();
    world.policies[0].spec.suspend = true;
    let suspended = world.decide();
    world.policies[0].spec.suspend = false;
    // Of the same age, and first by name.
    let other = policy("a", &json!({}));
    let missed_since = BTreeMap::new();
    let facts = [(&other, &world.nodes[21..]), (&world.policies[0], &world.nodes[..])];
    let facts = facts.map(|(policy, nodes)| PolicyFacts {
        policy,
        nodes,
        comparison: &world.comparison,
        refusal: None,
        set_back: &world.set_back,
        missed_since: &missed_since,
    });
    let overlapping = decide(&Snapshot {
        policies: &facts,
        measured: &BTreeMap::new(),
        baselines: &BTreeMap::new(),
        validations: &[],
        now: now(),
    })
    .remove(1);
    for (decision, expected) in [
        (refused, "Refused"),
        (suspended, "Suspended"),
        (overlapping, "Overlapping"),
    ] {
        let (_, reason, message) = ready(&decision);
        assert_eq!(reason, expected);
        assert!(message.ends_with(addition), "{message}");
    }
}

#[test]
fn a_gate_that_most_nodes_miss_is_named() {
    let mut world = World::new(&["n1", "n2", "n3", "n4"], &json!({}));
    for (node, verdict) in [("n1", "Failed"), ("n2", "Failed"), ("n3", "Passed"), ("n4", "Passed")] {
        world.measure(node, verdict, now());
    }
    assert_eq!(ready(&world.decide()).2, "4 of 4 nodes have a fresh verdict.");
    world.measure("n3", "Failed", now());
    let expected =
        "4 of 4 nodes have a fresh verdict. 3 of 4 nodes failed: check spec.validationTemplate, such as its gates.";
    assert_eq!(ready(&world.decide()), ("True", "Reconciled", expected));
    world.policies[0].spec.suspend = true;
    let decision = world.decide();
    assert!(
        ready(&decision).2.contains("3 of 4 nodes failed"),
        "{}",
        ready(&decision).2
    );
}

#[test]
fn a_missing_namespace_is_reported_by_name() {
    let mut world = World::new(&["n1"], &json!({}));
    world.refusal = Some(refusal(true));
    let decision = world.decide();
    assert_eq!(ready(&decision).1, "NamespaceMissing");
    assert!(
        ready(&decision)
            .2
            .starts_with("Namespace perf does not exist. Create it")
    );
}

#[test]
fn an_unreadable_cluster_changes_the_condition_alone() {
    let mut world = World::new(&["n1"], &json!({}));
    world.create(&ended("Passed", now()));
    let status = world.decide().status;
    world.policies[0].status = Some(status.clone());
    let unread = unreadable(&world.policies[0], "list Nodes: 403", now());
    assert_eq!(unread.nodes, status.nodes);
    assert_eq!(
        (unread.conditions.len(), unread.conditions[0].status.as_str()),
        (2, "Unknown")
    );
    assert_eq!(unread.conditions[0].reason, "NodesUnreadable");
    assert_eq!(
        unread.conditions[0].message,
        "The operator starts no validation: list Nodes: 403. Check its rights and its log."
    );
}

#[test]
fn a_condition_has_the_time_of_its_last_change() {
    let mut world = World::new(&["n1"], &json!({}));
    let first = world.decide().status;
    world.policies[0].status = Some(first.clone());
    world.now += TimeDelta::hours(1);
    assert_eq!(world.decide().status, first);
    world.nodes.clear();
    let changed = world.decide().status;
    assert_ne!(
        changed.conditions[0].last_transition_time,
        first.conditions[0].last_transition_time
    );
}

#[test]
fn the_reliability_of_the_comparison_is_a_condition_with_a_remedy() {
    let mut world = World::new(&["n1"], &json!({}));
    let reliable = |world: &World| {
        let condition = world.decide().status.conditions.swap_remove(1);
        assert_eq!(condition.type_, "ComparisonReliable");
        (condition.status, condition.reason, condition.message)
    };
    let found = reliable(&world);
    assert_eq!((found.0.as_str(), found.1.as_str()), ("Unknown", "TooFewRuns"));
    assert!(found.2.ends_with("there are 0. Validate more nodes."), "{}", found.2);
    // A small fleet never has enough of them.
    world.comparison.detectable = Some(DetectableLoss {
        gpu: Some(10.1),
        node: Some(11.5),
    });
    let message = "Nine of ten passes report a GPU that is 11 % slower and a node that is 12 % slower.";
    assert!(reliable(&world).2.ends_with(message), "{}", reliable(&world).2);
    world.comparison.detectable = None;
    world.comparison.lacks_speeds = true;
    let found = reliable(&world);
    assert_eq!((found.0.as_str(), found.1.as_str()), ("Unknown", "NothingToCompare"));
    assert!(found.2.ends_with("use DRA with whole GPUs and vLLM."), "{}", found.2);
    world.comparison.lacks_speeds = false;
    world.comparison.calibration = Calibration {
        values: 640,
        ratio: 1.1,
        is_poor: false,
    };
    let found = reliable(&world);
    assert_eq!((found.0.as_str(), found.1.as_str()), ("True", "Calibrated"));
    world.comparison.detectable = Some(DetectableLoss {
        gpu: Some(4.2),
        node: None,
    });
    let message =
        "Nine of ten passes report a GPU that is 5 % slower. Runs vary too much to show that a whole node is slow.";
    assert!(reliable(&world).2.ends_with(message), "{}", reliable(&world).2);
    for (percent, change) in [(-8, "8 % slower"), (5, "5 % faster")] {
        world.comparison.shifted = Some(EnvironmentShift {
            environment: "0123456789ab".to_owned(),
            percent,
            nodes: 12,
        });
        let found = reliable(&world);
        assert_eq!((found.0.as_str(), found.1.as_str()), ("False", "EnvironmentShifted"));
        let start =
            format!("The 12 nodes of environment 0123456789ab are {change} than their own earlier runs at the median");
        assert!(found.2.starts_with(&start), "{}", found.2);
        assert!(found.2.ends_with("delete their NodePerformances."), "{}", found.2);
    }
    world.comparison.too_many = Some(12);
    let found = reliable(&world);
    assert_eq!((found.0.as_str(), found.1.as_str()), ("False", "ManyOutliers"));
    assert!(found.2.starts_with("12 nodes are slow at once"), "{}", found.2);
    world.comparison.calibration.is_poor = true;
    world.comparison.calibration.ratio = 4.2;
    let found = reliable(&world);
    assert_eq!((found.0.as_str(), found.1.as_str()), ("False", "CalibrationPoor"));
    assert!(
        found.2.contains("4 times") && found.2.contains("Let all runs"),
        "{}",
        found.2
    );
}
