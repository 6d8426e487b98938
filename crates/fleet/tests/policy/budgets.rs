//! Budgets.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{World, ago, at, ended, now, phase, ready, targets};

/// Number of validations that ten nodes get at once; five have a stale verdict.
fn started(budgets: &Value) -> (usize, usize) {
    let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names, &json!({"budgets": budgets}));
    for name in &names[5..] {
        world.measure(name, "Passed", ago(200));
    }
    let decision = world.decide();
    let stale = targets(&decision)
        .iter()
        .filter(|name| names[5..].contains(name))
        .count();
    (decision.create.len() - stale, stale)
}

#[test]
fn the_tightest_budget_of_a_reason_applies() {
    let cases = [
        (json!([{"nodes": 3}]), (3, 0)),
        (json!([{"nodes": "3"}]), (3, 0)),
        (json!([{"nodes": 0}]), (0, 0)),
        (json!([{"nodes": "0%"}]), (0, 0)),
        (json!([{"nodes": "100%"}]), (5, 5)),
        // Rounded up, so that a small percentage is at least one node.
        (json!([{"nodes": "1%"}]), (1, 0)),
        (json!([{"nodes": "11%"}]), (2, 0)),
        (json!([{"nodes": "50%"}, {"nodes": 4}]), (4, 0)),
        (json!([{"nodes": 2, "reasons": ["NeverMeasured"]}]), (2, 5)),
        (json!([{"nodes": 1, "reasons": ["Stale"]}]), (5, 1)),
        (json!([{"nodes": 1, "reasons": ["Stale"]}, {"nodes": 3}]), (3, 0)),
        (
            json!([{"nodes": 6}, {"nodes": 2, "reasons": ["NeverMeasured"]}]),
            (2, 4),
        ),
        // The cost of the first validation is unknown.
        (json!([{"gpuMinutesPerDay": 1000}]), (1, 0)),
        (json!([{"gpuMinutesPerDay": 0}]), (0, 0)),
    ];
    for (budgets, expected) in cases {
        assert_eq!(started(&budgets), expected, "{budgets}");
    }
}

#[test]
fn a_suspended_validation_uses_no_minutes_once_its_gpus_are_back() {
    let mut world = World::new(&["n1"], &json!({}));
    let mut status = ended("Passed", now());
    (status["phase"], status["verdict"]) = (json!("Suspended"), json!(null));
    let minutes = |minutes| now() - TimeDelta::minutes(minutes);
    status["operatorState"]["timeline"] = json!([
        {"phase": "Deploying", "startedAt": minutes(100), "completedAt": minutes(95)},
        {"phase": "CleaningUp", "startedAt": minutes(95), "completedAt": minutes(90)},
        {"phase": "Suspended", "startedAt": minutes(90)},
    ]);
    world.create(&status);
    assert_eq!(
        world.decide().status.gpu_minutes_today,
        Some(80),
        "8 GPUs for 10 minutes"
    );
}

/// A run of ten minutes that only judged saved trials by changed gates.
#[test]
fn a_run_that_judges_saved_trials_again_uses_no_minutes() {
    let mut world = World::new(&["n1"], &json!({}));
    let mut status = ended("Passed", now());
    status["operatorState"]["judgedRun"] = json!(1);
    world.create(&status);
    assert_eq!(world.decide().status.gpu_minutes_today, Some(0));
}

#[test]
fn active_validations_use_a_budget() {
    let mut world = World::new(&["n1", "n2", "n3"], &json!({"budgets": [{"nodes": 2}]}));
    world.create(&phase("Sizing"));
    assert!(world.decide().create.is_empty());
    world.validations.pop();
    assert_eq!(world.decide().create.len(), 1);
}

/// Its node is dead, so pods stay. The second one had no verdict, and the last one was suspended and is gone at last.
#[test]
fn a_removal_that_takes_too_long_holds_its_node_and_no_budget() {
    let minutes = |minutes| ago(11) + TimeDelta::minutes(minutes);
    let mut over = ended("Error", minutes(0));
    over["phase"] = json!("CleaningUp");
    over["placement"]["node"] = json!("n1");
    over["conditions"][0]["status"] = json!("False");
    over["operatorState"] = json!({"leftovers": "Overdue", "timeline": [
        {"phase": "Deploying", "startedAt": minutes(-10), "completedAt": minutes(-5)},
        {"phase": "CleaningUp", "startedAt": minutes(-5)},
    ]});
    let mut unjudged = over.clone();
    (unjudged["verdict"], unjudged["run"]["completedAt"]) = (Value::Null, Value::Null);
    let mut suspended = unjudged.clone();
    suspended["phase"] = json!("Suspended");
    suspended["conditions"][0]["status"] = json!("True");
    suspended["operatorState"]["timeline"][1]["completedAt"] = json!(now());
    for status in [over, unjudged, suspended] {
        let budgets = json!([{"nodes": 1}, {"gpuMinutesPerDay": 100}]);
        let mut world = World::new(&["n1", "n2"], &json!({"budgets": budgets}));
        world.create(&status);
        let decision = world.decide();
        assert_eq!(targets(&decision), ["n2"], "{status}");
        let nodes = decision.status.nodes.map(|nodes| (nodes.running, nodes.busy));
        assert_eq!(nodes, Some((0, 1)), "{status}");
        assert_eq!(
            decision.status.gpu_minutes_today,
            Some(80),
            "8 GPUs until the cleanup's time-out: {status}"
        );
        // Its GPU minutes of today would go with it.
        world.nodes.clear();
        assert_eq!(world.decide().delete, [], "{status}");
    }
}

/// It was deleted without a verdict. Its objects are gone, and another's finalizer holds it.
#[test]
fn a_run_that_only_the_finalizer_of_others_holds_uses_no_budget() {
    let mut status = ended("Error", now());
    status["phase"] = json!("CleaningUp");
    (status["verdict"], status["run"]["completedAt"]) = (Value::Null, Value::Null);
    let mut world = World::new(&["n1", "n2"], &json!({"budgets": [{"nodes": 1}]}));
    world.create(&status);
    let decision = world.decide();
    assert_eq!(targets(&decision), ["n2"]);
    assert_eq!(decision.status.nodes.map(|nodes| nodes.running), Some(0));
}

#[test]
fn gpu_minutes_of_today_use_a_budget() {
    let spec = json!({"budgets": [{"nodes": 1}, {"gpuMinutesPerDay": 80}]});
    let mut world = World::new(&["n1", "n2"], &spec);
    world.create(&ended("Passed", now()));
    let decision = world.decide();
    assert_eq!(decision.status.gpu_minutes_today, Some(80));
    assert!(decision.create.is_empty());
    assert_eq!(ready(&decision).1, "Reconciled");
    world.now += TimeDelta::hours(12);
    let decision = world.decide();
    assert_eq!(decision.status.gpu_minutes_today, Some(0));
    assert_eq!(targets(&decision), ["n2"]);
}

/// A finished validation of 80 GPU minutes on the day before, and an active one.
#[test]
fn active_validations_reserve_their_gpu_minutes() {
    let started = |minutes: i64, active: &Value| {
        let mut world = World::new(&["n1", "n2", "n3", "n4", "n5"], &json!({"budgets": [{"nodes": 1}]}));
        world.create(&ended("Passed", now()));
        // The day after: nothing is used yet.
        world.now += TimeDelta::hours(24);
        world.create(active);
        world.policies[0].spec.budgets =
            serde_json::from_value(json!([{"gpuMinutesPerDay": minutes}])).expect("budgets");
        world.decide().create.len()
    };
    let waiting = phase("Sizing");
    assert_eq!(started(80, &waiting), 0);
    assert_eq!(
        started(81, &waiting),
        1,
        "the last one of a day may end beyond the budget"
    );
    assert_eq!(started(161, &waiting), 2);
    let mut active = ended("Passed", now());
    let since = now() + TimeDelta::hours(24) - TimeDelta::minutes(4);
    active["phase"] = json!("Benchmarking");
    active["verdict"] = Value::Null;
    active["conditions"] = json!([]);
    active["operatorState"] = json!({"timeline": [{"phase": "Deploying", "startedAt": since}]});
    assert_eq!(started(80, &active), 0, "32 minutes used and 48 reserved");
    assert_eq!(started(81, &active), 1);
}

#[test]
fn the_estimated_end_respects_gpu_minutes() {
    let spec = json!({"budgets": [{"nodes": 1}, {"gpuMinutesPerDay": 160}]});
    let mut world = World::new(&["n1", "n2", "n3", "n4", "n5", "n6"], &spec);
    world.create(&ended("Passed", now()));
    // One more today, two tomorrow, and two on the day after.
    let expected = at("2026-11-22T00:00:00Z");
    assert_eq!(world.decide().status.expected_completion_time, Some(expected));
    // Budgets for other reasons limit none of them.
    let scheduled = json!({"gpuMinutesPerDay": 80, "reasons": ["Scheduled"]});
    let budgets = json!([{"nodes": 1}, {"gpuMinutesPerDay": 0, "reasons": ["Stale"]}, scheduled]);
    world.policies[0].spec.budgets = serde_json::from_value(budgets).expect("budgets");
    let expected = world.decide().status.expected_completion_time;
    assert_eq!(expected, Some(now() + TimeDelta::minutes(60)));
    // Nodes that a budget of zero rules out are not waited for: only n2 is left.
    world.measure("n2", "Passed", ago(24 * 30));
    let budgets = json!([{"nodes": 1}, {"nodes": 0, "reasons": ["NeverMeasured"]}]);
    world.policies[0].spec.budgets = serde_json::from_value(budgets).expect("budgets");
    let expected = world.decide().status.expected_completion_time;
    assert_eq!(expected, Some(now() + TimeDelta::minutes(20)));
}

#[test]
fn an_error_shows_no_cost() {
    let spec = json!({"budgets": [{"nodes": 1}, {"gpuMinutesPerDay": 1000}]});
    let mut world = World::new(&["n1", "n2", "n3"], &spec);
    world.create(&ended("Error", now()));
    world.policies[0].spec.budgets = serde_json::from_value(json!([{"gpuMinutesPerDay": 1000}])).expect("budgets");
    assert_eq!(world.decide().create.len(), 1, "the cost is still unknown");
}

/// A person asked for it, and the reports of earlier runs would go with it. So would their minutes, which would be free again.
#[test]
fn a_waiting_rerun_stays_and_a_waiting_run_of_the_policy_as_long_as_its_minutes_count() {
    let deleted = |budgets: Value, trigger: &str| {
        let mut world = World::new(&["n1"], &json!({"budgets": budgets}));
        let mut status = phase("Sizing");
        status["operatorState"]["earlierGpuTime"] = json!({"until": now(), "seconds": 600});
        status["run"] = json!({"number": 2, "trigger": trigger, "generation": 1, "startedAt": now()});
        world.create(&status);
        world.now += TimeDelta::minutes(20);
        world.decide().delete.len()
    };
    assert_eq!(deleted(json!([{"nodes": 1}]), "Rerun"), 0);
    assert_eq!(deleted(json!([{"nodes": 1}]), "Preempted"), 1);
    assert_eq!(
        deleted(json!([{"nodes": 1}, {"gpuMinutesPerDay": 100}]), "Preempted"),
        0
    );
}

#[test]
fn earlier_runs_of_today_use_a_budget() {
    let mut world = World::new(&["n1"], &json!({}));
    let mut status = ended("Passed", now());
    status["operatorState"]["earlierGpuTime"] = json!({"until": ago(1), "seconds": 600});
    world.create(&status);
    assert_eq!(world.decide().status.gpu_minutes_today, Some(90));
    world.now += TimeDelta::hours(12);
    assert_eq!(world.decide().status.gpu_minutes_today, Some(0));
}

#[test]
fn only_minutes_after_midnight_count_for_today() {
    let mut world = World::new(&["n1"], &json!({}));
    let mut status = ended("Passed", now() - TimeDelta::minutes(12 * 60 - 4));
    status["placement"]["gpus"] = json!(2);
    world.create(&status);
    assert_eq!(world.decide().status.gpu_minutes_today, Some(8));
}

#[test]
fn a_budget_of_zero_is_reported() {
    let mut world = World::new(
        &["n1"],
        &json!({"budgets": [{"nodes": 0, "reasons": ["NeverMeasured"]}]}),
    );
    let message = "1 node is due, but spec.budgets allows no validation. Write a budget above 0.";
    assert_eq!(ready(&world.decide()), ("False", "BudgetZero", message));
    // A reason that a budget excludes is not hidden by the others.
    world.nodes.push(crate::node("n2"));
    world.measure("n2", "Passed", now() - TimeDelta::days(30));
    let message = "0 of 2 nodes have a fresh verdict. 1 node is due (NeverMeasured), but spec.budgets allows no validation for this \
                   reason. Write a budget above 0.";
    assert_eq!(ready(&world.decide()), ("True", "Reconciled", message));
    world.measure("n1", "Passed", ago(1));
    assert_eq!(ready(&world.decide()).1, "Reconciled");
}
