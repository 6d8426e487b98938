//! The failures: adding one is adding a row.

use serde_json::{Value, json};

use super::{End, Failure, HUB};

/// A worker that is healthy for the kubelet and has no engine.
const EMPTY_WORKER: &str = "import http.server
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(('', 9090), Healthy).serve_forever()";

/// A worker that is ready and fails every request.
const BROKEN_WORKER: &str = include_str!("broken_worker.py");

const NOTHING: Failure = Failure {
    name: "",
    reason: "",
    says: "",
    change: |_, _| {},
    objects: |_| Vec::new(),
    faults: "",
    end: End::Error,
    in_every_run: false,
};

/// Every failure that one namespace is enough for.
pub const TABLE: &[Failure] = &[
    Failure {
        name: "image-absent",
        reason: "ContainerFailed",
        says: "is not present with pull policy of Never",
        change: |spec, _| spec["workload"]["dynamo"]["image"] = json!("localhost/no-such-image:1.4.9"),
        in_every_run: true,
        ..NOTHING
    },
    Failure {
        name: "registry-away",
        reason: "ContainerFailed",
        says: "connection refused",
        change: |spec, _| {
            spec["workload"]["dynamo"]["image"] = json!("localhost:5999/some/image:1.4.9");
            spec["podTemplate"]["spec"]["imagePullPolicy"] = json!("IfNotPresent");
        },
        end: End::Told,
        ..NOTHING
    },
    Failure {
        name: "crash-loop",
        reason: "ContainerFailed",
        says: "crashes (exit code 3): OSError: no such tokenizer",
        change: |spec, _| worker(spec, &["sh", "-c", "echo 'OSError: no such tokenizer' >&2; exit 3"]),
        in_every_run: true,
        ..NOTHING
    },
    Failure {
        name: "out-of-memory",
        reason: "ContainerFailed",
        says: "killed for its memory use",
        change: |spec, _| {
            worker(spec, &["python3", "-c", "x = bytearray(1 << 30)"]);
            spec["workload"]["dynamo"]["worker"]["resources"] =
                json!({"limits": {"memory": "128Mi"}, "requests": {"memory": "64Mi"}});
        },
        ..NOTHING
    },
    Failure {
        name: "secret-missing",
        reason: "ContainerFailed",
        says: "secret \"no-such-secret\" not found",
        change: |spec, _| spec["model"]["tokenSecretRef"] = json!({"name": "no-such-secret", "key": "token"}),
        ..NOTHING
    },
    Failure {
        name: "too-many-cpus",
        reason: "Saturated",
        says: "cpu for only 0 workers",
        change: |spec, _| {
            spec["workload"]["dynamo"]["worker"]["resources"] = json!({"requests": {"cpu": "900"}});
            spec["timeouts"]["sizing"] = json!("0s");
        },
        ..NOTHING
    },
    Failure {
        name: "quota-full",
        reason: "Refused",
        says: "no-pods",
        change: |spec, _| spec["timeouts"]["sizing"] = json!("0s"),
        objects: |namespace| vec![quota(namespace, "no-pods", &json!({"pods": "0"}))],
        in_every_run: true,
        ..NOTHING
    },
    Failure {
        name: "pods-denied",
        reason: "Refused",
        says: "no workers here",
        objects: |namespace| {
            let rule = "!has(object.metadata.labels) || !('perfvalidation.dev/component' in object.metadata.labels) || \
                object.metadata.labels['perfvalidation.dev/component'] != 'worker'";
            policy(namespace, "", "v1", "pods", rule, "no workers here")
        },
        ..NOTHING
    },
    Failure {
        name: "graph-denied",
        reason: "Refused",
        says: "no graphs here",
        objects: |namespace| {
            let kind = "dynamographdeployments";
            policy(namespace, "nvidia.com", "*", kind, "false", "no graphs here")
        },
        ..NOTHING
    },
    Failure {
        name: "graph-failed",
        reason: "DeploymentFailed",
        says: "exceeded quota",
        objects: |namespace| {
            vec![quota(
                namespace,
                "no-deployments",
                &json!({"count/deployments.apps": "0"}),
            )]
        },
        ..NOTHING
    },
    Failure {
        name: "fewer-than-asked",
        reason: "WorkloadNotReady",
        says: "although Dynamo's operator calls the deployment successful",
        change: |spec, _| {
            worker(spec, &["sleep", "1000"]);
            spec["timeouts"]["workloadReady"] = json!("30s");
        },
        faults: "ready-below-spec",
        ..NOTHING
    },
    Failure {
        name: "volume-unbound",
        reason: "ModelCacheFailed",
        says: "persistent volumes to bind",
        change: |spec, namespace| {
            spec["model"]["cache"] = json!({"volumeClaimTemplate": {"storage": "1Gi", "storageClassName": namespace}});
        },
        objects: |namespace| vec![class(namespace)],
        end: End::Told,
        ..NOTHING
    },
    Failure {
        name: "cache-gated",
        reason: "ModelUnavailable",
        says: "Cannot access gated repo",
        change: |spec, namespace| fetch(spec, namespace, "lab/gated", HUB),
        objects: |namespace| vec![class(namespace), volume(namespace)],
        ..NOTHING
    },
    Failure {
        name: "cache-unknown",
        reason: "ModelUnavailable",
        says: "Repository Not Found",
        change: |spec, namespace| fetch(spec, namespace, "lab/none", HUB),
        objects: |namespace| vec![class(namespace), volume(namespace)],
        ..NOTHING
    },
    Failure {
        name: "cache-unreached",
        reason: "ModelUnavailable",
        says: "could not fill the model cache",
        change: |spec, namespace| fetch(spec, namespace, "lab/none", "http://hub.invalid"),
        objects: |namespace| vec![class(namespace), volume(namespace)],
        ..NOTHING
    },
    Failure {
        name: "cache-image-absent",
        reason: "ContainerFailed",
        says: "model cache: pod",
        change: |spec, namespace| {
            fetch(spec, namespace, "lab/none", "http://hub.invalid");
            spec["workload"]["dynamo"]["image"] = json!("localhost/no-such-image:1.4.9");
        },
        objects: |namespace| vec![class(namespace), volume(namespace)],
        ..NOTHING
    },
    Failure {
        name: "model-unknown",
        reason: "ModelUnavailable",
        says: "Model snapshots for 'lab/none' not found in cache",
        change: |spec, _| {
            spec["model"]["name"] = json!("lab/none");
            worker(spec, &["python3", "-m", "dynamo.mocker", "--model-path", "lab/none"]);
        },
        ..NOTHING
    },
    Failure {
        name: "model-of-another-name",
        reason: "ModelUnavailable",
        says: "the frontend serves lab/tiny-qwen3, not lab/other",
        change: |spec, _| spec["model"]["name"] = json!("lab/other"),
        ..NOTHING
    },
    Failure {
        name: "no-completion",
        reason: "WorkloadNotReady",
        says: "returning 0 instances",
        change: |spec, _| {
            worker(spec, &["python3", "-c", EMPTY_WORKER]);
            spec["timeouts"]["endpointReady"] = json!("20s");
        },
        ..NOTHING
    },
    Failure {
        name: "completions-fail",
        reason: "WorkloadNotReady",
        says: "500",
        change: |spec, _| {
            worker(spec, &["python3", "-c", BROKEN_WORKER]);
            spec["timeouts"]["endpointReady"] = json!("20s");
        },
        ..NOTHING
    },
    Failure {
        name: "claim-refused",
        reason: "NodeNotReady",
        says: "NoSuchConfig",
        change: |spec, namespace| spec["placement"]["deviceClassName"] = json!(namespace),
        objects: |namespace| vec![unprepared(namespace)],
        end: End::Told,
        ..NOTHING
    },
    Failure {
        name: "newer-image",
        reason: "VersionSkew",
        says: "1.6",
        change: |spec, _| spec["workload"]["dynamo"]["image"] = json!("localhost/dynamo-lab:1.6.1"),
        ..NOTHING
    },
    Failure {
        name: "older-image",
        reason: "VersionSkew",
        says: "1.2",
        change: |spec, _| spec["workload"]["dynamo"]["image"] = json!("localhost/dynamo-lab:1.2.1"),
        ..NOTHING
    },
    Failure {
        name: "no-aiperf",
        reason: "AIPerfMissing",
        says: "aiperf",
        change: |spec, _| spec["benchmark"]["image"] = json!("localhost/busybox:lab"),
        in_every_run: true,
        ..NOTHING
    },
];

fn worker(spec: &mut Value, command: &[&str]) {
    spec["workload"]["dynamo"]["worker"]["command"] = json!(command);
    spec["workload"]["dynamo"]["worker"]["args"] = json!([]);
}

/// A model that a Job fetches from a hub first.
fn fetch(spec: &mut Value, namespace: &str, model: &str, hub: &str) {
    spec["model"] =
        json!({"name": model, "cache": {"volumeClaimTemplate": {"storage": "100Mi", "storageClassName": namespace}}});
    spec["workload"]["dynamo"]["env"] = json!([{"name": "HF_ENDPOINT", "value": hub}]);
}

fn quota(namespace: &str, name: &str, hard: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": hard}})
}

/// A class without a provisioner, of the namespace's name.
fn class(namespace: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": namespace},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
}

/// GPUs that the scheduler gives out with a setting that their driver does not know: it refuses to prepare the claim.
fn unprepared(namespace: &str) -> Value {
    let parameters = json!({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "NoSuchConfig"});
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": namespace}, "spec": {
        "selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}],
        "config": [{"opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}]}})
}

fn volume(namespace: &str) -> Value {
    let path = format!("/var/lib/perfval-failures/{namespace}");
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": namespace,
            "hostPath": {"path": path, "type": "DirectoryOrCreate"}}})
}

/// What a webhook does as well: it denies creating objects of a kind.
fn policy(namespace: &str, group: &str, version: &str, plural: &str, rule: &str, says: &str) -> Vec<Value> {
    let kind = |kind: &str| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": namespace}});
    let (mut policy, mut binding) = (
        kind("ValidatingAdmissionPolicy"),
        kind("ValidatingAdmissionPolicyBinding"),
    );
    let resources =
        json!([{"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [plural]}]);
    policy["spec"] = json!({"matchConstraints": {"resourceRules": resources},
        "validations": [{"expression": rule, "message": says}]});
    let only = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    binding["spec"] = json!({"policyName": namespace, "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": only}});
    vec![policy, binding]
}
