//! `kubectl perfval judge`, run as people run it: exit codes, texts, and that no broken input ever passes.

mod arguments;
mod exports;
mod saved;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::answer::Answer;
use super::socket::{PROGRAM, program};

/// A folder for the files of one test.
struct CaseFolder {
    folder: TempDir,
}

impl CaseFolder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    }

    fn manifest(&self, spec: &Value) -> PathBuf {
        let mut manifest = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": {"name": "a", "namespace": "perf"},
            "spec": {
                "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.2.1"}},
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
    PathBuf::from(format!("../verdict/tests/fixtures/aiperf-{name}.json"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).expect("a fixture")
}

fn judge(manifest: &Path, exports: &[PathBuf], flags: &[&str]) -> Answer {
    judge_input("", manifest, exports, flags)
}

fn judge_input(input: &str, manifest: &Path, exports: &[PathBuf], flags: &[&str]) -> Answer {
    let mut command = program(PROGRAM, "judge", Path::new("/nonexistent"));
    Answer::run(command.args(exports).arg("-f").arg(manifest).args(flags), input)
}

#[test]
fn every_verdict_has_its_exit_code_and_its_words() {
    let folder = CaseFolder::new();
    let single = json!({});
    let sequential = json!({"trials": {"rule": "Sequential"}});
    let cases: [(&Value, &[&str], u8, &str); 11] = [
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
        (&single, &["cancelled-sigint"], 4, "Error BenchmarkFailed"),
        (&single, &["underdriven-c1024"], 3, "Inconclusive GeneratorStarved"),
        (
            &sequential,
            &["success", "success-client-tokenized", "0.12.0-success"],
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
            &["cancelled-sigint", "cancelled-failed-request-threshold"],
            4,
            "Error BenchmarkFailed",
        ),
        (&json!({"gates": []}), &["success"], 0, "Skipped NothingToJudge"),
    ];
    for (spec, exports, code, words) in cases {
        let exports: Vec<PathBuf> = exports.iter().map(|name| fixture(name)).collect();
        let answer = judge(&folder.manifest(spec), &exports, &[]);
        assert_eq!(answer.code, code, "{exports:?}: {answer:?}");
        assert!(answer.out.contains(words), "no {words:?} in {answer:?}");
    }
}

#[test]
fn a_miss_shows_its_gate_the_numbers_and_the_threshold() {
    let folder = CaseFolder::new();
    let answer = judge(&folder.manifest(&json!({})), &[fixture("slow-worker-round-robin")], &[]);
    let row = answer
        .out
        .lines()
        .find(|line| line.contains("ttft-p99"))
        .expect("a row of the gate");
    for part in ["43668", "2k", "2000", "MISSED"] {
        assert!(row.contains(part), "no {part} in {row}");
    }
    assert!(
        !answer.out.contains("NotSampled"),
        "an export says nothing of the workers: {}",
        answer.out
    );
}

#[test]
fn thresholds_scale_with_the_gpus_that_are_named() {
    let folder = CaseFolder::new();
    let manifest = folder.manifest(&json!({"gates": [
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

#[test]
fn standard_input_is_a_file_too() {
    let folder = CaseFolder::new();
    let answer = judge_input(
        &text("success"),
        &folder.manifest(&json!({})),
        &[PathBuf::from("-")],
        &[],
    );
    assert_eq!(answer.code, 0, "{answer:?}");
}

#[test]
fn an_export_that_is_given_twice_is_refused() {
    let folder = CaseFolder::new();
    let manifest = folder.manifest(&json!({"trials": {"rule": "Sequential"}}));
    let copy = folder.file("copy.json", text("success"));
    let answer = judge(&manifest, &[fixture("success"), copy], &[]);
    answer.exits(2, "hold the same trial");
}
