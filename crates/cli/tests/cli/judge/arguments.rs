//! Arguments and manifests that are wrong: what is wrong with them is named.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{CaseFolder, fixture, judge};

#[test]
fn wrong_arguments_are_refused_by_name() {
    let folder = CaseFolder::new();
    let success = fixture("success");
    let manifest = |name: &str, content: &str| folder.file(name, content);
    let gate = |patch: Value| {
        let mut gate = json!({"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"});
        for (field, value) in patch.as_object().expect("fields") {
            gate[field] = value.clone();
        }
        json!({"gates": [gate]})
    };
    let scaled = |name: &str, spec: Value| {
        let path = folder.manifest(&spec);
        let renamed = folder.path().join(name);
        std::fs::rename(path, &renamed).expect("renamed");
        renamed
    };
    let misspelt = scaled("misspelt", json!({"gate": []}));
    let threshold = scaled("threshold", gate(json!({"threshold": "fast"})));
    let number = scaled("number", gate(json!({"threshold": 13500})));
    let twice = scaled(
        "twice",
        json!({"gates": [gate(json!({}))["gates"][0], gate(json!({}))["gates"][0]]}),
    );
    let by_share = scaled("by-share", gate(json!({"scaling": "ByGPUShare"})));
    let per_gpu = scaled("per-gpu", gate(json!({"scaling": "PerGPU"})));
    let good = folder.manifest(&json!({}));
    let two = format!("{0}\n---\n{0}", std::fs::read_to_string(&good).expect("the manifest"));
    let cases: [(PathBuf, PathBuf, &[&str], &str); 18] = [
        (
            good.clone(),
            PathBuf::from("/no/such/file"),
            &[],
            "/no/such/file cannot be used",
        ),
        (good.clone(), folder.path().to_owned(), &[], "cannot be used"),
        (
            PathBuf::from("/no/such.yaml"),
            success.clone(),
            &[],
            "/no/such.yaml cannot be used",
        ),
        (manifest("bad", "a: [b"), success.clone(), &[], "is no YAML"),
        (
            manifest("dup", "kind: PerfValidation\nkind: PerfValidation\n"),
            success.clone(),
            &[],
            "duplicate mapping key: kind at line 2,",
        ),
        (
            manifest("secret", "env:\n  HF_TOKEN: hf_secret\n bad: [b"),
            success.clone(),
            &[],
            "is no YAML",
        ),
        (
            PathBuf::from("-"),
            PathBuf::from("-"),
            &[],
            "standard input can be read once: give one of the two as a file",
        ),
        (
            manifest("pod", "kind: Pod\napiVersion: v1\n"),
            success.clone(),
            &[],
            "holds 0 PerfValidations and a Pod",
        ),
        (manifest("none", ""), success.clone(), &[], "holds 0 PerfValidations"),
        (manifest("two", &two), success.clone(), &[], "holds 2 PerfValidations"),
        (
            misspelt,
            success.clone(),
            &[],
            "spec.gate: there is no such field; did you mean gates?",
        ),
        (
            threshold,
            success.clone(),
            &[],
            "spec.gates[0].threshold: write a quantity above 0",
        ),
        (
            number,
            success.clone(),
            &[],
            "spec.gates[0].threshold: 13500 is not of type \"string\": write it in quotes",
        ),
        (
            twice,
            success.clone(),
            &[],
            "spec.gates[1]: an earlier element has the same key \"g\"",
        ),
        (
            by_share.clone(),
            success.clone(),
            &["--gpus", "4"],
            "give --gpus and --node-gpus",
        ),
        (per_gpu, success.clone(), &[], "give --gpus"),
        (
            by_share,
            success.clone(),
            &["--gpus", "9", "--node-gpus", "8"],
            "--gpus 9 is more than --node-gpus 8",
        ),
        (good, success, &["--gpus", "0"], "0 is not in 1..=1024"),
    ];
    for (manifest, export, flags, words) in cases {
        let answer = judge(&manifest, &[export], flags);
        answer.exits(2, words);
        assert_eq!(answer.out, "", "bad input gives no answer");
        assert!(!answer.err.contains("hf_secret"), "{}", answer.err);
    }
}

#[test]
fn a_wrong_manifest_is_refused_with_the_field() {
    let folder = CaseFolder::new();
    let spec =
        json!({"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.2.1"}}, "trials": {"rule": "Single"}});
    let gate =
        json!([{"name": "g", "metric": "TimeToFirstToken", "statistic": "p99", "operator": "<=", "threshold": "1"}]);
    let named = json!({"name": "a"});
    let cases: [(Value, Value, &str); 18] = [
        (
            json!({"namspace": "b"}),
            json!({}),
            "metadata.namspace: there is no such field; did you mean namespace?",
        ),
        (
            json!({"labels": {"a/b": 1}}),
            json!({}),
            "metadata.labels.a/b: 1 is not of type \"string\": write it in quotes",
        ),
        (
            named.clone(),
            json!({"benchmark": {"resources": {"limits": {"cpu": 0.5}}}}),
            "benchmark.resources.limits.cpu: 0.5 is not of types \"integer\", \"string\": write it in quotes",
        ),
        (
            json!({"labels": {"5": 1}}),
            json!({}),
            "metadata.labels.5: 1 is not of type \"string\": write it in quotes",
        ),
        (
            json!({"creationTimestamp": "x"}),
            json!({}),
            "metadata.creationTimestamp: \"x\" is no time: write one such as 2026-01-31T12:00:00Z, or leave it out\n",
        ),
        (
            json!({"ownerReferences": [5]}),
            json!({}),
            "metadata.ownerReferences: invalid type: integer `5`",
        ),
        (
            named.clone(),
            json!({"model": {"name": "m", "tokenSecretRef": "hf-secret"}}),
            "spec.model.tokenSecretRef: the value is not of type \"object\"\n",
        ),
        (
            named.clone(),
            json!({"workload": {"dynamo": {"image": "i:1", "env": {"HF_TOKEN": "hf-secret"}}}}),
            "workload.dynamo.env: the value is not of type \"array\"\n",
        ),
        (
            named.clone(),
            json!({"trials": {"rule": {"HF_TOKEN": "hf-secret"}}}),
            "trials.rule: the value is not one of ",
        ),
        (
            json!({"labels": {"a": true}}),
            json!({}),
            "metadata.labels.a: true is not of type \"string\": write it in quotes",
        ),
        (
            json!({"namespace": "A"}),
            json!({}),
            "metadata.namespace: \"A\": write lower-case letters, digits and '-'\n",
        ),
        (json!("x"), json!({}), "metadata: \"x\" is not of type \"object\"\n"),
        (
            json!({"name": "a".repeat(64)}),
            json!({}),
            "\n  metadata.name: write at most 63 characters",
        ),
        (
            named.clone(),
            json!({"gates": gate}),
            "P95, P99, Std; did you mean P99?\n",
        ),
        (
            named.clone(),
            json!({"gates": [{"name": "g", "metric": "Throughput", "operator": ">=", "threshold": "1"}]}),
            "\"Throughput\" is not one of OutputTokenThroughput, ",
        ),
        (
            named.clone(),
            json!({"placement": {"maxGPUs": 100}}),
            "100 is greater than the maximum of 64\n",
        ),
        (
            named.clone(),
            json!({"placement": {"maxGPUs": "1"}}),
            "\"1\" is not of type \"integer\": write it without quotes\n",
        ),
        (
            named.clone(),
            json!({"placement": {"maxGPUs": "x"}}),
            "\"x\" is not of type \"integer\"\n",
        ),
    ];
    let manifest = |metadata: &Value, changes: &Value| {
        let mut spec = spec.clone();
        for (field, value) in changes.as_object().expect("fields") {
            spec[field] = value.clone();
        }
        let manifest = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": metadata, "spec": spec,
        });
        folder.file("manifest.json", manifest.to_string())
    };
    for (metadata, changes, words) in cases {
        let answer = judge(&manifest(&metadata, &changes), &[fixture("success")], &[]);
        answer.exits(2, words);
        assert!(!answer.err.contains("hf-secret"), "{}", answer.err);
    }
    for (metadata, changes) in [
        (named.clone(), json!({"placement": {"maxGPUs": null}, "timeouts": null})),
        (json!({"generateName": "a-", "creationTimestamp": null}), json!({})),
        (
            json!({"creationTimestamp": "2026-09-21T14:13:20Z", "labels": {"5": "a"}}),
            json!({}),
        ),
        (Value::Null, json!({})),
    ] {
        let answer = judge(&manifest(&metadata, &changes), &[fixture("success")], &[]);
        assert_eq!(answer.code, 0, "{metadata}: {answer:?}");
    }
}
