//! Times at which nodes are due, and windows of budgets.

use perfval_fleet::policy::PolicyDecision;
use serde_json::{Value, json};

use crate::{World, ago, ready, targets};

/// Two nodes at noon, measured an hour and fourteen hours ago.
fn world(change: &Value) -> World {
    let mut world = World::new(&["n0", "n1"], change);
    world.measure("n0", "Passed", ago(1));
    world.measure("n1", "Passed", ago(14));
    world
}

fn reasons(decision: &PolicyDecision) -> Vec<String> {
    let annotations = decision.create.iter().map(|child| child.metadata.annotations.clone());
    annotations
        .map(|all| all.expect("annotations")["perfvalidation.dev/due-reason"].clone())
        .collect()
}

#[test]
fn a_node_is_due_if_its_verdict_is_older_than_the_last_time() {
    let due = |cron: &str, zone: &str| {
        let decision = world(&json!({"schedule": {"cron": cron}, "timeZone": zone})).decide();
        assert_eq!(decision.status.nodes.map(|nodes| nodes.fresh), Some(2));
        (targets(&decision).len(), reasons(&decision))
    };
    assert_eq!(due("0 1 * * *", "UTC"), (1, vec!["Scheduled".to_owned()]));
    assert_eq!(due("0 21 * * *", "UTC"), (0, Vec::new()), "both were measured since");
    // 22:30 in Berlin is 21:30 UTC, before the older measurement; in New York it is 3:30 UTC.
    assert_eq!(due("30 22 * * *", "Europe/Berlin").0, 0);
    assert_eq!(due("30 22 * * *", "America/New_York").0, 1);
    assert_eq!(due("45 11 * * *", "UTC").0, 2);
}

#[test]
fn after_the_deadline_the_next_time_counts() {
    let due = |deadline: &str| {
        let schedule = json!({"cron": "0 1 * * *", "startingDeadline": deadline});
        targets(&world(&json!({"schedule": schedule})).decide()).len()
    };
    assert_eq!((due("11h"), due("11h1m")), (0, 1));
}

#[test]
fn a_budget_applies_in_its_window() {
    let started = |window: Value| {
        let budgets = json!([{"nodes": "100%"}, {"nodes": 0, "reasons": ["Stale"], "window": window}]);
        let mut world = world(&json!({"budgets": budgets, "freshness": {"maxAge": "1h"}}));
        world.measure("n1", "Passed", ago(400));
        let decision = world.decide();
        assert_eq!(ready(&decision).1, "Reconciled", "a closed window is no budget of zero");
        targets(&decision).len()
    };
    assert_eq!(
        started(json!({"cron": "0 8 * * MON-FRI", "duration": "10h"})),
        0,
        "a Friday"
    );
    assert_eq!(started(json!({"cron": "0 8 * * MON-FRI", "duration": "4h"})), 2);
    assert_eq!(started(json!({"cron": "0 8 * * SAT,SUN", "duration": "10h"})), 2);
}

#[test]
fn times_that_cannot_be_used_have_a_remedy_and_start_nothing() {
    for (change, field) in [
        (
            json!({"schedule": {"cron": "0 0 31 2 *"}}),
            "spec.schedule.cron: \"0 0 31 2 *\" names no time.",
        ),
        (
            json!({"schedule": {"cron": "0 1 * * *"}, "timeZone": "Mars/Olympus"}),
            "spec.timeZone: \"Mars/Olympus\" is no IANA",
        ),
        (
            json!({"budgets": [{"nodes": 5}, {"nodes": 0, "window": {"cron": "70 1 * * *", "duration": "1h"}}]}),
            "spec.budgets[1].window.cron: \"70 1 * * *\": ",
        ),
    ] {
        let decision = world(&change).decide();
        let (status, reason, message) = ready(&decision);
        assert_eq!((status, reason), ("False", "ScheduleInvalid"), "{change}");
        assert!(message.starts_with(field), "{message}");
        assert_eq!(targets(&decision).len(), 0, "{change}");
    }
}
