//! Rules on `spec.workload`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, out_of_schema, refused};

pub fn cases() -> Vec<Case> {
    let dynamo = |patch: Value| json!({"workload": {"dynamo": patch}});
    let worker = |patch: Value| dynamo(json!({"worker": patch}));
    let frontend = |patch: Value| dynamo(json!({"frontend": patch}));
    vec![
        refused(
            "workload without image",
            dynamo(json!({"image": ""})),
            "write an image reference such as",
        ),
        refused(
            "image with a blank",
            dynamo(json!({"image": "a b"})),
            "write an image reference such as",
        ),
        accepted(
            "image by digest",
            dynamo(json!({"image": format!("example.com:5000/a/b@sha256:{}", "0".repeat(64))})),
        ),
        accepted("no frontend image", frontend(json!({"image": ""}))),
        refused(
            "frontend image with a blank",
            frontend(json!({"image": "a b"})),
            "write an image reference, or",
        ),
        accepted(
            "version of an image that names none",
            dynamo(json!({"runtimeVersion": "1.6.1"})),
        ),
        refused(
            "version without a patch",
            dynamo(json!({"runtimeVersion": "1.6"})),
            "write Dynamo's version as MAJOR.MINOR.PATCH",
        ),
        refused(
            "version with a suffix",
            dynamo(json!({"runtimeVersion": "1.6.1-cuda13"})),
            "write Dynamo's version as MAJOR.MINOR.PATCH",
        ),
        accepted(
            "own command that names the model",
            worker(json!({"command": ["vllm"], "args": ["--model", "x"]})),
        ),
        refused(
            "command without a program",
            worker(json!({"command": [""]})),
            "write the program first",
        ),
        accepted("arguments", worker(json!({"args": ["--max-model-len", "4096"]}))),
        accepted(
            "arguments that a shell would read",
            worker(json!({"args": ["; rm -rf /", "$(HF_TOKEN)", "`id`", "a\nb", "'", "\"", "\\", "模型 🤖", ""]})),
        ),
        accepted(
            "a long program in the command",
            worker(json!({"command": ["python3", "-c", "#".repeat(4096)]})),
        ),
        out_of_schema(
            "a program of ten thousand characters",
            worker(json!({"command": ["python3", "-c", "#".repeat(10_000)]})),
            "spec.workload.dynamo.worker.command[2]",
        ),
        out_of_schema(
            "an argument of ten thousand characters",
            worker(json!({"args": ["--x", "模".repeat(10_000)]})),
            "spec.workload.dynamo.worker.args[1]",
        ),
        refused(
            "model in the arguments",
            worker(json!({"args": ["--model", "x"]})),
            "write model.name instead",
        ),
        refused(
            "served name in the arguments",
            worker(json!({"args": ["--served-model-name=x"]})),
            "write model.name instead",
        ),
        refused(
            "served name with underscores",
            worker(json!({"args": ["--served_model_name", "x"]})),
            "write model.name instead",
        ),
        accepted(
            "frontend arguments",
            frontend(json!({"args": ["--kv-cache-block-size", "64"]})),
        ),
        refused(
            "router mode among the frontend's arguments",
            frontend(json!({"args": ["--router-mode=kv"]})),
            "instead of --router-mode",
        ),
        accepted(
            "environment",
            dynamo(json!({"env": [{"name": "A", "value": "1"}, {"name": "_b.c-D9"}]})),
        ),
        refused(
            "variable of no name",
            dynamo(json!({"env": [{"name": ""}]})),
            "write environment names",
        ),
        refused(
            "variable with a blank",
            dynamo(json!({"env": [{"name": "A B"}]})),
            "write environment names",
        ),
        refused(
            "router mode in the environment",
            dynamo(json!({"env": [{"name": "DYN_ROUTER_MODE", "value": "kv"}]})),
            "instead of the variable DYN_ROUTER_MODE",
        ),
        refused(
            "tensor parallelism beside the default command",
            worker(json!({"args": ["--tensor-parallel-size=2"]})),
            "write worker.gpus instead of --tensor-parallel-size",
        ),
        refused(
            "tensor parallelism with underscores",
            worker(json!({"args": ["--tensor_parallel_size=2"]})),
            "write worker.gpus instead of --tensor-parallel-size",
        ),
        accepted(
            "tensor parallelism of an own command",
            worker(json!({"gpus": 2, "command": ["python3", "-m", "dynamo.vllm"], "args": ["-tp", "2"]})),
        ),
        accepted(
            "resources of the worker",
            worker(json!({"resources": {"requests": {"cpu": 4, "memory": "1.5Gi"}, "limits": {"memory": "64Gi"}}})),
        ),
        refused(
            "GPU in the worker's limits",
            worker(json!({"resources": {"limits": {"nvidia.com/gpu": 1}}})),
            "workload.dynamo.worker.resources.limits",
        ),
        refused(
            "GPU in the worker's requests",
            worker(json!({"resources": {"requests": {"nvidia.com/gpu": "1"}}})),
            "workload.dynamo.worker.resources.requests",
        ),
        refused(
            "claim of the worker",
            worker(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            "the claim of a worker's GPUs is made",
        ),
        accepted(
            "resources of the frontend",
            frontend(json!({"resources": {"requests": {"cpu": 2}}})),
        ),
        refused(
            "claim of the frontend",
            frontend(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            "the frontend needs CPU and memory only",
        ),
        refused(
            "workload without a member",
            json!({"workload": {"dynamo": null}}),
            "write exactly one member",
        ),
    ]
}
