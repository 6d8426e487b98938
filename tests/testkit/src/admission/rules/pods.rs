//! Rules on `spec.podTemplate`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, refused};

pub fn cases() -> Vec<Case> {
    let spec = |patch: Value| json!({"podTemplate": {"spec": patch}});
    let labels = |patch: Value| json!({"podTemplate": {"metadata": {"labels": patch}}});
    let annotations = |patch: Value| json!({"podTemplate": {"metadata": {"annotations": patch}}});
    vec![
        accepted("pull secret", spec(json!({"imagePullSecrets": [{"name": "ngc"}]}))),
        refused(
            "pull secret of no name",
            spec(json!({"imagePullSecrets": [{"name": ""}]})),
            "write the name of a pull secret",
        ),
        accepted(
            "security contexts",
            spec(json!({
                "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
                "containerSecurityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            })),
        ),
        refused(
            "pods without seccomp",
            spec(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}})),
            "write what Pod Security level baseline admits",
        ),
        refused(
            "privileged containers",
            spec(json!({"containerSecurityContext": {"privileged": true}})),
            "write what Pod Security level baseline admits",
        ),
        refused(
            "containers with another capability",
            spec(json!({"containerSecurityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}})),
            "leave capabilities.add out",
        ),
        accepted("runtime class", spec(json!({"runtimeClassName": "nvidia"}))),
        refused(
            "runtime class of no name",
            spec(json!({"runtimeClassName": ""})),
            "write the name of an object",
        ),
        refused(
            "priority class in capitals",
            spec(json!({"priorityClassName": "Low"})),
            "write the name of an object",
        ),
        refused(
            "priority class of the cluster",
            spec(json!({"priorityClassName": "system-node-critical"})),
            "write a PriorityClass of your own",
        ),
        accepted("queue of Kueue", labels(json!({"kueue.x-k8s.io/queue-name": "gpus"}))),
        refused(
            "label of the operator's",
            labels(json!({"perfvalidation.dev/run": "1"})),
            "write another name",
        ),
        refused(
            "label with a blank",
            labels(json!({"team": "a b"})),
            "write a label's value",
        ),
        refused(
            "label whose name has a blank",
            labels(json!({"my team": "x"})),
            "write another name",
        ),
        accepted(
            "switch of Istio",
            annotations(json!({"sidecar.istio.io/inject": "false"})),
        ),
        refused(
            "annotation of the operator's",
            annotations(json!({"app.kubernetes.io/name": "x"})),
            "write another name",
        ),
    ]
}
