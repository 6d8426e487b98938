//! Each bound of the schema, at its limit and just beyond.

use serde_json::{Value, json};

use super::{Case, Rejected, accepted, out_of_schema, with_spec};

pub fn cases() -> Vec<Case> {
    [numbers(), texts(), lists(), maps(), words(), required()].concat()
}

/// `{"a": {"b": value}}` for `a.b`.
fn nested(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |inner, key| json!({ key: inner }))
}

fn numbers() -> Vec<Case> {
    let bounds: [(&str, i64, i64); 19] = [
        ("ttlSecondsAfterFinished", 0, 31_536_000),
        ("keptSecondsAfterFinished", 0, 31_536_000),
        ("resultsHistoryLimit", 0, 100),
        ("workload.dynamo.worker.gpus", 1, 8),
        ("placement.minGPUs", 1, 64),
        ("placement.maxGPUs", 1, 64),
        ("placement.expectGPUs", 1, 64),
        ("benchmark.concurrencyPerGPU", 1, 4096),
        ("benchmark.inputTokens", 1, 1_000_000),
        ("benchmark.outputTokens", 1, 1_000_000),
        ("benchmark.requestsPerConcurrency", 1, 1000),
        ("benchmark.minRequests", 1, 1_000_000),
        ("benchmark.warmupPerConcurrency", 1, 100),
        ("benchmark.randomSeed", 0, 4_294_967_295),
        ("benchmark.datasetEntries", 1, 100_000),
        ("trials.errorBoundPercent", 1, 20),
        ("trials.max", 1, 20),
        ("trials.min", 1, 20),
        ("gates.tolerancePercent", 0, 50),
    ];
    let spec = |path: &str, number: i64| match path {
        "gates.tolerancePercent" => json!({"gates": [
            {"name": "g", "metric": "RequestLatency", "operator": "<=", "threshold": "1", "tolerancePercent": number},
        ]}),
        "trials.min" => json!({"trials": {"rule": "Single", "min": number}}),
        "trials.max" => json!({"trials": {"rule": "All", "max": number}}),
        _ => nested(path, json!(number)),
    };
    let mut cases = Vec::new();
    for (path, least, most) in bounds {
        let field = if path.starts_with("gates") {
            "spec.gates[0].tolerancePercent"
        } else {
            &format!("spec.{path}")
        };
        cases.push(accepted(format!("least {path}"), spec(path, least)));
        cases.push(accepted(format!("most {path}"), spec(path, most)));
        cases.push(out_of_schema(
            format!("too little {path}"),
            spec(path, least - 1),
            field,
        ));
        cases.push(out_of_schema(format!("too much {path}"), spec(path, most + 1), field));
    }
    cases
}

fn texts() -> Vec<Case> {
    let letters = |length: usize| "a".repeat(length);
    let duration = |length: usize| format!("{}1s", "0".repeat(length - 2));
    let number = |length: usize| format!("{}1", "0".repeat(length - 1));
    let resource = |length: usize| format!("a/{}", "a".repeat(length - 2));
    let mut cases = Vec::new();
    let mut text = |path: &str, most: usize, of_length: &dyn Fn(usize) -> Value| {
        cases.push(accepted(format!("longest {path}"), of_length(most)));
        cases.push(out_of_schema(
            format!("too long {path}"),
            of_length(most + 1),
            &format!("spec.{path}"),
        ));
    };
    for (path, most) in [
        ("model.name", 253),
        ("model.cache.persistentVolumeClaim.claimName", 253),
        ("workload.dynamo.image", 1024),
        ("workload.dynamo.frontend.image", 1024),
        ("placement.deviceClassName", 253),
        ("podTemplate.spec.runtimeClassName", 253),
        ("podTemplate.spec.priorityClassName", 253),
        ("benchmark.image", 1024),
        ("benchmark.tokenizer", 253),
    ] {
        text(path, most, &|length| nested(path, json!(letters(length))));
    }
    text("model.cache.volumeClaimTemplate.storage", 32, &|length| {
        nested("model.cache.volumeClaimTemplate.storage", json!(number(length)))
    });
    text(
        "model.cache.volumeClaimTemplate.storageClassName",
        253,
        &|length| json!({"model": {"cache": {"volumeClaimTemplate": {"storage": "1Gi", "storageClassName": letters(length)}}}}),
    );
    text("workload.dynamo.runtimeVersion", 32, &|length| {
        nested(
            "workload.dynamo.runtimeVersion",
            json!(format!("{}.0.0", "1".repeat(length - 4))),
        )
    });
    text(
        "model.revision",
        40,
        &|length| json!({"model": {"revision": letters(length), "cache": {"persistentVolumeClaim": {"claimName": "w"}}}}),
    );
    text("podTemplate.metadata.annotations.k", 4096, &|length| {
        nested("podTemplate.metadata.annotations.k", json!(letters(length)))
    });
    text("trials.maxFailedRequestsPercent", 32, &|length| {
        nested("trials.maxFailedRequestsPercent", json!(number(length)))
    });
    text("placement.resourceName", 253, &|length| {
        nested("placement.resourceName", json!(resource(length)))
    });
    text("benchmark.requestTimeout", 32, &|length| {
        nested("benchmark.requestTimeout", json!(duration(length)))
    });
    text("benchmark.duration", 32, &|length| {
        nested("benchmark.duration", json!(duration(length)))
    });
    text("benchmark.soak", 32, &|length| {
        nested("benchmark.soak", json!(format!("{}1h", "0".repeat(length - 2))))
    });
    for wait in [
        "prerequisites",
        "sizing",
        "modelCache",
        "workloadReady",
        "endpointProbe",
        "cleanup",
        "total",
    ] {
        let path = format!("timeouts.{wait}");
        text(&path, 32, &|length| nested(&path, json!(duration(length))));
    }
    text(
        "timeouts.benchmark",
        32,
        &|length| json!({"timeouts": {"benchmark": duration(length)}, "benchmark": {"requestTimeout": "1s", "minRequests": 1}}),
    );
    text(
        "timeouts.endpointReady",
        32,
        &|length| json!({"timeouts": {"endpointReady": duration(length), "endpointProbe": "1s"}}),
    );
    text(
        "telemetry.endpoint",
        512,
        &|length| json!({"telemetry": {"endpoint": format!("http://{}", letters(length - 7))}}),
    );
    text(
        "benchmark.goodput[0].max",
        32,
        &|length| json!({"benchmark": {"goodput": [{"metric": "RequestLatency", "max": number(length)}]}}),
    );
    text(
        "gates[0].threshold",
        32,
        &|length| json!({"gates": [{"name": "g", "metric": "RequestLatency", "operator": "<=", "threshold": number(length)}]}),
    );
    text(
        "gates[0].name",
        63,
        &|length| json!({"gates": [{"name": letters(length), "metric": "RequestLatency", "operator": "<=", "threshold": "1"}]}),
    );
    for (path, most) in [
        ("workload.dynamo.worker.command", 4096),
        ("workload.dynamo.worker.args", 1024),
        ("workload.dynamo.frontend.args", 1024),
        ("benchmark.extraArgs", 1024),
    ] {
        text(&format!("{path}[0]"), most, &|length| {
            nested(path, json!([letters(length)]))
        });
    }
    text(
        "benchmark.extraInputs.k",
        4096,
        &|length| json!({"benchmark": {"extraInputs": {"k": letters(length)}}}),
    );
    text(
        "placement.nodeSelector.k",
        4096,
        &|length| json!({"placement": {"nodeSelector": {"k": letters(length)}}}),
    );
    text(
        "workload.dynamo.env[0].value",
        4096,
        &|length| json!({"workload": {"dynamo": {"env": [{"name": "A", "value": letters(length)}]}}}),
    );
    cases
}

fn lists() -> Vec<Case> {
    let repeated = |path: &str, count: usize, item: &dyn Fn(usize) -> Value| {
        let mut spec = nested(path, Value::Array((0..count).map(item).collect()));
        if path.starts_with("model.cache") {
            spec["model"]["cache"]["volumeClaimTemplate"]["storage"] = json!("1Gi");
        }
        spec
    };
    let mut cases = Vec::new();
    let mut list = |path: &str, most: usize, item: &dyn Fn(usize) -> Value| {
        cases.push(accepted(format!("longest {path}"), repeated(path, most, item)));
        cases.push(out_of_schema(
            format!("too long {path}"),
            repeated(path, most + 1, item),
            &format!("spec.{path}"),
        ));
    };
    for path in [
        "workload.dynamo.worker.command",
        "workload.dynamo.worker.args",
        "workload.dynamo.frontend.args",
        "benchmark.extraArgs",
    ] {
        list(path, 64, &|_| json!("a"));
    }
    list(
        "podTemplate.spec.imagePullSecrets",
        8,
        &|n| json!({"name": format!("s{n}")}),
    );
    let modes = ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOnce"];
    list("model.cache.volumeClaimTemplate.accessModes", 2, &|n| json!(modes[n]));
    list("workload.dynamo.env", 64, &|n| json!({"name": format!("V{n}")}));
    list(
        "placement.tolerations",
        32,
        &|n| json!({"key": format!("k{n}"), "operator": "Exists"}),
    );
    list(
        "placement.deviceTolerations",
        8,
        &|n| json!({"key": format!("k{n}"), "operator": "Exists"}),
    );
    list(
        "gates",
        32,
        &|n| json!({"name": format!("g{n}"), "metric": "RequestLatency", "operator": "<=", "threshold": "1"}),
    );
    let latencies = [
        "TimeToFirstToken",
        "TimeToSecondToken",
        "InterTokenLatency",
        "RequestLatency",
        "Goodput",
    ];
    list("benchmark.goodput", 4, &|n| json!({"metric": latencies[n], "max": "1"}));

    let twice = |path: &str, item: Value| Case {
        name: format!("{path} of one name"),
        manifest: with_spec(nested(path, json!([item, item]))),
        rejected: Some(Rejected::Duplicate(format!("spec.{path}[1]"))),
    };
    cases.push(twice(
        "gates",
        json!({"name": "g", "metric": "RequestLatency", "operator": "<=", "threshold": "1"}),
    ));
    cases.push(twice("workload.dynamo.env", json!({"name": "A", "value": "1"})));
    cases.push(twice("podTemplate.spec.imagePullSecrets", json!({"name": "ngc"})));
    cases.push(twice(
        "benchmark.goodput",
        json!({"metric": "RequestLatency", "max": "1"}),
    ));
    cases
}

fn maps() -> Vec<Case> {
    let entries = |count: usize, value: &str| (0..count).map(|n| (format!("k{n}"), json!(value))).collect::<Value>();
    let mut cases = Vec::new();
    for (path, most) in [
        ("placement.nodeSelector", 64),
        ("podTemplate.metadata.labels", 32),
        ("podTemplate.metadata.annotations", 32),
        // Two more come from the defaults when the field is absent, none when it is given.
        ("benchmark.extraInputs", 32),
        ("benchmark.resources.limits", 64),
    ] {
        cases.push(accepted(format!("largest {path}"), nested(path, entries(most, "1"))));
        cases.push(out_of_schema(
            format!("too large {path}"),
            nested(path, entries(most + 1, "1")),
            &format!("spec.{path}"),
        ));
    }
    cases.push(out_of_schema(
        "too long podTemplate.metadata.labels.k",
        nested("podTemplate.metadata.labels.k", json!("a".repeat(4097))),
        "spec.podTemplate.metadata.labels.k",
    ));
    let amount = |value: Value| json!({"benchmark": {"resources": {"limits": {"cpu": value}}}});
    cases.push(accepted("quantity as a number", amount(json!(2))));
    cases.push(out_of_schema(
        "quantity as a fraction",
        amount(json!(0.5)),
        "spec.benchmark.resources.limits.cpu",
    ));
    cases.push(out_of_schema(
        "quantity of words",
        amount(json!("two")),
        "spec.benchmark.resources.limits.cpu",
    ));
    cases
}

fn words() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut word = |path: &str, known: &[&str], spec: &dyn Fn(&str) -> Value| {
        for good in known {
            cases.push(accepted(format!("{path} {good}"), spec(good)));
        }
        cases.push(out_of_schema(
            format!("unknown {path}"),
            spec("Direct"),
            &format!("spec.{path}"),
        ));
    };
    for (path, known) in [
        (
            "podTemplate.spec.imagePullPolicy",
            &["Always", "IfNotPresent", "Never"][..],
        ),
        (
            "workload.dynamo.routerMode",
            &[
                "LeastLoaded",
                "RoundRobin",
                "Random",
                "PowerOfTwo",
                "KV",
                "DeviceAwareWeighted",
            ],
        ),
        ("placement.allocation", &["Auto", "DRA", "DevicePlugin"]),
        ("workload.dynamo.frontend.placement", &["WorkloadNode", "Anywhere"]),
        ("benchmark.placement", &["WorkloadNode", "Anywhere"]),
        ("trials.rule", &["Sequential", "All", "Single"]),
        ("telemetry.gpus", &["Auto", "None"]),
        ("workload.dynamo.onMissing", &["Fail", "Skip"]),
    ] {
        word(path, known, &|value| nested(path, json!(value)));
    }
    word(
        "model.cache.volumeClaimTemplate.accessModes[0]",
        &["ReadWriteOnce", "ReadWriteMany"],
        &|value| json!({"model": {"cache": {"volumeClaimTemplate": {"storage": "1Gi", "accessModes": [value]}}}}),
    );
    let gate = |field: &str, value: &str| {
        let mut gate = json!({"name": "g", "metric": "OutputSequenceLength", "operator": ">=", "threshold": "1"});
        gate[field] = json!(value);
        json!({"gates": [gate]})
    };
    let metrics = [
        "OutputTokenThroughput",
        "OutputTokenThroughputPerUser",
        "RequestThroughput",
        "OutputSequenceLength",
    ];
    word("gates[0].metric", &metrics, &|value| gate("metric", value));
    word("gates[0].operator", &[">=", "<="], &|value| gate("operator", value));
    let statistics = [
        "Avg", "Min", "Max", "P1", "P5", "P10", "P25", "P50", "P75", "P90", "P95", "P99", "Std",
    ];
    word("gates[0].statistic", &statistics, &|value| gate("statistic", value));
    word("gates[0].mode", &["Enforce", "Warn"], &|value| gate("mode", value));
    word("gates[0].scaling", &["None"], &|value| gate("scaling", value));
    word(
        "benchmark.goodput[0].metric",
        &["TimeToSecondToken", "InterTokenLatency"],
        &|value| json!({"benchmark": {"goodput": [{"metric": value, "max": "1"}]}}),
    );
    cases
}

fn required() -> Vec<Case> {
    vec![
        out_of_schema("no model", json!({"model": null}), "spec.model"),
        out_of_schema("no model name", json!({"model": {"name": null}}), "spec.model.name"),
        out_of_schema("no workload", json!({"workload": null}), "spec.workload"),
        out_of_schema(
            "no image",
            json!({"workload": {"dynamo": {"image": null}}}),
            "spec.workload.dynamo.image",
        ),
        out_of_schema(
            "gate without threshold",
            json!({"gates": [{"name": "g", "metric": "RequestLatency", "operator": "<="}]}),
            "spec.gates[0].threshold",
        ),
        out_of_schema(
            "threshold as a number",
            json!({"gates": [{"name": "g", "metric": "RequestLatency", "operator": "<=", "threshold": 1}]}),
            "spec.gates[0].threshold",
        ),
    ]
}
