//! Runs in the queue that stand in one another's way only where they really do.

use chrono::{TimeDelta, Utc};
use perfval_operator::objects;
use perfval_testkit::api_server::{ApiServer, Fault};
use perfval_testkit::inventory::Cluster;
use serde_json::{Value, json};

use crate::{
    NAMESPACE, Operator, eventually, has_reason, manifest, phase, reaches, reason, status, with_gpus, with_hardware,
};

/// What a quota of claims counts for each GPU.
const CLAIMED: &str = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices";
const OTHER: &str = "other";

/// Two nodes with two GPUs each.
fn two_nodes() -> ApiServer {
    with_hardware(&Cluster::of_nodes_with(&["n1", "n2"], 2))
}

fn node(server: &ApiServer, name: &str) -> Value {
    status(server, name)["placement"]["node"].clone()
}

fn message(server: &ApiServer, name: &str) -> String {
    status(server, name)["message"].as_str().unwrap_or_default().to_owned()
}

/// A run of another namespace that waits for GPUs, as another install wrote it so many minutes ago.
fn waits_elsewhere(name: &str, minutes: i64) -> Value {
    let written = Utc::now() - TimeDelta::minutes(minutes);
    let mut object = manifest(name);
    object["metadata"]["namespace"] = OTHER.into();
    object["status"] = json!({
        "observedGeneration": 1, "phase": "Sizing", "reason": "Running", "message": "counting free GPUs",
        "run": {
            "number": 1, "trigger": "Created", "generation": 1,
            "startedAt": written,
        },
        "operatorState": {"lastLookedAt": written, "timeline": [{"phase": "Sizing", "startedAt": written}]},
    });
    object
}

/// An install that looks after one namespace.
fn install(server: &ApiServer) -> Operator {
    let (objects, scopes) = objects::watched(vec![Some(NAMESPACE.to_owned())]);
    Operator::start_in(server, objects, scopes)
}

#[tokio::test]
async fn a_refusal_for_the_volume_of_one_cache_holds_for_no_run_with_another() {
    let server = two_nodes();
    // The weights of the first run are on a node that is cordoned by now.
    server.edit("nodes", "", "n1", |node| node["spec"]["unschedulable"] = true.into());
    server.put(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "p",
    }));
    server.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]},
        ]}}},
    }));
    server.put(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a-weights", "namespace": NAMESPACE},
        "spec": {"volumeName": "disk"},
    }));
    let _operator = Operator::start(&server);
    for name in ["a", "b"] {
        let mut object = manifest(name);
        object["spec"]["model"]["cache"] =
            json!({"volumeClaimTemplate": {"storage": "10Gi", "storageClassName": "local"}});
        server.put(object);
        eventually(&server, "it is sized", |server| phase(server, name) != "Pending").await;
    }
    eventually(&server, "the run without weights deploys", |server| {
        phase(server, "b") == "Deploying" && node(server, "b") == "n2"
    })
    .await;
    assert_eq!(phase(&server, "a"), "Sizing");
    assert!(message(&server, "a").contains("a-weights"), "{}", message(&server, "a"));
}

#[tokio::test]
async fn a_run_waits_in_the_queue_for_the_quota_that_an_earlier_run_will_use() {
    let server = two_nodes();
    server.put(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": NAMESPACE},
        "spec": {"hard": {CLAIMED: "2"}}, "status": {"used": {CLAIMED: "0"}},
    }));
    for name in ["a", "b"] {
        server.put(manifest(name));
    }
    let _operator = Operator::start(&server);
    eventually(&server, "one deploys, one waits for it", |server| {
        phase(server, "a") == "WaitingForReady" && reason(server, "b") == "InLine"
    })
    .await;
    assert_eq!(node(&server, "b"), Value::Null);

    // By now its pods are there, and the quota counts what they use.
    let deployment = status(&server, "a")["workload"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    for pod in ["frontend", "worker-0", "worker-1"] {
        let name = format!("{deployment}-{pod}");
        server.put(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]}, "status": {"phase": "Running"},
        }));
    }
    server.edit("resourcequotas", NAMESPACE, "gpus", |quota| {
        quota["status"]["used"] = json!({CLAIMED: "2"});
    });
    server.put(manifest("c"));
    eventually(&server, "a later one is looked for", |server| {
        !matches!(reason(server, "c").as_str(), "" | "Running")
    })
    .await;
    for name in ["b", "c"] {
        assert_eq!((name, reason(&server, name)), (name, "InLine".to_owned()));
        assert!(message(&server, name).contains("gpus"), "{}", message(&server, name));
    }
}

#[tokio::test]
async fn a_look_that_fails_rewrites_no_waiting_run() {
    let server = with_gpus(2);
    for name in ["a", "b", "c"] {
        server.put(manifest(name));
    }
    let _operator = Operator::start(&server);
    eventually(&server, "one deploys, the others wait for it", |server| {
        phase(server, "a") == "WaitingForReady" && ["b", "c"].iter().all(|name| reason(server, name) == "InLine")
    })
    .await;
    let before = ["b", "c"].map(|name| status(&server, name));
    server.fail(Fault::refuse("list", "resourcequotas", 500));
    // It makes the planner look.
    server.put(manifest("d"));
    has_reason(&server, "d", "CallFailed").await;
    assert_eq!(["b", "c"].map(|name| status(&server, name)), before);
    server.heal();
    has_reason(&server, "d", "InLine").await;
}

/// The clock is paused: it jumps to the next timer whenever every task waits. An install of one namespace follows no policies, whose
/// looks count too.
#[tokio::test(start_paused = true)]
async fn a_time_out_is_counted_although_the_only_run_waits() {
    let server = with_gpus(2);
    server.fail(Fault::hang("list", "resourcequotas"));
    server.put(manifest("waits"));
    let operator = install(&server);
    eventually(&server, "it is counted", |_| {
        !operator
            .metrics()
            .text([])
            .contains("\nperfvalidation_api_timeouts_total 0\n")
    })
    .await;
    assert_eq!(phase(&server, "waits"), "Sizing");
}

#[tokio::test]
async fn a_run_whose_status_cannot_be_written_holds_up_no_other() {
    let server = with_gpus(2);
    let _operator = Operator::start(&server);
    server.put(manifest("first"));
    // Before its first plan can be written.
    eventually(&server, "it is about to be sized", |server| {
        let phase = phase(server, "first");
        if phase == "Sizing" {
            server.fail(Fault::refuse("patch", "perfvalidations/status", 403).named("first"));
        }
        phase == "Sizing"
    })
    .await;
    server.put(manifest("second"));
    reaches(&server, "second", "WaitingForReady").await;
    assert_eq!(phase(&server, "first"), "Sizing");
}

#[tokio::test]
async fn a_run_that_no_operator_looks_after_any_more_holds_up_no_other() {
    let server = with_gpus(2);
    server.put(waits_elsewhere("left", 60));
    server.put(manifest("own"));
    let _operator = install(&server);
    reaches(&server, "own", "WaitingForReady").await;
}

#[tokio::test]
async fn an_earlier_run_of_another_install_comes_first_even_if_its_namespace_is_unreadable() {
    let server = with_gpus(2);
    for resource in ["resourcequotas", "limitranges", "persistentvolumeclaims"] {
        server.fail(Fault::refuse("*", resource, 403).in_namespace(OTHER));
    }
    server.put(waits_elsewhere("secret", 1));
    server.put(manifest("own"));
    let _operator = install(&server);
    eventually(&server, "the own run waits in the queue", |server| {
        assert_eq!(node(server, "own"), Value::Null, "{}", message(server, "own"));
        reason(server, "own") == "InLine"
    })
    .await;
    let words = server
        .get("perfvalidations", NAMESPACE, "own")
        .unwrap_or_default()
        .to_string();
    assert!(words.contains("a run of another namespace"), "{words}");
    assert!(!words.contains("other/") && !words.contains("secret"), "{words}");
    let refused = |server: &ApiServer| {
        let elsewhere = |call: &&perfval_testkit::api_server::Call| call.namespace.as_deref() == Some(OTHER);
        server.calls().iter().filter(elsewhere).count()
    };
    assert_eq!(refused(&server), 0, "nothing is asked for that is not allowed");
}
