//! `kubectl perfval`, found by kubectl in PATH, through the life of a validation: what a person and a pipeline see.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::ResourceExt as _;
use perfval_api::{Phase, Verdict, meta};
use perfval_e2e::{Gpus, Validation, config, eventually};
use serde_json::{Value, json};
use tokio::process::Command;

use super::cleanup;
use crate::more::pipelines::is_report_of;
use crate::ready;

/// Longest that a command may take which follows a run.
const RUN: Duration = Duration::from_mins(10);

/// What a command answered.
struct Answer {
    code: Option<i32>,
    text: String,
}

/// The folder of the program, which is built beside the operator's.
pub fn folder() -> PathBuf {
    let operator = std::env::var_os("PERFVAL_OPERATOR").expect("PERFVAL_OPERATOR names the operator's program");
    let folder = Path::new(&operator).parent().expect("a folder").to_owned();
    assert!(
        folder.join("kubectl-perfval").exists(),
        "no kubectl-perfval in {}",
        folder.display()
    );
    folder
}

/// Path of a sample under `config/samples`.
fn sample(name: &str) -> String {
    format!("{}/samples/{name}", config())
}

/// A command as it is typed, with both streams in one text.
async fn perfval(words: &[&str]) -> Answer {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("kubectl");
    command
        .arg("perfval")
        .args(words)
        .env("PATH", format!("{}:{path}", folder().display()));
    let output = tokio::time::timeout(RUN, command.kill_on_drop(true).output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("{words:?} does not end"))
        .expect("kubectl starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let answer = Answer {
        code: output.status.code(),
        text: text(&output.stdout) + &text(&output.stderr),
    };
    // Shown where the test fails, and what the pages quote.
    println!(
        "$ kubectl perfval {}\n{}(exit code {:?})\n",
        words.join(" "),
        answer.text,
        answer.code
    );
    answer
}

fn assert_has(answer: &Answer, texts: &[&str]) {
    for text in texts {
        assert!(answer.text.contains(text), "no {text:?} in {}", answer.text);
    }
}

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn the_plug_in_runs_watches_and_explains_a_healthy_and_a_slow_run() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-plugin").await;
    let of = ["-n", namespace.as_str()];
    let desk = tempfile::tempdir().expect("a folder");
    // The demo in one trial.
    let demo = ["create", "--dry-run=client", "-o", "json", "-f", &sample("demo.yaml")];
    let mut manifest: Value = serde_json::from_str(&lab.kubectl(&demo).await).expect("JSON");
    manifest["metadata"] = json!({"name": "typed", "namespace": namespace});
    manifest["spec"]["trials"] = json!({"rule": "Single", "max": 1});
    let file = desk.path().join("typed.json");
    std::fs::write(&file, manifest.to_string()).expect("written");
    let file = file.to_string_lossy().into_owned();

    let doctor = perfval(&["doctor", "-f", &file]).await;
    assert_eq!(doctor.code, Some(0), "the lab has everything: {}", doctor.text);
    assert_has(
        &doctor,
        &["the operator is ready", "Dynamo 1.4.2", "GPUs on", "is on 1 of"],
    );

    let report = desk.path().join("report");
    let folder = report.to_string_lossy().into_owned();
    let words = ["run", "-f", &file, "--report", &folder];
    let (run, ()) = tokio::join!(perfval(&words), looks_while_it_runs(&lab, &namespace));
    assert_eq!(run.code, Some(0), "the verdict is the exit code");
    assert_has(
        &run,
        &[
            "created",
            "WaitingForReady",
            "Benchmarking",
            "requests",
            "Passed (GatesMet)",
            "Trials",
            "Evidence",
        ],
    );
    is_report_of(
        &report,
        "Passed",
        &["verdict", "throughput", "ttft-p99", "slowest-worker", "trial 1"],
    );

    let first = Gpus::count(&lab).await.first;
    lab.run(&["fault", "slow-gpu", first.trim_start_matches("gpu-"), "0.6"])
        .await;
    // The slow deployment is kept, to be looked at.
    let validation = Validation::existing(&lab, &namespace, "typed");
    validation.annotate("perfvalidation.dev/no-cleanup", Some("true")).await;
    let again = perfval(&["rerun", "typed", "--watch", of[0], of[1]]).await;
    assert_eq!(again.code, Some(1), "a GPU at 60 % of its speed fails the demo's gates");
    assert_has(
        &again,
        &["run 2", "Failed (GatesMissed)", "slowest-worker", "SlowWorker", &first],
    );
    lab.run(&["fault", "clear"]).await;
    cleanup::kept_while_the_annotation_is_set(&lab, &validation).await;
    let status = validation.status().await.expect("a status");
    let asked = validation.get().await.expect("the object").annotations()[meta::RERUN].clone();
    assert_eq!(status.run.and_then(|run| run.rerun_token), Some(asked));
    assert_eq!((status.state.history.len(), status.state.history[0].run), (1, 1));

    let page = perfval(&["describe", "typed", of[0], of[1]]).await;
    assert_has(
        &page,
        &[
            "Gates, in the trial that decided",
            "Workers in the last valid trial",
            "SlowWorker",
            "→",
            "Ran on",
        ],
    );
    let diff = perfval(&["diff", "typed", of[0], of[1]]).await;
    assert_has(&diff, &["typed/1", "typed/2", "tok/s", "%", "Both ran on the same"]);
    let history = perfval(&["history", "typed", of[0], of[1]]).await;
    assert_has(&history, &["RUN", "GatesMet"]);
    assert_has(
        &perfval(&["get", "typed", "-o", "wide", of[0], of[1]]).await,
        &["PROGRESS", "Completed"],
    );

    let archive = desk.path().join("bundle.tar.gz").to_string_lossy().into_owned();
    let bundle = perfval(&["bundle", "typed", "-o", &archive, of[0], of[1]]).await;
    assert_eq!(bundle.code, Some(0));
    assert_has(
        &bundle,
        &[
            "perfvalidation.yaml",
            "results/1/trial-1.json",
            "results/2/trial-1.json",
            "size-dump.json",
        ],
    );

    validation.delete().await;
    let gone = perfval(&["describe", "typed", of[0], of[1]]).await;
    assert_eq!(gone.code, Some(2), "{}", gone.text);
}

/// What another terminal sees meanwhile: progress in a column, and the logs of every part.
async fn looks_while_it_runs(lab: &perfval_e2e::Lab, namespace: &str) {
    let validation = Validation::existing(lab, namespace, "typed");
    eventually("it is created", RUN, || validation.status()).await;
    let status = validation
        .until("a trial says how far it is", |status| {
            // The first look may come before the first answer.
            let begun = status
                .state
                .progress
                .as_ref()
                .is_some_and(|progress| progress.requests > 0);
            begun || status.phase == Some(Phase::Completed)
        })
        .await;
    let progress = status.state.progress.expect("a trial of 15 s is read in between");
    assert!(
        progress.requests > 0 && progress.shown.summary.starts_with("1: "),
        "{progress:?}"
    );
    let get = perfval(&["get", "typed", "-n", namespace]).await;
    assert_has(&get, &["PROGRESS", "1: "]);
    let logs = perfval(&["logs", "typed", "-n", namespace]).await;
    assert_has(
        &logs,
        &["frontend", "worker gpu-", "benchmark", "perfval-progress", "operator"],
    );
    assert_ne!(status.verdict, Some(Verdict::Error));
}
