//! What is missing for a first run, and what to type.

use perfval_testkit::api_server::Fault;
use perfval_testkit::inventory::Cluster;
use serde_json::json;

use super::desk::{Desk, golden};

fn put_pod(desk: &Desk, namespace: &str, label: &str, value: &str) {
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": value, "namespace": namespace, "labels": {label: value}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }));
}

/// Eight free GPUs, Dynamo, the operator, the exporter.
fn healthy() -> Desk {
    let desk = Desk::new();
    for object in Cluster::of_gpus(8).objects() {
        desk.server.put(object);
    }
    desk.server.install_dynamo(&["v1beta1"], Some("1.6.1"));
    let crd = serde_json::to_value(perfval_api::crd()).expect("JSON");
    desk.server.put(crd);
    put_pod(
        &desk,
        "perfvalidation-system",
        "app.kubernetes.io/name",
        "perfvalidation-operator",
    );
    put_pod(&desk, "gpu-operator", "app", "nvidia-dcgm-exporter");
    desk
}

const QUICK: &str = "doctor -f ../../config/samples/quick.yaml";

#[tokio::test]
async fn a_cluster_that_has_everything() {
    let answer = healthy().types("doctor").await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    golden("doctor-healthy", &answer.out);
}

#[tokio::test]
async fn a_cluster_that_has_nothing() {
    let mut desk = Desk::new();
    desk.server.withdraw("perfvalidations");
    desk.unicode = false;
    let answer = desk.types("doctor").await;
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
    golden("doctor-nothing", &answer.out);
}

#[tokio::test]
async fn the_images_and_secrets_of_a_manifest_are_looked_for() {
    let desk = healthy();
    let answer = desk.types(QUICK).await;
    assert!(
        answer
            .out
            .contains("vllm-runtime:1.6.1 is on no node: the first run pulls it"),
        "{}",
        answer.out
    );
    assert_eq!(answer.code, 0, "a pull is no obstacle");
    let calls = desk.server.calls();
    assert!(
        calls.iter().all(|call| call.resource != "secrets"),
        "no Secret is named, so none is asked for"
    );
    desk.server.install_dynamo(&["v1beta1"], Some("1.2.0"));
    let skewed = desk.types(QUICK).await;
    assert_eq!(skewed.code, 1);
    assert!(skewed.out.contains("✗  Dynamo 1.2.0:"), "{}", skewed.out);
}

#[tokio::test]
async fn rights_that_are_missing_are_named_and_what_cannot_be_read_is_not_called_missing() {
    let desk = healthy();
    desk.server.fail(Fault::refuse("create", "perfvalidations", 403));
    desk.server.fail(Fault::refuse("get", "pods/log", 403));
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 1);
    assert!(
        answer.out.contains("in perf you may not run, not read logs"),
        "{}",
        answer.out
    );
    desk.server.heal();
    desk.server.fail(Fault::refuse("list", "nodes", 403));
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 0, "{}", answer.out);
    assert!(answer.out.contains("?  the GPUs:"), "{}", answer.out);
    assert!(answer.out.contains("1 could not be looked at"), "{}", answer.out);
}

#[tokio::test]
async fn a_definition_of_another_version_is_noticed() {
    let desk = healthy();
    desk.server.edit(
        "customresourcedefinitions",
        "",
        "perfvalidations.perfvalidation.dev",
        |crd| {
            crd["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": {"type": "object"}});
        },
    );
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 0);
    assert!(
        answer.out.contains("in another version than this program's"),
        "{}",
        answer.out
    );
}
