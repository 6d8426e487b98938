//! Objects that are being deleted while other finalizers than ours hold them.

use std::sync::Arc;

use perfval_operator::controller::reconcile;
use perfval_operator::objects;
use perfval_operator::rights::Rights;
use perfval_operator::stored::Stored;
use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};

use crate::{NAMESPACE, Operator, context, eventually, goes, is_deployed, manifest, with_gpus};

const OURS: &str = "perfvalidation.dev/cleanup";
const FOREIGN: &str = "others.example/hold";

fn finalizers(server: &ApiServer, name: &str) -> Value {
    let object = server.get("perfvalidations", NAMESPACE, name);
    object.expect("a foreign finalizer holds it")["metadata"]["finalizers"].clone()
}

fn set_finalizers(server: &ApiServer, name: &str, finalizers: &[&str]) {
    server.edit("perfvalidations", NAMESPACE, name, |object| {
        object["metadata"]["finalizers"] = json!(finalizers);
    });
}

fn nothing_is_left(server: &ApiServer) -> bool {
    let plurals = ["dynamographdeployments", "services", "resourceclaimtemplates", "jobs"];
    plurals.iter().all(|plural| server.objects(plural).is_empty())
}

#[tokio::test]
async fn a_run_whose_finalizer_others_removed_is_torn_down() {
    let server = with_gpus(4);
    let operator = Operator::start(&server);
    server.put(manifest("held"));
    is_deployed(&server, "held").await;
    drop(operator);
    set_finalizers(&server, "held", &[FOREIGN]);
    server.delete("perfvalidations", NAMESPACE, "held");

    let _operator = Operator::start(&server);
    eventually(&server, "nothing of it is left", nothing_is_left).await;
    assert_eq!(finalizers(&server, "held"), json!([FOREIGN]));
}

#[tokio::test]
async fn a_deleted_run_that_others_hold_gives_its_node_to_the_next() {
    let server = with_gpus(4);
    let _operator = Operator::start(&server);
    server.put(manifest("held"));
    is_deployed(&server, "held").await;
    set_finalizers(&server, "held", &[OURS, FOREIGN]);
    server.delete("perfvalidations", NAMESPACE, "held");
    server.put(manifest("next"));
    is_deployed(&server, "next").await;
    assert_eq!(finalizers(&server, "held"), json!([FOREIGN]));
}

#[tokio::test]
async fn a_restored_object_that_is_deleted_before_the_first_look_goes() {
    let server = with_gpus(4);
    let mut restored = manifest("restored");
    restored["metadata"]["finalizers"] = json!([OURS]);
    server.put(restored);
    server.delete("perfvalidations", NAMESPACE, "restored");

    let _operator = Operator::start(&server);
    goes(&server, "restored").await;
}

#[tokio::test]
async fn an_object_with_a_thousand_finalizers_before_ours_goes_once_others_have_released_it() {
    let server = with_gpus(4);
    let mut crowded = manifest("crowded");
    let others = (0..1_000).map(|number| format!("others.example/{number}"));
    crowded["metadata"]["finalizers"] = others.chain([OURS.to_owned()]).collect();
    server.put(crowded);
    server.delete("perfvalidations", NAMESPACE, "crowded");

    let _operator = Operator::start(&server);
    eventually(&server, "it is too large", |server| {
        let note = |event: &Value| event["note"].as_str().unwrap_or_default().to_owned();
        let mentions = |note: String| note.contains("1000 finalizers of others");
        server.objects("events").iter().map(note).any(mentions)
    })
    .await;
    set_finalizers(&server, "crowded", &[FOREIGN, OURS]);
    eventually(&server, "ours is released", |server| {
        finalizers(server, "crowded") == json!([FOREIGN])
    })
    .await;
}

#[tokio::test]
async fn an_unreadable_object_whose_finalizer_others_removed_leaves_nothing_behind() {
    let server = with_gpus(4);
    let mut newer = manifest("newer");
    newer["spec"]["gates"][0]["metric"] = json!("MetricOfAnotherVersion");
    newer["metadata"]["finalizers"] = json!([FOREIGN]);
    let owner = server.put(newer)["metadata"]["uid"].clone();
    server.put(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "namespace": NAMESPACE, "name": "pv-0011aabb-t1",
            "labels": {"perfvalidation.dev/name": "newer", "perfvalidation.dev/run": "0011aabb"},
            "ownerReferences": [{
                "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "name": "newer",
                "controller": true, "uid": owner,
            }],
        },
    }));
    server.delete("perfvalidations", NAMESPACE, "newer");

    let _operator = Operator::start(&server);
    eventually(&server, "nothing of it is left", nothing_is_left).await;
}

#[tokio::test]
async fn an_object_that_is_deleted_without_its_dependents_leaves_nothing_that_we_made() {
    let server = with_gpus(4);
    let _operator = Operator::start(&server);
    server.put(manifest("orphaned"));
    is_deployed(&server, "orphaned").await;
    // Looks like ours, and somebody else made it.
    server.put(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "namespace": NAMESPACE, "name": "copied",
            "labels": {"perfvalidation.dev/name": "orphaned", "perfvalidation.dev/run": "0011aabb"},
        },
    }));
    server.orphan("perfvalidations", NAMESPACE, "orphaned");
    goes(&server, "orphaned").await;
    let jobs: Vec<Value> = server
        .objects("jobs")
        .iter()
        .map(|job| job["metadata"]["name"].clone())
        .collect();
    assert_eq!(jobs, ["copied"]);
    server.delete("jobs", NAMESPACE, "copied");
    assert!(nothing_is_left(&server));
}

#[tokio::test]
async fn an_object_that_the_operator_released_is_not_torn_down_again_before_the_echo() {
    let server = with_gpus(4);
    let mut released = manifest("released");
    released["metadata"]["finalizers"] = json!([OURS, FOREIGN]);
    released["status"] = json!({"observedGeneration": 1, "phase": "CleaningUp"});
    server.put(released);
    server.delete("perfvalidations", NAMESPACE, "released");
    let watched = server
        .get("perfvalidations", NAMESPACE, "released")
        .expect("it is held");
    let watched: Arc<Stored> = Arc::new(serde_json::from_value(watched).expect("well-formed"));

    let (objects, _scopes) = objects::watched(vec![None]);
    let (context, _answers) = context(&server, objects, Rights::default());
    let Ok(_) = reconcile(watched.clone(), context.clone()).await;
    assert_eq!(finalizers(&server, "released"), json!([FOREIGN]));

    server.forget_calls();
    let Ok(_) = reconcile(watched, context).await;
    assert_eq!(server.calls(), [], "the watch still shows the object of before");
}
