//! Confirmations of nodes whose newest run is slow.

use chrono::TimeDelta;
use perfval_fleet::policy::{PolicyDecision, Suspicion};
use serde_json::json;

use crate::{World, ago, ended, now, phase, ready, targets};

/// Nodes `n0`, `n1` and so on with a verdict of the policy that is an hour old; those with the given numbers are suspected.
fn world(nodes: usize, suspected: &[usize], change: &serde_json::Value) -> World {
    let names: Vec<String> = (0..nodes).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names, change);
    for name in &names {
        world.measure(name, "Passed", ago(1));
        let status = world.measured.get_mut(*name).expect("measured");
        status.validation.policy = Some("p".to_owned());
    }
    for number in suspected {
        let suspicion = Suspicion {
            measured_at: ago(1),
            is_decisive: true,
        };
        world.comparison.suspects.insert(format!("n{number}"), suspicion);
    }
    world
}

fn reasons(decision: &PolicyDecision) -> Vec<&str> {
    let annotations = decision
        .create
        .iter()
        .filter_map(|child| child.metadata.annotations.as_ref());
    annotations
        .map(|all| all["perfvalidation.dev/due-reason"].as_str())
        .collect()
}

#[test]
fn a_suspected_node_gets_an_ordinary_validation() {
    let world = world(3, &[1], &json!({}));
    let decision = world.decide();
    assert_eq!(
        (targets(&decision), reasons(&decision)),
        (vec!["n1"], vec!["Confirmation"])
    );
    // Its verdict stays fresh, and the policy reports no due node.
    assert_eq!(decision.status.nodes.map(|nodes| nodes.fresh), Some(3));
    assert_eq!(ready(&decision).1, "Reconciled");
}

#[test]
fn the_confirmation_that_decides_has_five_trials_if_its_rule_allows_it() {
    let confirm = |template: serde_json::Value, is_decisive: bool| {
        let mut world = world(1, &[0], &json!({}));
        world
            .comparison
            .suspects
            .get_mut("n0")
            .expect("a suspicion")
            .is_decisive = is_decisive;
        world.policies[0].spec.validation_template.spec.trials = serde_json::from_value(template).expect("trials");
        let decision = world.decide();
        let trials = &decision.create.first().expect("a confirmation").spec.trials;
        (trials.min, trials.max)
    };
    let trials = |template: serde_json::Value| confirm(template, true);
    assert_eq!(
        confirm(json!({"min": 2}), false),
        (Some(2), 8),
        "the first one is ordinary"
    );
    assert_eq!(trials(json!({})), (Some(5), 8));
    assert_eq!(trials(json!({"min": 6})), (Some(6), 8));
    assert_eq!(trials(json!({"rule": "Single", "max": 1})), (Some(5), 5));
    assert_eq!(trials(json!({"rule": "All", "max": 2})), (Some(2), 2));
    let mut stale = world(1, &[], &json!({}));
    stale.measure("n0", "Passed", ago(200));
    let stale = stale.decide();
    let spec = &stale.create.first().expect("a validation").spec;
    assert_eq!((reasons(&stale), spec.trials.min), (vec!["Stale"], None));
}

#[test]
fn a_newer_run_ends_the_suspicion() {
    let mut world = world(2, &[1], &json!({}));
    // The comparison may be older than the confirmation, and so may the object of the node.
    world.create(&ended("Passed", now()));
    assert_eq!(targets(&world.decide()), Vec::<&str>::new());
    world.validations.clear();
    assert_eq!(targets(&world.decide()), ["n1"]);
    let status = world.measured.get_mut("n1").expect("measured");
    status.measured_at = now();
    assert_eq!(targets(&world.decide()), Vec::<&str>::new());
}

#[test]
fn runs_of_other_owners_are_not_confirmed() {
    let mut world = world(1, &[0], &json!({}));
    let mut of = |policy: Option<&str>| {
        let status = world.measured.get_mut("n0").expect("measured");
        status.validation.policy = policy.map(str::to_owned);
        reasons(&world.decide())
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(Some("other")), Vec::<String>::new());
    // The run of a user is no measurement of a policy.
    assert_eq!(of(None), ["NeverMeasured"]);
}

#[test]
fn confirmations_come_after_nodes_without_a_verdict_and_before_stale_ones() {
    let mut world = world(4, &[2], &json!({}));
    world.measured.remove("n3");
    for name in ["n0", "n1"] {
        world.measure(name, "Failed", ago(500));
    }
    let decision = world.decide();
    assert_eq!(targets(&decision), ["n3", "n2", "n0", "n1"]);
    assert_eq!(reasons(&decision), ["NeverMeasured", "Confirmation", "Stale", "Stale"]);
}

#[test]
fn a_budget_may_name_confirmations() {
    let started = |budgets: serde_json::Value| {
        let mut world = world(8, &[0, 1, 2, 3], &json!({"budgets": budgets}));
        for name in ["n6", "n7"] {
            world.measure(name, "Passed", ago(200));
        }
        let decision = world.decide();
        assert_eq!(ready(&decision).1, "Reconciled");
        let found = reasons(&decision);
        let count = |reason| found.iter().filter(|found| **found == reason).count();
        (count("Confirmation"), count("Stale"))
    };
    assert_eq!(started(json!([{"nodes": 3}])), (3, 0));
    assert_eq!(started(json!([{"nodes": 1, "reasons": ["Confirmation"]}])), (1, 2));
    assert_eq!(started(json!([{"nodes": 0, "reasons": ["Confirmation"]}])), (0, 2));
    assert_eq!(
        started(json!([{"nodes": 1, "reasons": ["Stale"]}, {"nodes": 7}])),
        (4, 1)
    );
}

#[test]
fn a_budget_of_zero_for_confirmations_is_no_fault() {
    let world = world(
        2,
        &[1],
        &json!({"budgets": [{"nodes": 0, "reasons": ["Confirmation"]}]}),
    );
    let decision = world.decide();
    assert!(decision.create.is_empty());
    assert_eq!(ready(&decision).1, "Reconciled");
}

/// Such a node missed every time of the schedule until its verdict was too old.
#[test]
fn a_suspected_node_keeps_to_the_schedule_while_no_budget_allows_confirmations() {
    let started = |budget: serde_json::Value| {
        let budgets = json!([{"nodes": "100%"}, budget]);
        let change = json!({"budgets": budgets, "schedule": {"cron": "45 11 * * *"}});
        let decision = world(2, &[1], &change).decide();
        let targets: Vec<String> = targets(&decision).into_iter().map(str::to_owned).collect();
        let reasons: Vec<String> = reasons(&decision).into_iter().map(str::to_owned).collect();
        (targets.join(" "), reasons.join(" "))
    };
    let scheduled = ("n0 n1".to_owned(), "Scheduled Scheduled".to_owned());
    let confirmed = ("n1 n0".to_owned(), "Confirmation Scheduled".to_owned());
    let in_window = |duration: &str| {
        let window = json!({"cron": "0 8 * * MON-FRI", "duration": duration});
        json!({"nodes": 0, "reasons": ["Confirmation"], "window": window})
    };
    assert_eq!(started(json!({"nodes": 0, "reasons": ["Confirmation"]})), scheduled);
    assert_eq!(started(in_window("10h")), scheduled, "a Friday");
    assert_eq!(started(in_window("4h")), confirmed);
}

#[test]
fn an_active_confirmation_uses_its_own_budget() {
    let budgets = json!([{"nodes": 1, "reasons": ["Confirmation"]}, {"nodes": 1, "reasons": ["Stale"]}]);
    let mut world = world(3, &[0, 1], &json!({"budgets": budgets}));
    world.create(&phase("Benchmarking"));
    world.measure("n2", "Passed", ago(200));
    // The suspicion is over in the meantime, and the run still counts as a confirmation.
    world.comparison.suspects.remove("n0");
    assert_eq!(targets(&world.decide()), ["n2"]);
}

#[test]
fn a_confirmation_without_a_measurement_pauses_its_node() {
    for verdict in ["Error", "Skipped"] {
        let mut world = world(1, &[0], &json!({}));
        world.create(&ended(verdict, now()));
        world.now = now() + TimeDelta::minutes(9);
        assert_eq!(targets(&world.decide()), Vec::<&str>::new(), "{verdict}");
        world.now = now() + TimeDelta::minutes(10);
        assert_eq!(reasons(&world.decide()), ["Confirmation"], "{verdict}");
    }
}

#[test]
fn a_confirmation_without_speeds_pauses_its_node() {
    let confirmed = |status: &serde_json::Value, minutes: i64| {
        let mut world = world(1, &[0], &json!({}));
        world.create(status);
        // The object of the node keeps the slow speeds.
        world.measured.get_mut("n0").expect("measured").measured_at = now();
        let suspicion = world.comparison.suspects.get_mut("n0");
        suspicion.expect("a suspicion").measured_at = now();
        world.now = now() + TimeDelta::minutes(minutes);
        reasons(&world.decide()).len()
    };
    let without = ended("Inconclusive", now());
    assert_eq!((confirmed(&without, 9), confirmed(&without, 10)), (0, 1));
    let mut with = without;
    with["environment"] = json!({"aiperf": "0.13.0"});
    with["workers"] = json!([{"name": "w", "gpus": ["GPU-a"]}]);
    with["operatorState"] = json!({"workers": [{"name": "w", "tokenMsOfTrials": ["8"]}]});
    assert_eq!(confirmed(&with, 9), 1);
}

#[test]
fn a_node_with_an_old_verdict_is_measured_and_not_confirmed() {
    let mut world = world(1, &[0], &json!({}));
    world.now += TimeDelta::hours(168);
    assert_eq!(reasons(&world.decide()), ["Stale"]);
}
