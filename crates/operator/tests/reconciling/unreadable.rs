use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};

use crate::{NAMESPACE, Operator, eventually, manifest, phase, with_gpus};

#[tokio::test]
async fn an_object_that_cannot_be_parsed_is_reported_and_holds_up_no_other() {
    let server = ApiServer::new();
    let mut newer = manifest("newer");
    newer["spec"]["gates"][0]["metric"] = json!("MetricOfAnotherVersion");
    server.put(newer);
    server.put(manifest("readable"));
    let _operator = Operator::start(&server);
    eventually(&server, "the readable one is looked at", |server| {
        phase(server, "readable") == "Pending"
    })
    .await;
    eventually(&server, "an event names the unreadable one", |server| {
        let reported = |event: &Value| event["reason"] == "SpecUnreadable" && event["regarding"]["name"] == "newer";
        server.objects("events").iter().any(reported)
    })
    .await;
    assert_eq!(phase(&server, "newer"), "", "nothing is done to it");
}

#[tokio::test]
async fn a_status_of_a_newer_version_is_left_as_it_is_and_reported_once() {
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
        eventually(&server, "others go on", |server| phase(server, "readable") == "Pending").await;
        let after = server.get("perfvalidations", NAMESPACE, "newer").unwrap();
        assert_eq!((&after["spec"], &after["status"]), (&before["spec"], &before["status"]));
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
    eventually(&server, "it is deployed", |server| {
        phase(server, "newer") == "WaitingForReady"
    })
    .await;
    let object = server.get("perfvalidations", NAMESPACE, "newer").unwrap();
    assert_eq!(object["spec"], spec);
    assert_eq!(object["metadata"]["finalizers"][0], "perfvalidation.dev/cleanup");
}

#[tokio::test]
async fn a_deleted_object_that_cannot_be_parsed_leaves_nothing_behind() {
    let server = with_gpus(4);
    let mut newer = manifest("newer");
    newer["spec"]["gates"][0]["metric"] = json!("MetricOfAnotherVersion");
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
    eventually(&server, "the object is released", |server| {
        server.get("perfvalidations", NAMESPACE, "newer").is_none()
    })
    .await;
    assert!(server.get("jobs", NAMESPACE, "strangers").is_some());
}
