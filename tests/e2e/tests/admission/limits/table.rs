//! Specs within and beyond the shipped limits. A refusal has the words that show what to write.

use serde_json::{Value, json};

fn env(entry: &Value) -> Value {
    json!({"workload": {"dynamo": {"env": [{"name": "PLAIN", "value": "1"}, entry]}}})
}

fn secret(name: &str) -> Value {
    env(&json!({"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}))
}

fn pods(spec: &Value) -> Value {
    json!({"podTemplate": {"spec": spec}})
}

fn metadata(metadata: &Value) -> Value {
    json!({"podTemplate": {"metadata": metadata}})
}

pub fn admitted() -> Vec<(&'static str, Value)> {
    vec![
        ("plain", json!({})),
        ("few-gpus", json!({"placement": {"maxGPUs": 1}})),
        (
            "token",
            json!({"model": {"tokenSecretRef": {"name": "hf-token", "key": "token"}}}),
        ),
        ("known-secret", secret("hf-token")),
        (
            "known-pull-secret",
            pods(&json!({"imagePullSecrets": [{"name": "hf-token"}]})),
        ),
        (
            "own-aiperf",
            json!({"benchmark": {"image": "ghcr.io/perfvalidation/aiperf:0.13.0"}}),
        ),
        (
            "own-cache",
            json!({"model": {"cache": {"volumeClaimTemplate": {"storage": "40Gi"}}}}),
        ),
        (
            "processors",
            json!({"benchmark": {"resources": {"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}}}}),
        ),
        (
            "queue",
            metadata(&json!({"labels": {"kueue.x-k8s.io/queue-name": "gpus"}})),
        ),
        (
            "restricted",
            pods(&json!({
                "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
                "containerSecurityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            })),
        ),
    ]
}

pub fn refused() -> Vec<(&'static str, Value, &'static str)> {
    [images_and_nodes(), gpus_and_time(), references(), settings_of_pods()].concat()
}

fn images_and_nodes() -> Vec<(&'static str, Value, &'static str)> {
    let images = "images are limited to nvcr.io/nvidia/ai-dynamo, ghcr.io/perfvalidation";
    let tolerate = |field: &str, toleration: Value| json!({"placement": {field: [toleration]}});
    vec![
        (
            "workers",
            json!({"workload": {"dynamo": {"image": "nvcr.io/nvidia/ai-dynamo-of-others/x:1.6.1"}}}),
            images,
        ),
        (
            "frontend",
            json!({"workload": {"dynamo": {"frontend": {"image": "quay.io/x/y:1.6.1"}}}}),
            images,
        ),
        (
            "load-generator",
            json!({"benchmark": {"image": "aiperf:0.13.0"}}),
            images,
        ),
        (
            "node",
            json!({"placement": {"nodeSelector": {"perfvalidation.dev/pool": null, "kubernetes.io/hostname": "a"}}}),
            "write perfvalidation.dev/pool with one of validation in placement.nodeSelector",
        ),
        (
            "other-pool",
            json!({"placement": {"nodeSelector": {"perfvalidation.dev/pool": "production"}}}),
            "write perfvalidation.dev/pool with one of validation in placement.nodeSelector",
        ),
        (
            "frontend-anywhere",
            json!({"workload": {"dynamo": {"frontend": {"placement": "Anywhere"}}}}),
            "write WorkloadNode in workload.dynamo.frontend.placement",
        ),
        (
            "generator-anywhere",
            json!({"benchmark": {"placement": "Anywhere"}}),
            "write WorkloadNode in benchmark.placement",
        ),
        (
            "tolerant",
            tolerate("tolerations", json!({"key": "team-b", "operator": "Exists"})),
            "placement.tolerations is limited to the keys (none)",
        ),
        (
            "tolerant-of-all",
            tolerate("tolerations", json!({"operator": "Exists"})),
            "placement.tolerations is limited to the keys (none)",
        ),
        (
            "device-out-of-service",
            tolerate("deviceTolerations", json!({"key": "faulty", "operator": "Exists"})),
            "placement.deviceTolerations is limited to the keys (none)",
        ),
    ]
}

fn gpus_and_time() -> Vec<(&'static str, Value, &'static str)> {
    let devices = "placement.deviceClassName and placement.resourceName are limited to gpu.nvidia.com, nvidia.com/gpu";
    let amounts = "limits and requests are limited to cpu, memory, ephemeral-storage";
    let gpu = json!({"limits": {"nvidia.com/gpu": "4"}});
    vec![
        (
            "gpus",
            json!({"placement": {"maxGPUs": 9}}),
            "write placement.maxGPUs of at most 8",
        ),
        (
            "all-gpus",
            json!({"placement": {"maxGPUs": null}}),
            "write placement.maxGPUs of at most 8",
        ),
        (
            "device-class",
            json!({"placement": {"deviceClassName": "nic.example.com"}}),
            devices,
        ),
        (
            "resource",
            json!({"placement": {"resourceName": "example.com/nic"}}),
            devices,
        ),
        ("generator-gpus", json!({"benchmark": {"resources": gpu}}), amounts),
        (
            "frontend-gpus",
            json!({"workload": {"dynamo": {"frontend": {"resources": gpu}}}}),
            amounts,
        ),
        (
            "worker-devices",
            json!({"workload": {"dynamo": {"worker": {"resources": {"requests": {"rdma/hca": "1"}}}}}}),
            amounts,
        ),
        (
            "total",
            json!({"timeouts": {"total": "4h1s"}}),
            "write timeouts.total of at most 4h",
        ),
        (
            "no-total",
            json!({"timeouts": {"total": null}}),
            "write timeouts.total of at most 4h",
        ),
        (
            "results",
            json!({"resultsHistoryLimit": 11}),
            "write resultsHistoryLimit of at most 10",
        ),
    ]
}

fn references() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "token",
            json!({"model": {"tokenSecretRef": {"name": "database", "key": "k"}}}),
            "model.tokenSecretRef is limited to hf-token",
        ),
        (
            "secret",
            secret("database"),
            "Secrets in workload.dynamo.env are limited to hf-token",
        ),
        (
            "pull-secret",
            pods(&json!({"imagePullSecrets": [{"name": "hf-token"}, {"name": "database"}]})),
            "podTemplate.spec.imagePullSecrets is limited to hf-token",
        ),
        (
            "config-map",
            env(&json!({"name": "PASSWORD", "valueFrom": {"configMapKeyRef": {"name": "database", "key": "k"}}})),
            "write the value itself instead of configMapKeyRef in workload.dynamo.env",
        ),
        (
            "claim",
            json!({"model": {"cache": {"persistentVolumeClaim": {"claimName": "database"}}}}),
            "model.cache.persistentVolumeClaim is limited to (none)",
        ),
        (
            "every-gpu-of-the-node",
            env(&json!({"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"})),
            "leave the variables NVIDIA_* out of workload.dynamo.env",
        ),
        (
            "exporter",
            json!({"telemetry": {"endpoint": "http://10.0.0.7:9400/metrics"}}),
            "leave telemetry.endpoint out",
        ),
    ]
}

fn settings_of_pods() -> Vec<(&'static str, Value, &'static str)> {
    let of_pod = "podTemplate.spec.securityContext: write no";
    let of_container = "podTemplate.spec.containerSecurityContext: write no";
    let keys = "keys of podTemplate.metadata are limited to kueue.x-k8s.io/queue-name, sidecar.istio.io/inject";
    let pod = |context: Value| pods(&json!({"securityContext": context}));
    let container = |context: Value| pods(&json!({"containerSecurityContext": context}));
    let profile = json!({"type": "Localhost", "localhostProfile": "weak.json"});
    vec![
        (
            "priority",
            pods(&json!({"priorityClassName": "high"})),
            "leave podTemplate.spec.priorityClassName out",
        ),
        (
            "runtime",
            pods(&json!({"runtimeClassName": "nvidia-legacy"})),
            "podTemplate.spec.runtimeClassName is limited to (none)",
        ),
        ("root", pod(json!({"runAsNonRoot": false})), of_pod),
        ("user-0", pod(json!({"runAsUser": 0})), of_pod),
        ("seccomp", pod(json!({"seccompProfile": profile})), of_pod),
        ("apparmor", pod(json!({"appArmorProfile": profile})), of_pod),
        (
            "sysctl",
            pod(json!({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]})),
            of_pod,
        ),
        (
            "container-root",
            container(json!({"runAsNonRoot": false})),
            of_container,
        ),
        ("container-user-0", container(json!({"runAsUser": 0})), of_container),
        (
            "container-seccomp",
            container(json!({"seccompProfile": profile})),
            of_container,
        ),
        (
            "container-apparmor",
            container(json!({"appArmorProfile": profile})),
            of_container,
        ),
        (
            "capabilities",
            container(json!({"capabilities": {"drop": []}})),
            of_container,
        ),
        (
            "few-capabilities",
            container(json!({"capabilities": {"drop": ["NET_RAW"]}})),
            of_container,
        ),
        (
            "escalation",
            container(json!({"allowPrivilegeEscalation": true})),
            of_container,
        ),
        (
            "written-root",
            container(json!({"readOnlyRootFilesystem": false})),
            of_container,
        ),
        ("label", metadata(&json!({"labels": {"app": "database"}})), keys),
        (
            "annotation",
            metadata(&json!({"annotations": {"sidecar.istio.io/userVolume": "[]"}})),
            keys,
        ),
    ]
}
