//! One manifest that keeps and one that breaks each CEL rule.

use serde_json::{Value, json};

use super::{Case, Rejected, accepted, refused, with};

pub fn cases() -> Vec<Case> {
    [
        name(),
        model(),
        workload(),
        placement(),
        benchmark(),
        trials(),
        gates(),
        timeouts(),
    ]
    .concat()
}

fn name() -> Vec<Case> {
    let named = |length: usize| with(json!({"metadata": {"name": "a".repeat(length)}}));
    vec![
        Case {
            name: "name of 40 characters".into(),
            manifest: named(40),
            rejected: None,
        },
        Case {
            name: "name of 41 characters".into(),
            manifest: named(41),
            rejected: Some(Rejected::Rule("write at most 40 characters".into())),
        },
    ]
}

fn model() -> Vec<Case> {
    let model = |patch: Value| json!({"model": patch});
    vec![
        refused("model without a name", model(json!({"name": ""})), "write a model id"),
        refused(
            "model that looks like a flag",
            model(json!({"name": "--trust"})),
            "write a model id",
        ),
        accepted(
            "token",
            model(json!({"tokenSecretRef": {"name": "hf-token", "key": "token"}})),
        ),
        refused(
            "token of no Secret",
            model(json!({"tokenSecretRef": {"name": "", "key": "token"}})),
            "write the name and the key of a Secret",
        ),
        refused(
            "token under no key",
            model(json!({"tokenSecretRef": {"name": "hf-token", "key": ""}})),
            "write the name and the key of a Secret",
        ),
        refused(
            "token given twice",
            json!({
                "model": {"tokenSecretRef": {"name": "hf-token", "key": "token"}},
                "workload": {"env": [{"name": "HF_TOKEN", "value": "x"}]},
            }),
            "the token is given twice",
        ),
        accepted("cache of a claim", model(json!({"cache": {"claimName": "weights"}}))),
        accepted(
            "cache by size",
            model(json!({"cache": {"size": "100Gi", "storageClassName": "gp3"}})),
        ),
        refused(
            "cache of nothing",
            model(json!({"cache": {}})),
            "write exactly one of claimName",
        ),
        refused(
            "cache of both kinds",
            model(json!({"cache": {"claimName": "weights", "size": "100Gi"}})),
            "write exactly one of claimName",
        ),
        refused(
            "storage class of an existing claim",
            model(json!({"cache": {"claimName": "weights", "storageClassName": "gp3"}})),
            "write size beside it",
        ),
        refused(
            "cache without size",
            model(json!({"cache": {"size": "0"}})),
            "write a quantity of bytes above 0",
        ),
        refused(
            "cache of some size",
            model(json!({"cache": {"size": "big"}})),
            "write a quantity of bytes above 0",
        ),
        refused(
            "claim name in capitals",
            model(json!({"cache": {"claimName": "Weights"}})),
            "write the name of an object",
        ),
        refused(
            "storage class of no name",
            model(json!({"cache": {"size": "1Gi", "storageClassName": ""}})),
            "write the name of an object",
        ),
        refused(
            "cache beside HF_HOME",
            json!({"model": {"cache": {"claimName": "weights"}}, "workload": {"env": [{"name": "HF_HOME", "value": "/x"}]}}),
            "leave them out of workload.env",
        ),
    ]
}

fn workload() -> Vec<Case> {
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

fn placement() -> Vec<Case> {
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

fn benchmark() -> Vec<Case> {
    let benchmark = |patch: Value| json!({"benchmark": patch});
    let extra = |words: &[&str]| json!({"benchmark": {"extraArgs": words}});
    let mut cases = vec![
        accepted(
            "own AIPerf image",
            benchmark(json!({"image": "localhost/aiperf:0.13.0"})),
        ),
        refused(
            "AIPerf image with a blank",
            benchmark(json!({"image": " "})),
            "write an image reference, or",
        ),
        accepted("extra inputs", benchmark(json!({"extraInputs": {"top_p": "0.9"}}))),
        refused(
            "output length among the extra inputs",
            benchmark(json!({"extraInputs": {"max_tokens": "7"}})),
            "benchmark.outputTokens",
        ),
        refused(
            "extra input with a comma",
            benchmark(json!({"extraInputs": {"stop": "a,b"}})),
            "AIPerf splits at commas",
        ),
        accepted(
            "objective",
            benchmark(json!({"goodput": [{"metric": "TimeToFirstToken", "max": "500"}]})),
        ),
        refused(
            "objective on a rate",
            benchmark(json!({"goodput": [{"metric": "RequestThroughput", "max": "5"}]})),
            "an objective bounds a latency",
        ),
        refused(
            "objective of zero",
            benchmark(json!({"goodput": [{"metric": "RequestLatency", "max": "0"}]})),
            "write a quantity above 0",
        ),
        accepted("own tokenizer", benchmark(json!({"tokenizer": "/models/tiny"}))),
        refused(
            "tokenizer that looks like a flag",
            benchmark(json!({"tokenizer": "--x"})),
            "write a tokenizer id or path",
        ),
        refused(
            "claim of the load generator",
            benchmark(json!({"resources": {"claims": [{"name": "gpu"}]}})),
            "CPU and memory only",
        ),
        accepted(
            "a request as long as a trial",
            benchmark(json!({"requestTimeout": "15m"})),
        ),
        refused(
            "a request longer than a trial",
            benchmark(json!({"requestTimeout": "16m"})),
            "outlives the trial",
        ),
        accepted(
            "extra arguments",
            extra(&[
                "--workers-max",
                "4",
                "--header",
                "A: b, c",
                "--slice-duration=1.5",
                "--request-rate",
                "50",
            ]),
        ),
    ];
    for word in [
        "--concurrency",
        "--url=http://x",
        "-u",
        "--output-artifact-dir",
        "--isl",
        "--ui",
        "--prompt-input-tokens-mean",
    ] {
        cases.push(refused(
            format!("extra argument {word}"),
            extra(&[word]),
            "the operator sets this flag",
        ));
    }
    for word in [
        "--num-profile-runs",
        "--search-recipe=x",
        "--sweep-variant",
        "--isl-osl-pairs",
    ] {
        cases.push(refused(
            format!("extra argument {word}"),
            extra(&[word]),
            "a trial is one run of AIPerf",
        ));
    }
    for word in ["10,20", "--request-rate=0.5,1", "1, 2"] {
        cases.push(refused(
            format!("extra argument {word}"),
            extra(&["--request-rate", word]),
            "a comma list starts a sweep",
        ));
    }
    cases
}

fn trials() -> Vec<Case> {
    let trials = |rule: &str, error: u8, max: u8| json!({"trials": {"rule": rule, "errorPercent": error, "max": max}});
    let mut cases = vec![
        accepted("one trial for All", trials("All", 5, 1)),
        accepted("one trial for Single", trials("Single", 5, 1)),
    ];
    for (error, fewest) in [
        (1, 6),
        (2, 5),
        (3, 5),
        (4, 4),
        (5, 4),
        (6, 4),
        (7, 3),
        (15, 3),
        (16, 2),
        (20, 2),
    ] {
        cases.push(accepted(
            format!("{fewest} trials at {error} %"),
            trials("Sequential", error, fewest),
        ));
        cases.push(refused(
            format!("fewer than {fewest} trials at {error} %"),
            trials("Sequential", error, fewest - 1),
            "so few trials",
        ));
    }
    cases
}

fn gates() -> Vec<Case> {
    let gate = |name: &str, metric: &str, operator: &str, patch: Value| {
        let mut gate = json!({"name": name, "metric": metric, "operator": operator, "threshold": "1"});
        super::merge(&mut gate, patch);
        gate
    };
    let gates = |gates: &[Value]| json!({"gates": gates});
    let throughput = |patch: Value| gates(&[gate("throughput", "OutputTokenThroughput", ">=", patch)]);
    let ttft = |patch: Value| gates(&[gate("ttft", "TimeToFirstToken", "<=", patch)]);
    let mut cases = vec![
        accepted(
            "gates of one metric",
            gates(&[
                gate("ttft-p50", "TimeToFirstToken", "<=", json!({"statistic": "P50"})),
                gate("ttft-p99", "TimeToFirstToken", "<=", json!({"statistic": "P99"})),
            ]),
        ),
        refused(
            "gate in capitals",
            gates(&[gate("TTFT", "TimeToFirstToken", "<=", json!({}))]),
            "such as ttft-p99",
        ),
        refused(
            "percentile of a rate",
            throughput(json!({"statistic": "P99"})),
            "an average only",
        ),
        accepted(
            "percentile of a rate that each request has",
            gates(&[gate(
                "tps",
                "OutputTokenThroughputPerUser",
                ">=",
                json!({"statistic": "P1"}),
            )]),
        ),
        refused(
            "upper bound on throughput",
            throughput(json!({"operator": "<="})),
            "more of this metric is better",
        ),
        refused(
            "lower bound on a latency",
            ttft(json!({"operator": ">="})),
            "less of this metric is better",
        ),
        accepted(
            "bounds on the output length",
            gates(&[
                gate("osl-min", "OutputSequenceLength", ">=", json!({})),
                gate("osl-max", "OutputSequenceLength", "<=", json!({})),
            ]),
        ),
        accepted("throughput per GPU", throughput(json!({"scaling": "PerGPU"}))),
        refused(
            "latency per GPU",
            ttft(json!({"scaling": "PerGPU"})),
            "write scaling None",
        ),
        refused(
            "latency by share",
            ttft(json!({"scaling": "ByGPUShare"})),
            "write scaling None",
        ),
        refused(
            "goodput without objectives",
            gates(&[gate("good", "Goodput", ">=", json!({}))]),
            "a gate on Goodput needs objectives",
        ),
        accepted(
            "goodput",
            json!({
                "benchmark": {"goodput": [{"metric": "RequestLatency", "max": "2k"}]},
                "gates": [gate("good", "Goodput", ">=", json!({}))],
            }),
        ),
    ];
    for threshold in ["1n", "100m", "0.5", "50000", "50k", "1Ki", "2e3", "1G"] {
        cases.push(accepted(
            format!("threshold {threshold}"),
            ttft(json!({"threshold": threshold})),
        ));
    }
    for threshold in ["", "0", "-1", "2001M", "fast", "5 k", "1,000", "NaN"] {
        cases.push(refused(
            format!("threshold {threshold:?}"),
            ttft(json!({"threshold": threshold})),
            "write a quantity above 0",
        ));
    }
    cases
}

fn timeouts() -> Vec<Case> {
    let mut cases = vec![
        accepted("no wait for GPUs", json!({"timeouts": {"sizing": "0s"}})),
        accepted(
            "a probe as long as its wait",
            json!({"timeouts": {"endpointProbe": "5m"}}),
        ),
        refused(
            "a probe longer than its wait",
            json!({"timeouts": {"endpointProbe": "6m"}}),
            "one probe outlives",
        ),
    ];
    let waits = [
        "prerequisites",
        "sizing",
        "modelCache",
        "workloadReady",
        "endpointReady",
        "endpointProbe",
        "benchmark",
        "cleanup",
    ];
    let fields = waits
        .map(|name| ("timeouts", name))
        .into_iter()
        .chain([("benchmark", "requestTimeout")]);
    for (group, field) in fields {
        // Beside longest waits, so that no rule between two fields answers.
        let set = |value: &str| {
            let mut spec = json!({"timeouts": {"benchmark": "24h", "endpointReady": "24h"}});
            super::merge(&mut spec, json!({group: {field: value}}));
            if field == "endpointReady" {
                super::merge(&mut spec, json!({"timeouts": {"endpointProbe": "500ms"}}));
            }
            if (group, field) == ("timeouts", "benchmark") {
                super::merge(&mut spec, json!({"benchmark": {"requestTimeout": "500ms"}}));
            }
            spec
        };
        for value in ["500ms", "1h5m", "1.5h", "24h"] {
            cases.push(accepted(format!("{group}.{field} {value}"), set(value)));
        }
        for value in ["", "5", "5 m", "-5m", "1d", "24h1s"] {
            cases.push(refused(
                format!("{group}.{field} {value:?}"),
                set(value),
                "write a Go duration",
            ));
        }
        if field != "sizing" {
            cases.push(refused(
                format!("{group}.{field} of nothing"),
                set("0s"),
                "write a Go duration above 0s",
            ));
        }
    }
    cases
}
