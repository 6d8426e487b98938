//! Rules on `spec.placement`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, refused};

pub fn cases() -> Vec<Case> {
    let placement = |patch: Value| json!({"placement": patch});
    vec![
        accepted(
            "as many GPUs at least as at most",
            placement(json!({"minGPUs": 4, "maxGPUs": 4})),
        ),
        refused(
            "more GPUs at least than at most",
            placement(json!({"minGPUs": 5, "maxGPUs": 4})),
            "a minGPUs of at most maxGPUs",
        ),
        accepted(
            "as many GPUs at most as one worker has",
            json!({"placement": {"maxGPUs": 4}, "workload": {"dynamo": {"worker": {"gpus": 4}}}}),
        ),
        refused(
            "fewer GPUs at most than one worker has",
            json!({"placement": {"maxGPUs": 3}, "workload": {"dynamo": {"worker": {"gpus": 4}}}}),
            "no number of them fits",
        ),
        refused(
            "no whole worker between the bounds",
            json!({"placement": {"minGPUs": 4, "maxGPUs": 5}, "workload": {"dynamo": {"worker": {"gpus": 3}}}}),
            "no number of them fits",
        ),
        accepted(
            "as many GPUs expected as asked for at least",
            placement(json!({"minGPUs": 8, "expectGPUs": 8})),
        ),
        accepted(
            "fewer GPUs expected than asked for at most",
            placement(json!({"maxGPUs": 16, "expectGPUs": 8})),
        ),
        refused(
            "fewer GPUs expected than asked for at least",
            placement(json!({"minGPUs": 8, "expectGPUs": 7})),
            "an expectGPUs of at least minGPUs",
        ),
        accepted(
            "toleration",
            placement(json!({"tolerations": [
                {"operator": "Exists"}, {"key": "gpu", "value": "x", "effect": "NoExecute", "tolerationSeconds": 60},
            ]})),
        ),
        refused(
            "toleration of an unknown effect",
            placement(json!({"tolerations": [{"effect": "Never"}]})),
            "write operator Exists or Equal",
        ),
        refused(
            "toleration by an unknown operator",
            placement(json!({"tolerations": [{"operator": "In"}]})),
            "write operator Exists or Equal",
        ),
        refused(
            "toleration without a key",
            placement(json!({"tolerations": [{"effect": "NoSchedule"}]})),
            "write the key of the taint",
        ),
        refused(
            "toleration of every taint by an empty key",
            placement(json!({"tolerations": [{"key": "", "operator": "Equal"}]})),
            "write the key of the taint",
        ),
        refused(
            "toleration of a value that only exists",
            placement(json!({"tolerations": [{"key": "gpu", "operator": "Exists", "value": "x"}]})),
            "leave value out",
        ),
        accepted(
            "toleration of an empty value",
            placement(json!({"tolerations": [{"key": "gpu", "operator": "Exists", "value": ""}]})),
        ),
        refused(
            "toleration for a while of another effect",
            placement(
                json!({"tolerations": [{"operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 60}]}),
            ),
            "write effect NoExecute",
        ),
        refused(
            "toleration for a while of every effect",
            placement(json!({"tolerations": [{"operator": "Exists", "tolerationSeconds": 60}]})),
            "write effect NoExecute",
        ),
        accepted(
            "toleration of tainted devices",
            placement(json!({"deviceTolerations": [
                {"key": "gpu.nvidia.com/xid", "operator": "Exists", "effect": "NoSchedule"}, {"key": "k", "value": "v"},
            ]})),
        ),
        refused(
            "device toleration of an unknown effect",
            placement(json!({"deviceTolerations": [{"effect": "PreferNoSchedule"}]})),
            "effect NoSchedule or NoExecute",
        ),
        refused(
            "device toleration without a key",
            placement(json!({"deviceTolerations": [{"effect": "NoSchedule"}]})),
            "write the key of the taint",
        ),
        refused(
            "device toleration of a value that only exists",
            placement(json!({"deviceTolerations": [{"key": "gpu", "operator": "Exists", "value": "x"}]})),
            "leave value out",
        ),
        refused(
            "device toleration for a while",
            placement(
                json!({"deviceTolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]}),
            ),
            "leave tolerationSeconds out",
        ),
        accepted(
            "own device class",
            placement(json!({"deviceClassName": "gpu-h100.example.com"})),
        ),
        refused(
            "device class of no name",
            placement(json!({"deviceClassName": ""})),
            "write the name of an object",
        ),
        accepted(
            "own resource",
            placement(json!({"resourceName": "nvidia.com/gpu.shared"})),
        ),
        refused(
            "resource without a domain",
            placement(json!({"resourceName": "gpu"})),
            "write an extended resource as domain/name",
        ),
    ]
}
