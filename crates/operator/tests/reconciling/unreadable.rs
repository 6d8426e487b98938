use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};

use crate::{NAMESPACE, Operator, eventually, manifest, phase, with_gpus};

#[tokio::test]
async fn an_object_that_cannot_be_parsed_is_told_about_and_holds_up_no_other() {
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
        let told = |event: &Value| event["reason"] == "SpecUnreadable" && event["regarding"]["name"] == "newer";
        server.objects("events").iter().any(told)
    })
    .await;
    assert_eq!(phase(&server, "newer"), "", "nothing is done to it");
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
    child("batch/v1", "Job", "strangers", &json!("somebody-else"));
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
