//! Weights are fetched once, by a Job, from the Hub that the user's environment names; the pods read them offline.

use perfval_api::Verdict;
use perfval_e2e::{Lab, Validation, quick};
use serde_json::json;

use crate::ready;

/// A Hub on the node's own network, from the image that holds the model.
const HUB: &str = include_str!("hub.py");
/// The node's folder behind the volume.
const WEIGHTS: &str = "/var/lib/perfval-e2e-weights";
const CLASS: &str = "perfval-e2e-weights";

/// A Hub that serves, a StorageClass, and one volume of it.
async fn install(lab: &Lab, namespace: &str) {
    lab.run(&["exec", "--", "mkdir", "-p", "-m", "777", WEIGHTS]).await;
    let manifest = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS},
         "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLASS},
         "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
             "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": WEIGHTS}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hub", "namespace": namespace},
         "spec": {"selector": {"app": "hub"}, "ports": [{"port": 80, "targetPort": 8000}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hub", "namespace": namespace, "labels": {"app": "hub"}},
         "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "hub", "image": "localhost/dynamo-lab:1.4.2",
             "imagePullPolicy": "Never", "command": ["python3", "-c", HUB],
             "readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1}}]}},
    ]});
    lab.apply(&manifest).await;
    let ready = [
        "wait",
        "-n",
        namespace,
        "pod/hub",
        "--for=condition=Ready",
        "--timeout=120s",
    ];
    lab.kubectl(&ready).await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn weights_are_fetched_once_and_read_offline() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-weights").await;
    install(&lab, &namespace).await;
    let mut manifest = quick("cached", &namespace);
    manifest["spec"]["model"]["cache"] =
        json!({"volumeClaimTemplate": {"storage": "100Mi", "storageClassName": CLASS}});
    manifest["spec"]["workload"]["dynamo"]["env"] =
        json!([{"name": "HF_ENDPOINT", "value": format!("http://hub.{namespace}")}]);
    let run = Validation::create(&lab, manifest).await;
    run.ends(Verdict::Passed).await;

    let fetched = lab.kubectl(&["logs", "-n", &namespace, "hub"]).await;
    let downloads = fetched
        .lines()
        .filter(|line| line.contains("\"GET /lab/tiny-qwen3/resolve/"))
        .count();
    let files = lab
        .run(&[
            "exec",
            "--",
            "find",
            "-L",
            WEIGHTS,
            "-path",
            "*/snapshots/*",
            "-type",
            "f",
        ])
        .await;
    assert!(
        downloads >= 4 && downloads == files.lines().count(),
        "each file once: {downloads} downloads, files: {files}"
    );
    let claim = [
        "get",
        "-n",
        &namespace,
        "pvc/cached-weights",
        "-o",
        "jsonpath={.status.phase}",
    ];
    assert_eq!(lab.kubectl(&claim).await, "Bound", "the weights stay for the next run");
    run.delete().await;

    let gone = [
        "wait",
        "-n",
        &namespace,
        "pvc/cached-weights",
        "--for=delete",
        "--timeout=60s",
    ];
    lab.kubectl(&gone).await;
    lab.kubectl(&["delete", &format!("pv/{CLASS}"), &format!("storageclass/{CLASS}")])
        .await;
    lab.run(&["exec", "--", "rm", "-rf", WEIGHTS]).await;
}
