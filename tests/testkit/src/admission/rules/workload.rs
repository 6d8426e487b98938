//! Rules on `spec.workload`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, out_of_schema, refused};

pub fn cases() -> Vec<Case> {
    let workload = |patch: Value| json!({"workload": patch});
    vec![
        refused(
            "workload without image",
            workload(json!({"image": ""})),
            "write an image reference such as",
        ),
        refused(
            "image with a blank",
            workload(json!({"image": "a b"})),
            "write an image reference such as",
        ),
        accepted(
            "image by digest",
            workload(json!({"image": format!("example.com:5000/a/b@sha256:{}", "0".repeat(64))})),
        ),
        accepted("no frontend image", workload(json!({"frontendImage": ""}))),
        refused(
            "frontend image with a blank",
            workload(json!({"frontendImage": "a b"})),
            "write an image reference, or",
        ),
        accepted(
            "version of an image that names none",
            workload(json!({"runtimeVersion": "1.6.1"})),
        ),
        refused(
            "version without a patch",
            workload(json!({"runtimeVersion": "1.6"})),
            "write Dynamo's version as MAJOR.MINOR.PATCH",
        ),
        refused(
            "version with a suffix",
            workload(json!({"runtimeVersion": "1.6.1-cuda13"})),
            "write Dynamo's version as MAJOR.MINOR.PATCH",
        ),
        accepted("pull secret", workload(json!({"imagePullSecrets": [{"name": "ngc"}]}))),
        refused(
            "pull secret of no name",
            workload(json!({"imagePullSecrets": [{"name": ""}]})),
            "write the name of a pull secret",
        ),
        accepted(
            "own command that names the model",
            workload(json!({"command": ["vllm"], "args": ["--model", "x"]})),
        ),
        refused(
            "command without a program",
            workload(json!({"command": [""]})),
            "write the program first",
        ),
        accepted("arguments", workload(json!({"args": ["--max-model-len", "4096"]}))),
        accepted(
            "arguments that a shell would read",
            workload(json!({"args": ["; rm -rf /", "$(HF_TOKEN)", "`id`", "a\nb", "'", "\"", "\\", "模型 🤖", ""]})),
        ),
        accepted(
            "a long program in the command",
            workload(json!({"command": ["python3", "-c", "#".repeat(4096)]})),
        ),
        out_of_schema(
            "a program of ten thousand characters",
            workload(json!({"command": ["python3", "-c", "#".repeat(10_000)]})),
            "spec.workload.command[2]",
        ),
        out_of_schema(
            "an argument of ten thousand characters",
            workload(json!({"args": ["--x", "模".repeat(10_000)]})),
            "spec.workload.args[1]",
        ),
        refused(
            "model in the arguments",
            workload(json!({"args": ["--model", "x"]})),
            "write model.name instead",
        ),
        refused(
            "served name in the arguments",
            workload(json!({"args": ["--served-model-name=x"]})),
            "write model.name instead",
        ),
        accepted(
            "frontend arguments",
            workload(json!({"frontendArgs": ["--kv-cache-block-size", "64"]})),
        ),
        refused(
            "router mode among the frontend's arguments",
            workload(json!({"frontendArgs": ["--router-mode=kv"]})),
            "instead of --router-mode",
        ),
        accepted(
            "environment",
            workload(json!({"env": [{"name": "A", "value": "1"}, {"name": "_b.c-D9"}]})),
        ),
        refused(
            "variable of no name",
            workload(json!({"env": [{"name": ""}]})),
            "write environment names",
        ),
        refused(
            "variable with a blank",
            workload(json!({"env": [{"name": "A B"}]})),
            "write environment names",
        ),
        refused(
            "router mode in the environment",
            workload(json!({"env": [{"name": "DYN_ROUTER_MODE", "value": "kv"}]})),
            "instead of the variable DYN_ROUTER_MODE",
        ),
        accepted(
            "resources of the worker",
            workload(json!({"resources": {"requests": {"cpu": 4, "memory": "1.5Gi"}, "limits": {"memory": "64Gi"}}})),
        ),
        refused(
            "GPU in the worker's limits",
            workload(json!({"resources": {"limits": {"nvidia.com/gpu": 1}}})),
            "workload.resources.limits",
        ),
        refused(
            "GPU in the worker's requests",
            workload(json!({"resources": {"requests": {"nvidia.com/gpu": "1"}}})),
            "workload.resources.requests",
        ),
        refused(
            "claim of the worker",
            workload(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            "the claim of a worker's GPU is made",
        ),
    ]
}
