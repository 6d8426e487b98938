//! `perfvalidation-operator judge`, run as people run it: exit codes, texts, and that no broken input ever passes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::{Compression, write::GzEncoder};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_core::aiperf;
use perfval_core::frame::{Outcome, Payload, TrialRecord};
use perfval_core::workers::{Pace, Unit, WorkerSummary};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder for the files of one test.
struct Desk {
    folder: TempDir,
}

/// What the program answered.
#[derive(Debug)]
struct Answer {
    code: i32,
    out: String,
    complaint: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Desk {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    }

    fn manifest(&self, spec: &Value) -> PathBuf {
        let mut manifest = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": {"name": "a", "namespace": "perf"},
            "spec": {
                "model": {"name": "m"}, "workload": {"image": "i:1.2.1"},
                "trials": {"rule": "Single"},
                "gates": [
                    {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500"},
                    {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2k"},
                ],
            },
        });
        for (field, value) in spec.as_object().expect("fields") {
            manifest["spec"][field] = value.clone();
        }
        self.file("perfvalidation.yaml", manifest.to_string())
    }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(format!("../core/tests/fixtures/aiperf-{name}.json"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).expect("a fixture")
}

fn judge(manifest: &Path, exports: &[PathBuf], flags: &[&str]) -> Answer {
    run(Command::new(env!("CARGO_BIN_EXE_perfvalidation-operator"))
        .arg("judge")
        .args(exports)
        .arg("-f")
        .arg(manifest)
        .args(flags))
}

fn run(command: &mut Command) -> Answer {
    let output = command.output().expect("the program runs");
    Answer {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("text"),
        complaint: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn every_verdict_has_its_exit_code_and_its_words() {
    let desk = Desk::new();
    let single = json!({});
    let sequential = json!({"trials": {"rule": "Sequential"}});
    let cases: [(&Value, &[&str], i32, &str); 11] = [
        (&single, &["success"], 0, "Passed GatesMet"),
        (&single, &["0.11.0-success"], 1, "Failed GatesMissed"),
        (&single, &["slow-worker-round-robin"], 1, "Failed GatesMissed"),
        (
            &single,
            &["partial-dead-worker-least-loaded"],
            1,
            "Failed RequestErrors",
        ),
        (&single, &["0.11.0-dead-worker-least-loaded"], 1, "Failed RequestErrors"),
        (&single, &["cancelled-sigint"], 4, "Error ResultIncomplete"),
        (&single, &["underdriven-c1024"], 3, "Inconclusive GeneratorStarved"),
        (
            &sequential,
            &["success", "success", "success"],
            0,
            "not judged: the rule had decided",
        ),
        (
            &sequential,
            &["success"],
            3,
            "the rule Sequential (max 8) asks for another one",
        ),
        (
            &sequential,
            &["cancelled-sigint", "cancelled-sigint"],
            4,
            "Error ResultIncomplete",
        ),
        (&json!({"gates": []}), &["success"], 0, "Skipped NothingToJudge"),
    ];
    for (spec, exports, code, words) in cases {
        let exports: Vec<PathBuf> = exports.iter().map(|name| fixture(name)).collect();
        let answer = judge(&desk.manifest(spec), &exports, &[]);
        assert_eq!(answer.code, code, "{exports:?}: {answer:?}");
        assert!(
            answer.out.contains(words),
            "{exports:?}: no {words:?} in {}",
            answer.out
        );
    }
}

#[test]
fn a_miss_shows_its_gate_the_numbers_and_the_threshold() {
    let desk = Desk::new();
    let answer = judge(&desk.manifest(&json!({})), &[fixture("slow-worker-round-robin")], &[]);
    let row = answer
        .out
        .lines()
        .find(|line| line.contains("ttft-p99"))
        .expect("a row of the gate");
    for part in ["43668", "2k", "2000", "MISSED"] {
        assert!(row.contains(part), "no {part} in {row}");
    }
    assert!(
        !answer.out.contains("WorkersNotSampled"),
        "an export says nothing of the workers: {}",
        answer.out
    );
}

#[test]
fn no_broken_export_ever_passes() {
    let desk = Desk::new();
    let whole = text("success");
    let with = |from: &str, to: &str| {
        let changed = whole.replacen(from, to, 1);
        assert_ne!(changed, whole, "{from} is not in the export");
        changed.into_bytes()
    };
    let huge = desk.file("huge", "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&huge)
        .and_then(|file| file.set_len(100 << 20))
        .expect("100 MB");
    let mut padded = with("{", "{ ");
    padded.resize(5 << 20, b' ');
    let broken = [
        (
            "truncated",
            whole.as_bytes()[..whole.len() / 2].to_vec(),
            "not valid JSON",
        ),
        ("empty", Vec::new(), "not valid JSON"),
        ("binary", vec![0xff; 64], "not valid JSON"),
        ("broken gzip", vec![0x1f, 0x8b, 8, 0, 0], "gzip is broken"),
        (
            "NaN",
            with(
                "\"was_cancelled\": false",
                "\"was_cancelled\": false, \"goodput\": {\"avg\": NaN}",
            ),
            "not valid JSON",
        ),
        (
            "negative",
            with(
                "\"time_to_first_token\": {",
                "\"time_to_first_token\": {\"p42\": 1, \"p1\": -5,",
            ),
            "duplicate key",
        ),
        (
            "cancelled twice",
            with(
                "\"was_cancelled\": false",
                "\"was_cancelled\": true, \"was_cancelled\": false",
            ),
            "duplicate key",
        ),
        ("another version", with("0.13.0", "0.99.0"), "0.99.0"),
        ("no version", with("\"aiperf_version\"", "\"other\""), "aiperf_version"),
        (
            "another tool",
            b"{\"benchmarks\": [], \"kind\": \"GuideLLM\"}".to_vec(),
            "schema_version",
        ),
        ("a list", b"[1, 2]".to_vec(), "not valid JSON"),
        (
            "a ConfigMap of another sort",
            b"{\"kind\": \"Pod\", \"record\": 5}".to_vec(),
            "schema_version",
        ),
        (
            "a payload that is none",
            b"{\"record\": {\"nonce\": 5}}".to_vec(),
            "payload",
        ),
        ("5 MB", padded, "larger than"),
    ];
    let mut files: Vec<(String, PathBuf, &str)> = broken
        .into_iter()
        .map(|(name, content, words)| (name.to_owned(), desk.file(name, content), words))
        .collect();
    files.push(("100 MB".to_owned(), huge, "larger than"));
    for metric in ["output_token_throughput", "time_to_first_token"] {
        for value in [json!(-1.0), json!(1e300), json!("5"), json!(null), json!(0)] {
            let mut export: Value = serde_json::from_str(&whole).expect("JSON");
            export[metric]["avg"] = value.clone();
            export[metric]["p99"] = value.clone();
            let name = format!("{metric} {value}");
            let words = if value.is_null() || value == json!(0) {
                "gate"
            } else {
                metric
            };
            files.push((name.clone(), desk.file(&name, export.to_string()), words));
        }
    }
    for (name, file, words) in files {
        let answer = judge(&desk.manifest(&json!({})), &[file], &["-o", "json"]);
        assert_eq!(answer.code, 4, "{name}: {answer:?}");
        let report = answer.json();
        assert_eq!(report["trials"][0]["outcome"], "Invalid", "{name}: {report:#}");
        let evidence = report["trials"][0]["findings"][0]["evidence"]
            .as_str()
            .unwrap_or_default();
        assert!(evidence.contains(words), "{name}: no {words:?} in {evidence:?}");
    }
}

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
    let twice = scaled(
        "twice",
        json!({"gates": [gate(json!({}))["gates"][0], gate(json!({}))["gates"][0]]}),
    );
    let by_share = scaled("by-share", gate(json!({"scaling": "ByGPUShare"})));
    let per_gpu = scaled("per-gpu", gate(json!({"scaling": "PerGPU"})));
    let good = desk.manifest(&json!({}));
    let two = format!("{0}\n---\n{0}", std::fs::read_to_string(&good).expect("the manifest"));
    let cases: [(PathBuf, PathBuf, &[&str], &str); 15] = [
        (
            good.clone(),
            PathBuf::from("/no/such/file"),
            &[],
            "/no/such/file cannot be read",
        ),
        (good.clone(), desk.folder.path().to_owned(), &[], "cannot be read"),
        (
            PathBuf::from("/no/such.yaml"),
            success.clone(),
            &[],
            "/no/such.yaml cannot be read",
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
            "holds 0 PerfValidations",
        ),
        (manifest("none", ""), success.clone(), &[], "holds 0 PerfValidations"),
        (manifest("two", &two), success.clone(), &[], "holds 2 PerfValidations"),
        (misspelt, success.clone(), &[], "spec.gate: there is no such field"),
        (
            threshold,
            success.clone(),
            &[],
            "spec.gates[0].threshold: write a quantity above 0",
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

#[test]
fn thresholds_scale_with_the_gpus_that_are_named() {
    let desk = Desk::new();
    let manifest = desk.manifest(&json!({"gates": [
        {"name": "share", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "8000", "scaling": "ByGPUShare", "tolerancePercent": 10},
        {"name": "each", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000", "scaling": "PerGPU"},
    ]}));
    let report = judge(
        &manifest,
        &[fixture("success")],
        &["--gpus", "4", "--node-gpus", "8", "-o", "json"],
    )
    .json();
    assert_eq!(report["verdict"], "Passed");
    let effective: Vec<&Value> = report["trials"][0]["gates"]
        .as_array()
        .expect("gates")
        .iter()
        .map(|gate| &gate["effective"])
        .collect();
    assert_eq!(effective, ["3600", "4000"]);
}

/// A payload as the runner logs it: four workers, one of them ten times slower.
fn payload() -> Payload {
    let export = text("slow-worker-least-loaded");
    let worker = |address: &str, rate: i64| WorkerSummary {
        address: address.to_owned(),
        seconds: 60,
        samples: 60,
        served: rate * 60,
        peak_in_flight: 32,
        mean_in_flight: Decimal::from(30),
        rate_per_second: Decimal::from(rate),
        seconds_per_request: Decimal::from(30).checked_div(Decimal::from(rate)),
        pace: Some(Pace {
            unit: Unit::Tokens,
            mean: Decimal::from(rate * 64),
            best: Decimal::from(rate * 80),
        }),
        ..WorkerSummary::default()
    };
    let record = TrialRecord {
        nonce: "n".to_owned(),
        exit_code: 0,
        outcome: Outcome::Report(Box::new(aiperf::parse(export.as_bytes()).expect("a report"))),
        workers: vec![
            worker("10.0.0.1", 20),
            worker("10.0.0.2", 2),
            worker("10.0.0.3", 20),
            worker("10.0.0.4", 20),
        ],
        scrape_errors: BTreeMap::new(),
        abridged: BTreeSet::new(),
    };
    let payload = Payload {
        record,
        aiperf: None,
        workers: Vec::new(),
    };
    payload.with_export(&export).expect("JSON")
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("packed");
    encoder.finish().expect("packed")
}

#[test]
fn saved_trials_are_judged_with_what_the_workers_did() {
    let desk = Desk::new();
    let manifest = desk.manifest(&json!({}));
    let payload = serde_json::to_string(&payload()).expect("JSON");
    let results = ConfigMap {
        data: Some(
            [(
                "summary.json".to_owned(),
                json!({"placement": {"gpus": 4, "nodeGPUs": 8}}).to_string(),
            )]
            .into(),
        ),
        binary_data: Some([("trial-1.json.gz".to_owned(), ByteString(gzip(&payload)))].into()),
        ..ConfigMap::default()
    };
    let mut results = serde_json::to_value(&results).expect("JSON");
    results["kind"] = "ConfigMap".into();
    results["apiVersion"] = "v1".into();
    for file in [
        desk.file("trial-1.json", &payload),
        desk.file("trial-1.json.gz", gzip(&payload)),
        desk.file("results.json", results.to_string()),
    ] {
        let answer = judge(&manifest, std::slice::from_ref(&file), &[]);
        assert_eq!(answer.code, 1, "{}: {answer:?}", file.display());
        for words in ["WorkerStall", "10.0.0.2", "Failed GatesMissed"] {
            assert!(
                answer.out.contains(words),
                "{}: no {words:?} in {}",
                file.display(),
                answer.out
            );
        }
    }

    let mut incomplete = results.clone();
    incomplete["data"]["omitted.txt"] = "trial 2: 900000 bytes packed".into();
    let answer = judge(&manifest, &[desk.file("incomplete.json", incomplete.to_string())], &[]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.complaint.contains("trial 2"), "{answer:?}");
    results["binaryData"] = json!({});
    let answer = judge(&manifest, &[desk.file("empty.json", results.to_string())], &[]);
    assert_eq!(answer.code, 2, "{answer:?}");
}

#[test]
fn standard_input_is_a_file_too() {
    let desk = Desk::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_perfvalidation-operator"))
        .args(["judge", "-", "-f"])
        .arg(desk.manifest(&json!({})))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    child
        .stdin
        .take()
        .expect("its input")
        .write_all(text("success").as_bytes())
        .expect("written");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
