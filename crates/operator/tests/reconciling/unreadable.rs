use perfval_testkit::api_server::{ApiServer, Fault};
use serde_json::{Value, json};

use crate::{NAMESPACE, Operator, eventually, goes, manifest, reaches, with_gpus};

/// A manifest with a metric of another version.
fn unreadable(name: &str) -> Value {
    let mut object = manifest(name);
    object["spec"]["gates"][0]["metric"] = json!("MetricOfAnotherVersion");
    object
}

#[tokio::test]
async fn an_object_that_cannot_be_parsed_is_reported_and_holds_up_no_other() {
    let server = ApiServer::new();
    server.put(unreadable("newer"));
    server.put(manifest("readable"));
    let _operator = Operator::start(&server);
    reaches(&server, "readable", "Pending").await;
    eventually(&server, "an event names the unreadable one", |server| {
        let reported = |event: &Value| event["reason"] == "SpecUnreadable" && event["regarding"]["name"] == "newer";
        server.objects("events").iter().any(reported)
    })
    .await;
    let newer = server.get("perfvalidations", NAMESPACE, "newer").unwrap();
    assert!(newer["metadata"]["finalizers"].is_null(), "nothing is done to it");
    assert!(newer["status"]["run"].is_null(), "no run begins");
}

/// What Argo CD, Flux and `kubectl` read of an object: condition, value and reason.
fn shown(server: &ApiServer, name: &str, condition: &str) -> Option<(String, String, i64)> {
    let found = crate::condition(server, name, condition)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), found["observedGeneration"].as_i64()?))
}

#[tokio::test]
async fn an_object_that_cannot_be_parsed_keeps_no_old_health() {
    let server = ApiServer::new();
    let mut passed = unreadable("passed");
    let old = |name: &str, status: &str| {
        json!({"type": name, "status": status, "reason": "GatesMet", "message": "passed", "observedGeneration": 1,
            "lastTransitionTime": "2026-11-20T10:00:00Z"})
    };
    passed["status"] = json!({"observedGeneration": 1, "phase": "Completed", "verdict": "Passed", "message": "passed",
        "trials": [{"number": 1, "fieldOfAnotherVersion": 7}],
        "conditions": [old("Complete", "True"), old("Ready", "True"), old("Stalled", "False")]});
    let before = server.put(passed);
    server.put({
        let mut unseen = manifest("unseen");
        unseen["spec"]["gates"][0]["metric"] = json!("hf_abcdefghijklmnop");
        unseen
    });
    let _operator = Operator::start(&server);
    for name in ["passed", "unseen"] {
        for (condition, value) in [("Ready", "False"), ("Reconciling", "False"), ("Stalled", "True")] {
            let expected = Some((value.to_owned(), "SpecUnreadable".to_owned(), 1));
            eventually(&server, &format!("{condition} of {name} is {value}"), |server| {
                shown(server, name, condition) == expected
            })
            .await;
        }
    }
    let after = server.get("perfvalidations", NAMESPACE, "passed").unwrap();
    for field in ["phase", "verdict", "message", "trials"] {
        assert_eq!(after["status"][field], before["status"][field], "{field}");
    }
    let message = crate::condition(&server, "unseen", "Stalled").unwrap()["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.contains("cannot parse") && !message.contains("hf_abc"),
        "{message}"
    );
}

#[tokio::test]
async fn an_object_that_can_be_read_again_begins_its_run() {
    let server = with_gpus(4);
    server.put(unreadable("newer"));
    let _operator = Operator::start(&server);
    eventually(&server, "it is stalled", |server| {
        shown(server, "newer", "Stalled").is_some_and(|(value, ..)| value == "True")
    })
    .await;
    server.edit("perfvalidations", NAMESPACE, "newer", |object| {
        object["spec"]["gates"][0]["metric"] = json!("OutputTokenThroughput");
    });
    reaches(&server, "newer", "WaitingForReady").await;
    eventually(&server, "nothing blocks it", |server| {
        shown(server, "newer", "Stalled").is_some_and(|(value, ..)| value == "False")
    })
    .await;
}

#[tokio::test]
async fn an_event_shows_that_the_status_is_old_where_it_cannot_be_written() {
    let server = ApiServer::new();
    let refused = Fault::refuse("patch", "perfvalidations/status", 422);
    server.fail(refused.saying("denied: hf_abcdefghijklmnop"));
    server.put(unreadable("newer"));
    let _operator = Operator::start(&server);
    eventually(&server, "an event shows it", |server| {
        let note = |event: &Value| event["note"].as_str().unwrap_or_default().to_owned();
        server.objects("events").iter().map(note).any(|note| {
            assert!(!note.contains("hf_abc"), "{note}");
            note.contains("its status is old") && note.contains("denied")
        })
    })
    .await;
}

#[tokio::test]
async fn a_status_of_a_newer_version_keeps_all_but_its_conditions_and_is_reported_once() {
    for (field, value) in [
        ("phase", json!("PhaseOfAnotherVersion")),
        ("verdict", json!("VerdictOfAnotherVersion")),
        (
            "trials",
            json!([{"number": 1, "outcome": "OutcomeOfAnotherVersion", "startedAt": "2026-11-20T10:00:00Z"}]),
        ),
    ] {
        let server = ApiServer::new();
        let mut newer = manifest("newer");
        newer["spec"]["fieldOfAnotherVersion"] = json!({"kept": true});
        newer["status"] = json!({"observedGeneration": 1, "message": "m".repeat(2_000)});
        newer["status"][field] = value;
        let before = server.put(newer);
        let _operator = Operator::start(&server);
        server.put(manifest("readable"));
        let reported = |server: &ApiServer| -> Vec<Value> {
            let events = server.objects("events").into_iter();
            events.filter(|event| event["reason"] == "SpecUnreadable").collect()
        };
        eventually(&server, "it is reported", |server| !reported(server).is_empty()).await;
        for label in ["a", "b"] {
            server.edit("perfvalidations", NAMESPACE, "newer", |object| {
                object["metadata"]["labels"] = json!({"l": label});
            });
            let seen = |server: &ApiServer| reported(server)[0]["series"]["count"].as_i64();
            let before = seen(&server);
            eventually(&server, "counted", |server| seen(server) > before).await;
        }
        let events = reported(&server);
        assert_eq!(events.len(), 1, "repeats are counted: {events:?}");
        assert!(events[0]["note"].as_str().is_some_and(|note| note.len() <= 1024));
        reaches(&server, "readable", "Pending").await;
        let after = server.get("perfvalidations", NAMESPACE, "newer").unwrap();
        assert_eq!(after["spec"], before["spec"]);
        let (mut then, mut now) = (before["status"].clone(), after["status"].clone());
        for status in [&mut then, &mut now] {
            status.as_object_mut().unwrap().remove("conditions");
        }
        assert_eq!(now, then, "conditions alone change");
    }
}

#[tokio::test]
async fn fields_of_a_newer_version_survive_the_work_of_this_one() {
    let server = with_gpus(4);
    let mut newer = manifest("newer");
    newer["spec"]["fieldOfAnotherVersion"] = json!({"kept": true});
    newer["spec"]["benchmark"] = json!({"fieldOfAnotherVersion": 7});
    let spec = server.put(newer)["spec"].clone();
    server.edit("perfvalidations", NAMESPACE, "newer", |object| {
        object["status"]["fieldOfAnotherVersion"] = json!({"kept": true});
    });
    let _operator = Operator::start(&server);
    reaches(&server, "newer", "WaitingForReady").await;
    let object = server.get("perfvalidations", NAMESPACE, "newer").unwrap();
    assert_eq!(object["spec"], spec);
    assert_eq!(object["metadata"]["finalizers"][0], "perfvalidation.dev/cleanup");
}

#[tokio::test]
async fn a_deleted_object_that_cannot_be_parsed_leaves_nothing_behind() {
    let server = with_gpus(4);
    let mut newer = unreadable("newer");
    newer["metadata"]["finalizers"] = json!(["perfvalidation.dev/cleanup"]);
    let owner = server.put(newer)["metadata"]["uid"].clone();
    let child = |api_version: &str, kind: &str, name: &str, owner: &Value| {
        server.put(json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "namespace": NAMESPACE, "name": name,
                "labels": {"perfvalidation.dev/name": "newer", "perfvalidation.dev/run": "0011aabb"},
                "ownerReferences": [{
                    "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "name": "newer",
                    "controller": true, "uid": owner,
                }],
            },
        }));
    };
    child("batch/v1", "Job", "pv-0011aabb-t1", &owner);
    child("batch/v1", "Job", "strangers", &json!("another-owner"));
    child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-0011aabb", &owner);
    child("v1", "Pod", "pv-0011aabb-worker-0", &json!("the-deployment"));
    server.delete("perfvalidations", NAMESPACE, "newer");
    let _operator = Operator::start(&server);
    eventually(&server, "its children are deleted", |server| {
        server.objects("jobs").len() == 1 && server.objects("dynamographdeployments").is_empty()
    })
    .await;
    let held = server.get("perfvalidations", NAMESPACE, "newer");
    assert!(held.is_some(), "a pod is left, so the finalizer stays");
    server.delete("pods", NAMESPACE, "pv-0011aabb-worker-0");
    goes(&server, "newer").await;
    assert!(server.get("jobs", NAMESPACE, "strangers").is_some());
}
