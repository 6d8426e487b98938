//! `kubectl perfval size`, run as people run it.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::answer::Answer;
use super::socket::{PROGRAM, program};

/// Four nodes: two GPUs of `gpu-1` are held and one is tainted, `gpu-2` is cordoned, a device plugin gives `gpu-3`'s out and
/// five of those are in use, `cpu-1` has none.
const DUMP: &str = include_str!("../fixtures/dump.yaml");

/// Runs `size` with a dump on standard input.
fn size(dump: &str, arguments: &[&str]) -> Answer {
    let mut command = program(PROGRAM, "size", Path::new("/nonexistent"));
    Answer::run(command.args(arguments), dump)
}

fn sized(dump: &str, arguments: &[&str]) -> (u8, Value) {
    let answer = size(dump, &[&["--from", "-", "-o", "json"], arguments].concat());
    (answer.code, answer.json())
}

fn node<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let nodes = answer["nodes"].as_array().expect("nodes");
    nodes.iter().find(|node| node["node"] == name).expect(name)
}

/// A file with a manifest, gone with this value.
fn manifest(placement: &Value) -> tempfile::NamedTempFile {
    let object = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": { "name": "a", "namespace": "perf" },
        "spec": {
            "model": { "name": "m" }, "workload": { "dynamo": { "image": "i:1.2.1" } }, "placement": placement,
            "gates": [{ "name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500" }],
        },
    });
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "{object}").expect("written");
    file
}

#[test]
fn the_table_shows_every_node_with_gpus_and_the_plan() {
    let answer = size(DUMP, &["--from", "-"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{answer:?}");
    for line in [
        "NODE    BY             GPUS   FREE   USABLE   WHY",
        "gpu-1   DRA            8      5      5        5 of 8 GPUs free (",
        "gpu-2   DRA            8      8      0        is cordoned, and placement.nodeSelector does not name it",
        "gpu-3   DevicePlugin   8      3      3        3 of 8 GPUs free (5 in use by team-a/serve)",
        "and one node without GPUs",
        "plan: 5 of 8 GPUs on gpu-1 (DRA): probably gpu-2, gpu-3, gpu-4, gpu-5, gpu-6",
        "note: the dump lacks these kinds, and counts as a cluster without them: devicetaintrules, perfvalidations, \
         resourcequotas, limitranges, bindrequests.scheduling.run.ai",
        "note: not needed and left alone: 1 Namespace",
    ] {
        assert!(answer.out.contains(line), "{line:?} is not in\n{}", answer.out);
    }
}

#[test]
fn a_script_reads_the_same() {
    let (code, answer) = sized(DUMP, &[]);
    assert_eq!(code, 0);
    assert_eq!(
        (&answer["plan"]["node"], &answer["plan"]["gpus"]),
        (&json!("gpu-1"), &json!(5))
    );
    let numbers = |name| {
        let node = node(&answer, name);
        (node["gpus"].clone(), node["free"].clone(), node["usable"].clone())
    };
    assert_eq!(numbers("gpu-1"), (json!(8), json!(5), json!(5)));
    assert_eq!(numbers("gpu-3"), (json!(8), json!(3), json!(3)));
    assert_eq!(node(&answer, "gpu-2")["why"], "Cordoned");
    assert_eq!(node(&answer, "cpu-1")["why"], "NoGpus");

    let (_, one) = sized(DUMP, &["--node", "gpu-3"]);
    assert_eq!(one["nodes"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["plan"]["node"], "gpu-1", "the plan is that of the whole cluster");
}

#[test]
fn a_manifest_decides_on_the_plan() {
    let plugin = manifest(&json!({ "allocation": "DevicePlugin" }));
    let (code, answer) = sized(DUMP, &["-f", &plugin.path().to_string_lossy()]);
    assert_eq!((code, &answer["plan"]["node"]), (0, &json!("gpu-3")));

    let all = manifest(&json!({ "minGPUs": 8 }));
    let path = all.path().to_string_lossy().into_owned();
    let (code, answer) = sized(DUMP, &["-f", &path]);
    assert_eq!(
        (code, &answer["plan"], &answer["reason"]),
        (1, &Value::Null, &json!("Saturated"))
    );
    let table = size(DUMP, &["--from", "-", "-f", &path]);
    assert_eq!(table.code, 1);
    table.prints("no plan (Saturated): no node for 8 GPUs or more:");
}

#[test]
fn the_quotas_of_the_namespace_in_the_flags_count() {
    let mut list: Value = serde_saphyr::from_str(DUMP).expect("YAML");
    list["items"].as_array_mut().expect("items").push(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "few", "namespace": "perf" },
        "spec": { "hard": { "pods": "0" } }, "status": { "hard": { "pods": "0" }, "used": { "pods": "0" } },
    }));
    let dump = list.to_string();
    let without = size(&dump, &["--from", "-"]);
    assert_eq!(without.code, 0, "{without:?}");
    let note = "note: no namespace is given: quotas, limit ranges and the cache's volume are not considered; add -n";
    assert!(without.out.contains(note), "{without:?}");
    let full = size(&dump, &["--from", "-", "-n", "perf"]);
    assert_eq!(full.code, 1, "{full:?}");
    assert!(full.out.contains("ResourceQuota few"), "{full:?}");
    assert!(!full.out.contains("no namespace is given"), "{full:?}");
}

#[test]
fn the_form_of_a_dump_does_not_matter() {
    let expected = sized(DUMP, &[]).1;
    let list: Value = serde_saphyr::from_str(DUMP).expect("YAML");
    assert_eq!(sized(&list.to_string(), &[]).1, expected, "JSON");

    let items = list["items"].as_array().expect("items");
    let documents: Vec<String> = items.iter().map(Value::to_string).collect();
    assert_eq!(
        sized(&documents.join("\n---\n"), &[]).1,
        expected,
        "YAML of several documents"
    );
    assert_eq!(
        sized(&documents.join("\n"), &[]).1,
        expected,
        "JSON of several documents"
    );
}

#[test]
fn missing_and_broken_parts_are_reported() {
    let without = |kind: &str| {
        let mut list: Value = serde_saphyr::from_str(DUMP).expect("YAML");
        let items = list["items"].as_array_mut().expect("items");
        items.retain(|item| item["kind"] != kind);
        list.to_string()
    };
    let dump = ["--from", "-"];
    let rows: [(String, &[&str], u8, &str); 10] = [
        (
            without("Node"),
            &dump,
            2,
            "there is no Node in it: save it again with `kubectl get nodes,pods,",
        ),
        (without("Pod"), &dump, 2, "there is no Pod in it"),
        (
            without("ResourceClaim"),
            &dump,
            2,
            "no ResourceClaim in it, and the pod team-a/train uses one",
        ),
        (
            DUMP.replace("resource.k8s.io/v1\n", "resource.k8s.io/v1beta1\n"),
            &dump,
            2,
            "expected resource.k8s.io/v1",
        ),
        ("items: [".to_owned(), &dump, 2, "is neither YAML nor JSON"),
        ("a: b".to_owned(), &dump, 2, "is no Kubernetes object"),
        (
            DUMP.to_owned(),
            &["--from", "-", "--node", "gpu-9"],
            2,
            "there is no node gpu-9: there are cpu-1, gpu-1, gpu-2, gpu-3",
        ),
        (
            String::new(),
            &["--from", "/nonexistent"],
            2,
            "/nonexistent cannot be used",
        ),
        (String::new(), &[], 4, "no cluster is configured"),
        (
            String::new(),
            &["--from", "-", "-f", "-"],
            2,
            "standard input can be read once: give one of the two as a file",
        ),
    ];
    for (input, arguments, code, says) in rows {
        let answer = size(&input, arguments);
        answer.exits(code, says);
        assert_eq!(answer.out, "", "{answer:?}");
    }
    let no_class = size(&without("DeviceClass"), &dump);
    assert_eq!(no_class.code, 0, "{no_class:?}");
    no_class.prints("the DeviceClass gpu.nvidia.com is missing");
    no_class.prints("plan: 3 of 8 GPUs on gpu-3");
}

#[test]
fn a_small_file_that_unfolds_into_gigabytes_is_refused() {
    let text = "a".repeat(1 << 20);
    let widened = format!(
        "kind: Node\nmetadata: {{name: &a {text}}}\nx: [{}]\n",
        vec!["*a"; 2000].join(", ")
    );
    let levels = (1..12).map(|level| {
        format!(
            "l{level}: &l{level} [{}]\n",
            vec![format!("*l{}", level - 1); 10].join(", ")
        )
    });
    let deepened = format!("l0: &l0 [x]\n{}", levels.collect::<String>());
    for bomb in [widened, deepened] {
        let answer = size(&bomb, &["--from", "-"]);
        answer.exits(2, "alias");
    }
}

#[test]
fn a_file_of_endless_depth_is_refused() {
    for open in ["[", "{a: ", "- ", "{\"a\":["] {
        let answer = size(&open.repeat(50_000), &["--from", "-"]);
        assert_eq!(answer.code, 2, "{open:?}: {}", answer.err);
    }
}
