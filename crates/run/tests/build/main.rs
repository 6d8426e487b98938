//! What a run creates, object by object. `UPDATE_GOLDEN=1 cargo test -p perfval-run --test build` writes the golden
//! files anew; without it they are compared.

mod deployment;
mod fields;
mod hostile;
mod jobs;
mod minute;
mod results;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use perfval_api::{ModelCache, PerfValidation};
use perfval_run::{Run, Settings, build, dynamo, names};
use perfval_testkit::golden::assert_recorded;
use serde_json::{Value, json};

const UID: &str = "0b8f6f0e-5d3c-4f3a-9d60-2f6a3a0d9f11";

/// What most users write.
fn typical() -> PerfValidation {
    object(
        "nvidia.com/v1beta1",
        "DRA",
        &json!({
            "model": { "name": "Qwen/Qwen3-8B", "tokenSecretRef": { "name": "hf-token", "key": "token" } },
            "workload": { "dynamo": { "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1" } },
            "podTemplate": { "spec": { "imagePullSecrets": [{ "name": "ngc" }] } },
            "gates": [
                { "name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "50k" },
                { "name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000" },
                { "name": "ttft-p99-warn", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "1000", "mode": "Warn" },
            ],
        }),
    )
}

/// Every field that ends up in a pod, for the older API and a device plugin.
fn elaborate() -> PerfValidation {
    object(
        "nvidia.com/v1alpha1",
        "DevicePlugin",
        &json!({
            "model": {
                "name": "meta-llama/Llama-3.1-8B",
                "tokenSecretRef": { "name": "hf", "key": "token", "optional": true },
                "revision": "b968826d9c46dd6066d109eabc6255188de91218",
                "cache": { "volumeClaimTemplate": { "storage": "100Gi", "storageClassName": "gp3", "accessModes": ["ReadWriteMany"] } },
            },
            "workload": { "dynamo": {
                "image": "registry.example/runtime:1.1.1",
                "routerMode": "KV",
                "worker": {
                    "args": ["--max-model-len", "8192", "; rm -rf / $(HF_TOKEN) `id`"],
                    "resources": {
                        "requests": { "cpu": "8", "memory": "64Gi", "vendor.example/nic": "1" },
                        "limits": { "memory": "64Gi", "vendor.example/nic": "1", "nvidia.com/gpu": "4" },
                    },
                },
                "frontend": {
                    "image": "registry.example/frontend:1.1.1",
                    "args": ["--router-mode", "random"],
                    "resources": { "limits": { "memory": "4Gi" } },
                    "placement": "Anywhere",
                },
                "env": [
                    { "name": "DYN_ROUTER_MODE", "value": "random" },
                    { "name": "DYN_ROUTER_TEMPERATURE", "value": "0.5" },
                    { "name": "HF_HOME", "value": "/elsewhere" },
                    { "name": "NCCL_DEBUG", "value": "WARN" },
                ],
            } },
            "podTemplate": {
                "metadata": {
                    "labels": { "kueue.x-k8s.io/queue-name": "gpus" },
                    "annotations": { "sidecar.istio.io/inject": "false" },
                },
                "spec": {
                    "securityContext": { "runAsUser": 1000, "fsGroup": 1000 },
                    "containerSecurityContext": { "allowPrivilegeEscalation": false },
                    "runtimeClassName": "kata",
                    "priorityClassName": "low",
                    "imagePullPolicy": "Always",
                },
            },
            "benchmark": {
                "image": "registry.example/aiperf:0.13.0",
                "concurrencyPerGPU": 2, "minRequests": 100, "warmupPerConcurrency": 0,
                "extraInputs": { "stop": "$(HF_TOKEN) | sh", "temperature": "0" },
                "goodput": [{ "metric": "TimeToFirstToken", "max": "1k" }, { "metric": "RequestLatency", "max": "5000" }],
                "tokenizer": "meta-llama/Llama-3.1-8B-Instruct",
                "extraArgs": ["--slice-duration", "10"],
                "resources": { "requests": { "cpu": "16" } },
                "placement": "WorkloadNode",
            },
        }),
    )
}

/// The user's own worker command.
fn own_command() -> PerfValidation {
    object(
        "nvidia.com/v1beta1",
        "DRA",
        &json!({
            "model": { "name": "tiny/model", "cache": {"persistentVolumeClaim": {"claimName": "weights"}} },
            "workload": { "dynamo": { "image": "localhost/engine:1", "worker": { "command": ["python3", "-m", "dynamo.sglang"], "args": ["--model-path", "tiny/model"] } } },
        }),
    )
}

fn object(api_version: &str, allocation: &str, spec: &Value) -> PerfValidation {
    let id = names::run_id(UID, 1);
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1",
        "kind": "PerfValidation",
        "metadata": { "name": "h100-baseline", "namespace": "perf", "uid": UID, "generation": 1 },
        "spec": spec,
        "status": {
            "observedGeneration": 1,
            "verdict": "Passed",
            "reason": "GatesMet",
            "message": "fast enough",
            "run": { "number": 1, "trigger": "Created", "generation": 1, "startedAt": "2026-11-20T10:00:00Z" },
            "placement": {
                "node": "gpu-node-1", "allocation": allocation, "gpus": 8, "nodeGPUs": 8,
            },
            "operatorState": {
                "deployment": { "apiVersion": api_version },
                "environment": { "model": "m", "image": "i" },
                "plan": { "tolerations": [{ "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" }] },
                "metrics": { "outputTokenThroughput": "110847.2" },
                "trials": [{ "number": 1, "outcome": "Pass", "startedAt": "2026-11-20T10:05:00Z" }],
            },
            "workload": { "name": names::deployment(&id), "workersReady": 8 },
        },
    }))
    .expect("a PerfValidation")
}

fn settings() -> &'static Settings {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(|| Settings {
        runner_image: "registry.example/perfvalidation-operator:0.1.0".into(),
        aiperf_image: Some("nvcr.io/nvidia/aiperf:0.13.0".into()),
        cluster_domain: "cluster.local".into(),
        version: "0.1.0".into(),
        ..Settings::default()
    });
    &SETTINGS
}

/// Everything of a run, by the name of the builder.
fn everything(run: &Run<'_>) -> BTreeMap<&'static str, Value> {
    let template = run.spec().model.cache.as_ref().and_then(ModelCache::template);
    [
        ("claim_template", json!(build::claim_template(run))),
        (
            "cache_claim",
            json!(template.map(|template| build::cache_claim(run, template))),
        ),
        ("cache_job", json!(build::cache_job(run))),
        ("workers_service", json!(build::workers_service(run))),
        ("network_policy", json!(build::network_policy(run, &[]))),
        ("deployment", json!(dynamo::deployment(run))),
        ("trial_job", json!(build::trial_job(run, 3))),
        (
            "results",
            json!(build::results(
                run,
                perfval_api::Verdict::Passed,
                &results::why(),
                &BTreeMap::from([(1, build::PackedTrial::new("{}"))]),
                &BTreeMap::new()
            )),
        ),
    ]
    .into()
}

#[test]
fn objects_are_as_recorded() {
    let cases = [
        ("typical", typical()),
        ("elaborate", elaborate()),
        ("own-command", own_command()),
    ];
    for (name, object) in cases {
        let objects = everything(&Run::new(&object, settings()));
        let text = format!("{:#}\n", json!(objects));
        let path = format!("tests/golden/{name}.json");
        assert_recorded(path, &text, "see the header of tests/build/main.rs");
    }
}

#[test]
fn every_object_is_named_labelled_and_owned() {
    let object = elaborate();
    for (kind, value) in everything(&Run::new(&object, settings())) {
        let metadata = &value["metadata"];
        assert!(metadata["name"].as_str().is_some_and(|name| !name.is_empty()), "{kind}");
        assert_eq!(metadata["namespace"], "perf", "{kind}");
        assert_eq!(metadata["ownerReferences"][0]["uid"], UID, "{kind}");
        assert_eq!(metadata["ownerReferences"][0]["controller"], true, "{kind}");
        let labels: BTreeSet<&str> = metadata["labels"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut expected = BTreeSet::from([
            "app.kubernetes.io/component",
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "app.kubernetes.io/name",
            "app.kubernetes.io/part-of",
            "app.kubernetes.io/version",
            "perfvalidation.dev/component",
            "perfvalidation.dev/name",
            "perfvalidation.dev/run",
        ]);
        expected.extend(kind.ends_with("_job").then_some("kueue.x-k8s.io/queue-name"));
        assert_eq!(labels, expected, "{kind}");
    }
}

/// Every field of an object, with its value.
fn fields(value: &Value) -> Vec<(&str, &Value)> {
    let below = |value| fields(value);
    match value {
        Value::Object(object) => {
            let own = object.iter().map(|(key, value)| (key.as_str(), value));
            own.chain(object.values().flat_map(below)).collect()
        }
        Value::Array(list) => list.iter().flat_map(below).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn nothing_asks_for_privileges_or_the_nodes_own_things() {
    const FORBIDDEN: [&str; 7] = [
        "hostPath",
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "hostPort",
        "hostUsers",
        "serviceAccountName",
    ];
    let mut seen = 0;
    for object in [typical(), elaborate(), own_command()] {
        for (kind, value) in everything(&Run::new(&object, settings())) {
            for (field, value) in fields(&value) {
                seen += 1;
                assert!(!FORBIDDEN.contains(&field), "{kind}: {field}");
                let is_privilege = matches!(field, "privileged" | "allowPrivilegeEscalation") && *value != json!(false);
                assert!(!is_privilege, "{kind}: {field}: {value}");
                assert!(field != "capabilities" || value.get("add").is_none(), "{kind}: {value}");
            }
        }
    }
    assert!(seen > 500, "{seen}");
}

#[test]
fn names_and_label_values_fit_in_the_longest_namespace() {
    let mut object = typical();
    object.metadata.namespace = Some("n".repeat(51));
    object.metadata.name = Some("x".repeat(63));
    object.spec.model.cache = elaborate().spec.model.cache;
    let run = Run::new(&object, settings());
    let mut count = 0;
    for (kind, value) in everything(&run) {
        let name = value["metadata"]["name"].as_str().unwrap();
        // Only these two are named after the object, and only they may have longer names.
        let most = if name.starts_with('x') { 253 } else { 63 };
        assert!(name.len() <= most, "{kind}: {name}");
        // Of the object and of its pods.
        let labels = fields(&value).into_iter().filter(|(field, _)| *field == "labels");
        for (label, value) in labels.filter_map(|(_, labels)| labels.as_object()).flatten() {
            count += 1;
            let fits = value.as_str().is_some_and(|value| value.len() <= 63);
            assert!(fits, "{kind}: {label}: {value}");
        }
    }
    assert!(count > 72, "the objects alone have 72: {count}");
    // The label `nvidia.com/dynamo-namespace` that Dynamo's operator makes.
    let label = format!("{}-{}", run.namespace(), names::deployment(&run.id()));
    assert!(label.len() <= 63, "{label}");
    assert!(names::trial_job(&run.id(), 20).len() <= 63);
}
