//! Arguments and manifests that are wrong: what is wrong with them is named.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Desk, fixture, judge};

#[test]
fn what_is_wrong_with_the_arguments_is_named() {
    let desk = Desk::new();
    let success = fixture("success");
    let manifest = |name: &str, content: &str| desk.file(name, content);
    let gate = |patch: Value| {
        let mut gate = json!({"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"});
        for (field, value) in patch.as_object().expect("fields") {
            gate[field] = value.clone();
        }
        json!({"gates": [gate]})
    };
    let scaled = |name: &str, spec: Value| {
        let path = desk.manifest(&spec);
        let renamed = desk.folder.path().join(name);
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
    let good = desk.manifest(&json!({}));
    let two = format!("{0}\n---\n{0}", std::fs::read_to_string(&good).expect("the manifest"));
    let cases: [(PathBuf, PathBuf, &[&str], &str); 16] = [
        (
            good.clone(),
            PathBuf::from("/no/such/file"),
            &[],
            "/no/such/file cannot be used",
        ),
        (good.clone(), desk.folder.path().to_owned(), &[], "cannot be used"),
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
            "is no YAML",
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
        assert_eq!(answer.code, 2, "{words}: {answer:?}");
        assert!(answer.complaint.contains(words), "no {words:?} in {}", answer.complaint);
        assert_eq!(answer.out, "", "bad input gives no answer");
    }
}
