//! A run that two cores finish in under a minute.

use serde_json::{Value, json};

/// A manifest of a small run: two GPUs, one trial, gates that a healthy deployment meets by far. Tests change what they
/// are about.
pub fn quick(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1",
        "kind": "PerfValidation",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "model": {"name": "lab/tiny-qwen3"},
            "workload": {"dynamo": {
                "image": "localhost/dynamo-lab:1.4.2",
                "worker": {
                    "command": ["lab-worker"],
                    "args": ["--max-num-seqs", "32"],
                    // A pod without a request gets next to no CPU while tests are compiled beside it.
                    "resources": {"requests": {"cpu": "50m"}},
                },
            }},
            "podTemplate": {"spec": {"imagePullPolicy": "Never"}},
            "placement": {"maxGPUs": 2},
            "benchmark": {
                "image": "localhost/dynamo-lab:1.4.2",
                "concurrencyPerGPU": 8,
                "inputTokens": 64,
                "outputTokens": 16,
                "requestsPerConcurrency": 4,
                "minRequests": 64,
                "requestTimeout": "60s",
                "placement": "WorkloadNode",
            },
            "trials": {"rule": "Single", "max": 1},
            "gates": [
                {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"},
                {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "20000"},
            ],
            // A worker that hangs must not hold a test for the defaults of a large model.
            "timeouts": {"endpointProbe": "20s", "benchmark": "4m", "cleanup": "3m"},
        },
    })
}

/// The shortest run that is one: a GPU, a worker at full speed, a handful of requests.
pub(crate) fn short(name: &str, namespace: &str) -> Value {
    let mut manifest = quick(name, namespace);
    let spec = &mut manifest["spec"];
    spec["placement"]["maxGPUs"] = json!(1);
    spec["workload"]["dynamo"]["env"] = json!([{"name": "LAB_SPEEDUP_RATIO", "value": "0"}]);
    spec["benchmark"]["concurrencyPerGPU"] = json!(2);
    spec["benchmark"]["requestsPerConcurrency"] = json!(4);
    spec["benchmark"]["minRequests"] = json!(8);
    spec["benchmark"]["outputTokens"] = json!(4);
    manifest
}
