//! The next `NodePerformance` of a node.

mod running;

use chrono::{DateTime, TimeDelta};
use perfval_api::fleet::{NodeIdentity, NodePerformance, NodePerformanceStatus};
use perfval_api::{PerfValidation, Verdict};
use perfval_fleet::margin::own_past_margin;
use perfval_fleet::measurement::Measurement;
use perfval_fleet::node::{self, NodeChange, is_preferred};
use serde_json::{Value, json};

const UID: &str = "node-uid";

/// Decides without former objects.
fn decide<'a>(
    measured: &Measurement,
    node: &NodeIdentity,
    all: impl Iterator<Item = &'a NodePerformance> + Clone,
) -> NodeChange {
    node::decide(measured, node, all, std::iter::empty(), |_| None)
}

/// Node with a uid, in its first boot.
fn node(uid: &str) -> NodeIdentity {
    NodeIdentity {
        uid: uid.to_owned(),
        created_at: DateTime::UNIX_EPOCH,
        boot_id: Some("4b3f0f1a-7c83-4d41-9d0e-3b4d1f6b0c55".to_owned()),
    }
}

/// A finished run on `n1`. Each GPU has a time from one token to the next.
fn validation(run: i64, gpus: &[(&str, i64)]) -> Value {
    let workers = gpus.iter().map(|(gpu, _)| {
        json!({"name": format!("worker-{gpu}"), "gpus": [gpu], "speedOfPeers": {"percent": 97, "plusMinus": 1}})
    });
    let milliseconds = |time: i64| format!("{}.{:03}", time / 1000, time % 1000);
    let loads = gpus
        .iter()
        .map(|(gpu, time)| json!({"name": format!("worker-{gpu}"), "tokenMsOfTrials": [milliseconds(*time)]}));
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"namespace": "perf", "name": "h100", "uid": "validation-uid"},
        "spec": {
            "model": {"name": "lab/tiny"},
            "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
            "gates": [
                {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "100"},
                {"name": "tail", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "5"},
                {"name": "reported", "metric": "RequestThroughput", "operator": ">=", "threshold": "5", "mode": "Warn"},
            ],
        },
        "status": {
            "observedGeneration": 1, "phase": "Completed", "verdict": "Passed", "reason": "GatesMet",
            "run": {"number": run, "trigger": "Created", "generation": 1,
                    "startedAt": "2026-11-20T10:00:00Z", "completedAt": format!("2026-11-20T11:{run:02}:00Z")},
            "placement": {"node": "n1", "allocation": "DRA", "gpus": gpus.len(), "nodeGPUs": 8, "product": "H100"},
            "environment": {"digest": "0123456789ab", "aiperf": "0.13.0"},
            "metrics": {"outputTokensPerSecond": 1234},
            "gates": [
                {"name": "throughput", "effective": "100", "result": "Met", "marginPercent": "7.6"},
                {"name": "tail", "effective": "5", "result": "Met", "marginPercent": "1.0"},
                {"name": "reported", "effective": "5", "result": "Warned", "marginPercent": "-50"},
            ],
            "workers": workers.collect::<Vec<_>>(),
            "operatorState": {"workers": loads.collect::<Vec<_>>()},
        },
    })
}

fn measured(object: Value) -> Option<Measurement> {
    let object: PerfValidation = serde_json::from_value(object).expect("a PerfValidation");
    Measurement::read(&object, object.status.as_ref().expect("a status"))
}

fn changed(object: Value, change: impl FnOnce(&mut Value)) -> Option<Measurement> {
    let mut object = object;
    change(&mut object);
    measured(object)
}

/// A finished run of a policy.
fn of_policy(run: i64, gpus: &[(&str, i64)]) -> Value {
    let mut object = validation(run, gpus);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "name": "h100", "uid": "policy-uid",
        "controller": true,
    }]);
    object
}

/// A run in a new deployment that is to confirm the one before it, in the given minute.
fn confirmation(minute: i64, gpus: &[(&str, i64)]) -> Measurement {
    let confirming = changed(of_policy(minute, gpus), |object| {
        object["metadata"]["uid"] = json!(format!("uid-{minute}"));
        object["metadata"]["annotations"] = json!({"perfvalidation.dev/due-reason": "Confirmation"});
        object["status"]["run"]["number"] = json!(1);
    });
    confirming.expect("measured")
}

/// The written object, as the API server would store it.
fn written(change: NodeChange) -> NodePerformance {
    let (NodeChange::Write(object) | NodeChange::Replace(object)) = change else {
        panic!("nothing is written")
    };
    let mut object = *object;
    object.metadata.uid.get_or_insert_with(|| "row".to_owned());
    object
}

fn status(object: &NodePerformance) -> &NodePerformanceStatus {
    object.status.as_ref().expect("a status")
}

/// Object after runs 1 to `runs` with these GPUs.
fn after(runs: i64, gpus: &[(&str, i64)]) -> NodePerformance {
    let mut objects = Vec::new();
    for run in 1..=runs {
        let next = decide(
            &measured(validation(run, gpus)).expect("measured"),
            &node(UID),
            objects.iter(),
        );
        objects = vec![written(next)];
    }
    objects.swap_remove(0)
}

#[test]
fn the_last_five_trials_of_a_run_count() {
    let object = changed(validation(1, &[("GPU-a", 8000)]), |object| {
        let times = json!(["1.000", "2.000", "8.000", "x", "10.000", "10.000", "10.000", "12.500"]);
        object["status"]["operatorState"]["workers"][0]["tokenMsOfTrials"] = times;
    });
    let measured = object.expect("measured");
    assert_eq!(
        measured.gpus,
        [("GPU-a".to_owned(), vec![8000, 10_000, 10_000, 10_000, 12_500])]
    );
    let object = written(decide(&measured, &node(UID), std::iter::empty()));
    assert_eq!(
        status(&object).gpus[0].token_microseconds,
        Some(10_000),
        "the geometric mean"
    );
}

#[test]
fn a_run_that_measured_is_written_with_its_numbers() {
    let object = after(1, &[("GPU-a", 8000), ("GPU-b", 8100)]);
    let status = status(&object);
    assert_eq!(object.metadata.name.as_deref(), Some("n1"));
    assert_eq!(
        object
            .metadata
            .owner_references
            .as_ref()
            .map(|owners| owners[0].uid.as_str()),
        Some(UID)
    );
    assert_eq!(
        (status.verdict, status.reason.as_deref()),
        (Verdict::Passed, Some("GatesMet"))
    );
    assert_eq!(
        status.percent_of_gate,
        Some(108),
        "percentiles and warnings do not count"
    );
    assert_eq!((status.percent_of_peers, status.percent_of_own_past), (Some(97), None));
    assert_eq!(
        (status.output_tokens_per_second, status.gpu_count),
        (Some(1234), Some(2))
    );
    let gpus: Vec<_> = status.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    assert_eq!(gpus, ["GPU-b", "GPU-a"], "the slowest first");
    let condition = &status.conditions[0];
    assert_eq!(
        (condition.type_.as_str(), condition.status.as_str()),
        ("PerfValidated", "True")
    );
}

#[test]
fn the_condition_shows_the_verdict_and_claims_nothing_about_gates() {
    for (verdict, reason, message) in [
        ("Passed", "GatesMet", "Run 1 of PerfValidation perf/h100 passed."),
        ("Failed", "GPUsMissing", "Run 1 of PerfValidation perf/h100 failed."),
    ] {
        let measured = changed(validation(1, &[("GPU-a", 8000)]), |object| {
            object["status"]["verdict"] = json!(verdict);
            object["status"]["reason"] = json!(reason);
        });
        let measured = measured.expect("measured");
        let object = written(decide(&measured, &node(UID), std::iter::empty()));
        assert_eq!(status(&object).conditions[0].message, message);
    }
}

#[test]
fn a_run_that_measured_nothing_leaves_the_node_alone() {
    let run = || validation(1, &[("GPU-a", 8000)]);
    assert!(measured(run()).is_some());
    for verdict in ["Error", "Skipped"] {
        assert_eq!(
            changed(run(), |object| object["status"]["verdict"] = json!(verdict)),
            None
        );
    }
    assert_eq!(
        changed(run(), |object| object["status"]["phase"] = json!("CleaningUp")),
        None
    );
    assert_eq!(
        changed(run(), |object| object["status"]["placement"] = json!(null)),
        None
    );
}

#[test]
fn a_miss_is_below_one_hundred_percent() {
    let margin = |object: &mut Value| object["status"]["gates"][0]["marginPercent"] = json!("-0.2");
    let found = changed(validation(1, &[]), margin).expect("measured");
    assert_eq!(found.percent_of_gate, Some(99));

    // The mean over the trials missed the gate, and the last trial met it.
    let by_mean = |object: &mut Value| {
        object["status"]["verdict"] = json!("Failed");
        object["status"]["reason"] = json!("GatesMissed");
    };
    let found = changed(validation(1, &[]), by_mean).expect("measured");
    assert_eq!(found.percent_of_gate, None);
}

#[test]
fn a_repeated_pass_and_an_older_run_write_nothing() {
    let gpus = [("GPU-a", 8000)];
    let object = after(3, &gpus);
    for run in [3, 2] {
        let again = measured(validation(run, &gpus)).expect("measured");
        assert_eq!(
            decide(&again, &node(UID), [&object].into_iter()),
            NodeChange::Nothing,
            "run {run}"
        );
    }
}

#[test]
fn a_gpu_is_compared_with_its_own_past_after_five_runs() {
    let gpus = [("GPU-a", 8000), ("GPU-b", 8000)];
    let object = after(6, &gpus);
    assert_eq!(
        status(&object).percent_of_own_past,
        None,
        "the first run is not learned"
    );
    let slower = measured(validation(7, &[("GPU-a", 10_000), ("GPU-b", 8000)])).expect("measured");
    let next = written(decide(&slower, &node(UID), [&object].into_iter()));
    assert_eq!(status(&next).percent_of_own_past, Some(80));
    let margin = own_past_margin(status(&next)).expect("a known past");
    assert!((4.0..6.0).contains(&margin), "{margin}");
    assert_eq!(own_past_margin(status(&object)), None);

    // One GPU has no peers, and of eight the slowest is shown.
    let margin_of = |count: usize| {
        let names: Vec<String> = (0..count).map(|gpu| format!("GPU-{gpu}")).collect();
        let gpus: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 8000)).collect();
        own_past_margin(status(&after(7, &gpus))).expect("a known past")
    };
    let [one, two, eight] = [1, 2, 8].map(margin_of);
    assert!(one < two && two < eight && eight < 8.0, "{one} {two} {eight}");

    // Another environment is another past.
    let upgraded = validation(7, &[("GPU-a", 10_000)]);
    let upgraded = changed(upgraded, |object| {
        object["status"]["environment"]["digest"] = json!("ba9876543210");
    });
    let next = written(decide(&upgraded.expect("measured"), &node(UID), [&object].into_iter()));
    assert_eq!(status(&next).percent_of_own_past, None);
}

#[test]
fn a_confirmation_is_compared_with_the_same_past_and_is_no_run_of_its_own() {
    let object = after(6, &[("GPU-a", 8000), ("GPU-b", 8000)]);
    let slow = [("GPU-a", 10_000), ("GPU-b", 8000)];
    let slower = measured(of_policy(7, &slow)).expect("measured");
    let object = written(decide(&slower, &node(UID), [&object].into_iter()));
    let object = written(decide(&confirmation(8, &slow), &node(UID), [&object].into_iter()));
    assert_eq!(status(&object).percent_of_own_past, Some(80));
    // The loss is not learned.
    let next = changed(of_policy(9, &slow), |object| object["metadata"]["uid"] = json!("next"));
    let next = written(decide(&next.expect("measured"), &node(UID), [&object].into_iter()));
    assert_eq!(status(&next).percent_of_own_past, Some(80));
    // A rerun of a confirmation is a user's, and counts as a run.
    let rerun = changed(of_policy(10, &slow), |object| {
        object["metadata"]["annotations"] = json!({"perfvalidation.dev/due-reason": "Confirmation"});
        object["status"]["run"]["number"] = json!(2);
        object["status"]["run"]["trigger"] = json!("Rerun");
    });
    assert!(!rerun.expect("measured").is_confirmation);
    // The operator itself begins a run again that gave way.
    let preempted = changed(of_policy(10, &slow), |object| {
        object["metadata"]["annotations"] = json!({"perfvalidation.dev/due-reason": "Confirmation"});
        object["status"]["run"]["number"] = json!(2);
        object["status"]["run"]["trigger"] = json!("Preempted");
    });
    assert!(preempted.expect("measured").is_confirmation);
}

/// Its cleanup may outlast the machine.
#[test]
fn a_run_on_an_earlier_machine_of_the_same_name_is_not_recorded() {
    let trial = |number: u8, minute: u8| {
        let at = format!("2026-11-20T10:{minute}:00Z");
        json!({"number": number, "outcome": "Miss", "startedAt": at, "completedAt": at})
    };
    let measured = changed(validation(1, &[("GPU-a", 8000)]), |object| {
        object["status"]["operatorState"]["trials"] = json!([trial(1, 30), trial(2, 50)]);
    });
    let measured = measured.expect("measured");
    let decided = |created: &str| {
        let identity = NodeIdentity {
            created_at: created.parse().expect("a time"),
            ..node(UID)
        };
        decide(&measured, &identity, std::iter::empty())
    };
    for created in ["2026-11-20T10:40:00Z", "2026-11-20T10:55:00Z", "2026-11-20T11:02:00Z"] {
        assert_eq!(decided(created), NodeChange::Nothing, "{created}");
    }
    // The run only waited for the machine.
    assert_ne!(decided("2026-11-20T10:20:00Z"), NodeChange::Nothing);
}

#[test]
fn the_past_of_a_gpu_moves_with_it() {
    let old = after(6, &[("GPU-a", 8000)]);
    let moved = changed(validation(7, &[("GPU-a", 10_000)]), |object| {
        object["status"]["placement"]["node"] = json!("n2");
    });
    let next = written(decide(
        &moved.expect("measured"),
        &node("other-uid"),
        [&old].into_iter(),
    ));
    assert_eq!(next.metadata.name.as_deref(), Some("n2"));
    assert_eq!(status(&next).percent_of_own_past, Some(80));
}

#[test]
fn the_past_of_a_gpu_that_moved_does_not_stay_on_its_old_node() {
    let old = after(6, &[("GPU-a", 8000), ("GPU-b", 8000)]);
    let moved = |run: i64, time: i64| {
        let moved = changed(validation(run, &[("GPU-a", time)]), |object| {
            object["status"]["placement"]["node"] = json!("n2");
        });
        moved.expect("measured")
    };
    let new = written(decide(&moved(7, 8000), &node("other-uid"), [&old].into_iter()));
    let rest = measured(validation(8, &[("GPU-b", 8000)])).expect("measured");
    let old = written(decide(&rest, &node(UID), [&old, &new].into_iter()));
    let uuids: Vec<&str> = status(&old).gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    assert_eq!(uuids, ["GPU-b"]);
    // A person has deleted the object of the new node, to begin a new past.
    let anew = written(decide(&moved(9, 10_000), &node("other-uid"), [&old].into_iter()));
    assert_eq!(status(&anew).percent_of_own_past, None);
}

#[test]
fn the_past_of_a_gpu_outlives_the_object_of_its_node() {
    let deleted = after(6, &[("GPU-a", 8000)]);
    let next = measured(validation(7, &[("GPU-a", 10_000)])).expect("measured");
    let former = [&deleted].into_iter();
    let change = node::decide(&next, &node("new-uid"), std::iter::empty(), former, |_| None);
    assert!(matches!(change, NodeChange::Write(_)), "{change:?}");
    assert_eq!(status(&written(change)).percent_of_own_past, Some(80));
}

#[test]
fn a_gpu_that_a_run_did_not_use_keeps_its_past() {
    let object = after(6, &[("GPU-a", 8000), ("GPU-b", 8000)]);
    let partial = measured(validation(7, &[("GPU-b", 8000)])).expect("measured");
    let object = written(decide(&partial, &node(UID), [&object].into_iter()));
    let absent = status(&object)
        .gpus
        .iter()
        .find(|gpu| gpu.uuid == "GPU-a")
        .expect("kept");
    assert_eq!(absent.token_microseconds, None);
    let back = measured(validation(8, &[("GPU-a", 10_000)])).expect("measured");
    let object = written(decide(&back, &node(UID), [&object].into_iter()));
    assert_eq!(status(&object).percent_of_own_past, Some(80));
}

#[test]
fn a_recreated_node_gets_a_new_object_with_the_past_of_its_gpus() {
    let object = after(6, &[("GPU-a", 8000)]);
    let next = measured(validation(7, &[("GPU-a", 10_000)])).expect("measured");
    let change = decide(&next, &node("new-uid"), [&object].into_iter());
    assert!(matches!(change, NodeChange::Replace(_)), "{change:?}");
    let NodeChange::Replace(next) = change else { return };
    assert_eq!(next.metadata.uid, None);
    assert_eq!(
        next.metadata
            .owner_references
            .as_ref()
            .map(|owners| owners[0].uid.as_str()),
        Some("new-uid")
    );
    assert_eq!(status(&next).percent_of_own_past, Some(80));
}

#[test]
fn trials_that_are_judged_again_change_the_verdict_and_no_statistics() {
    let object = after(2, &[("GPU-a", 8000)]);
    let judged = |of: i64| {
        changed(validation(3, &[("GPU-a", 8000)]), |object| {
            object["status"]["operatorState"]["judgedRun"] = json!(of);
            object["status"]["verdict"] = json!("Failed");
        })
    };
    let next = written(decide(&judged(2).expect("measured"), &node(UID), [&object].into_iter()));
    let (before, after) = (status(&object), status(&next));
    assert_eq!(
        (after.verdict, after.measured_at),
        (Verdict::Failed, before.measured_at)
    );
    assert_eq!(after.gpus, before.gpus);
    assert_eq!(after.conditions[0].status, "False");
    assert_ne!(
        after.conditions[0].last_transition_time,
        before.conditions[0].last_transition_time
    );
    let first = judged(2).expect("measured");
    assert_eq!(
        decide(&first, &node(UID), std::iter::empty()),
        NodeChange::Nothing,
        "its trials are older than the object"
    );
}

#[test]
fn the_gpus_of_one_worker_have_one_row() {
    let object = changed(validation(1, &[("GPU-b", 8000), ("GPU-c", 9000)]), |object| {
        object["status"]["workers"][0]["gpus"] = json!(["GPU-b", "GPU-a"]);
    });
    assert_eq!(
        object.expect("measured").gpus,
        [("GPU-c".to_owned(), vec![9000]), ("GPU-a,GPU-b".to_owned(), vec![8000])]
    );
}

#[test]
fn the_measurement_of_a_policy_stays_for_two_weeks_or_two_ages_of_a_stale_verdict() {
    let of_policy = |run: i64| of_policy(run, &[("GPU-a", 8000)]);
    let first = written(decide(
        &measured(of_policy(1)).expect("measured"),
        &node(UID),
        std::iter::empty(),
    ));
    assert_eq!(status(&first).validation.policy.as_deref(), Some("h100"));
    let of_a_user = |day: &str| {
        let other = changed(validation(2, &[("GPU-a", 9000)]), |object| {
            object["status"]["run"]["completedAt"] = json!(day);
        });
        decide(&other.expect("measured"), &node(UID), [&first].into_iter())
    };
    assert_eq!(of_a_user("2026-12-04T11:00:59Z"), NodeChange::Nothing);
    let later = written(of_a_user("2026-12-04T11:01:00Z"));
    assert_eq!(status(&later).validation.policy, None);
    let at_age = |days: i64, day: &str| {
        let other = changed(validation(2, &[("GPU-a", 9000)]), |object| {
            object["status"]["run"]["completedAt"] = json!(day);
        });
        let other = other.expect("measured");
        let max_age = |policy: &str| (policy == "h100").then(|| TimeDelta::days(days));
        let change = node::decide(&other, &node(UID), [&first].into_iter(), std::iter::empty(), max_age);
        let policy = measured(of_policy(1)).expect("measured");
        assert_eq!(is_preferred(&other, &policy, max_age), change != NodeChange::Nothing);
        change != NodeChange::Nothing
    };
    let days = [
        "2026-12-04T11:00:59Z",
        "2026-12-04T11:01:00Z",
        "2027-01-19T11:00:59Z",
        "2027-01-19T11:01:00Z",
    ];
    assert_eq!(days.map(|day| at_age(1, day)), [false, true, true, true]);
    assert_eq!(days.map(|day| at_age(30, day)), [false, false, false, true]);
    // Before either is written, the order in which they are read does not matter.
    let (policy, user) = (
        measured(of_policy(1)).expect("measured"),
        measured(validation(2, &[("GPU-a", 9000)])).expect("measured"),
    );
    assert_eq!(
        (
            is_preferred(&policy, &user, |_| None),
            is_preferred(&user, &policy, |_| None)
        ),
        (true, false)
    );
    // The policy itself always measures anew, and replaces what users measured.
    let second = written(decide(
        &measured(of_policy(2)).expect("measured"),
        &node(UID),
        [&first].into_iter(),
    ));
    assert_eq!(status(&second).validation.run, 2);
}
