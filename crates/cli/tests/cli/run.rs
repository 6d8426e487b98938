//! `run`: creates, follows, ends with the verdict; Ctrl-C asks.

use clap::Parser as _;
use clap::error::ErrorKind;
use perfval_api::meta::FINALIZER;
use perfval_cli::args::Cli;
use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::desk::{Desk, SILENCE, Typed, edited_sample};

const MANIFEST: &str = "../../config/samples/quick.yaml";

fn object(desk: &Desk, name: &str) -> Option<Value> {
    desk.server.get("perfvalidations", "perf", name)
}

async fn under_way(desk: &Desk) -> Typed {
    let run = desk.start(&format!("run -f {MANIFEST} --name mine"));
    run.shows("waiting for an operator").await;
    run
}

#[tokio::test]
async fn a_manifest_is_created_and_followed_to_its_verdict() {
    let desk = Desk::new();
    let run = under_way(&desk).await;
    desk.becomes("mine", "failed");
    let answer = run.ends().await;
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.out.starts_with("perf/mine created\n"), "{}", answer.out);
    answer.prints("perf/mine: Failed (GatesMissed)");
}

#[tokio::test]
async fn a_preset_is_created_with_what_the_flags_change() {
    let desk = Desk::new();
    let flags = "--preset h200 --name mine --model org/other --image r/vllm:1.4.2 --max-gpus 2 --node gpu-7";
    let answer = desk.types(&format!("run {flags} --detach")).await;
    assert_eq!(answer.code, 0, "{}", answer.err);
    let spec = object(&desk, "mine").expect("created")["spec"].clone();
    assert_eq!(
        (&spec["model"]["name"], &spec["workload"]["dynamo"]["image"]),
        (&json!("org/other"), &json!("r/vllm:1.4.2"))
    );
    assert_eq!(spec["placement"]["maxGPUs"], json!(2));
    assert_eq!(
        spec["placement"]["nodeSelector"]["kubernetes.io/hostname"],
        json!("gpu-7")
    );
    assert_eq!(spec["gates"][0]["name"], "throughput");
}

#[tokio::test]
async fn the_same_again_is_a_rerun_and_something_else_is_refused() {
    let desk = Desk::new();
    let same = format!("run -f {MANIFEST} --name mine --detach");
    assert_eq!(desk.types(&same).await.code, 0);
    let again = desk.types(&same).await;
    again.prints("perf/mine exists; it runs again");
    assert_ne!(
        object(&desk, "mine").expect("there")["metadata"]["annotations"]["perfvalidation.dev/rerun"],
        Value::Null
    );
    let other = desk
        .types(&format!("run -f {MANIFEST} --name mine --max-gpus 7 --detach"))
        .await;
    other.exits(2, "perf/mine exists with another spec");
    desk.becomes("mine", "benchmarking");
    let active = desk.types(&same).await;
    active.prints("perf/mine exists; its active run stops, and it runs again");
    assert_eq!(desk.types("suspend mine").await.code, 0);
    let suspended = desk.types(&same).await;
    let remedy = "perf/mine exists and is suspended: let it run with `kubectl perfval resume mine -n perf`";
    suspended.exits(2, remedy);
    desk.server.edit("perfvalidations", "perf", "mine", |object| {
        object["metadata"]["finalizers"] = json!([FINALIZER]);
    });
    desk.server.delete("perfvalidations", "perf", "mine");
    for typed in [&same, &same.replace("--detach", "--max-gpus 7 --detach")] {
        let wait = "`kubectl wait --for=delete perfvalidation/mine -n perf --timeout=10m`, then try again";
        let refusal = format!("perf/mine is being deleted: {wait}");
        desk.types(typed).await.exits(2, &refusal);
    }
}

#[tokio::test]
async fn changed_labels_and_annotations_are_set_before_it_runs_again() {
    let desk = Desk::new();
    let run = async |metadata: &str| {
        let metadata = format!("name: quick\n  {metadata}\n");
        let file = edited_sample(&[("name: quick\n", metadata.as_str())]);
        let answer = desk.types(&format!("run -f {} --detach", file.path().display())).await;
        let metadata = object(&desk, "quick").expect("there")["metadata"].clone();
        (answer.out, metadata)
    };
    let (out, _) = run("labels: {team: a, tier: x}").await;
    assert!(out.contains("perf/quick created"), "{out}");
    let (out, metadata) = run("labels: {team: b}\n  annotations: {build: \"7\"}").await;
    let both = "perf/quick exists; labels and annotations of the manifest are set\nperf/quick exists; it runs again\n";
    assert!(out.contains(both), "{out}");
    assert_eq!(metadata["labels"], json!({"team": "b", "tier": "x"}));
    let token = metadata["annotations"]["perfvalidation.dev/rerun"].clone();
    assert!(token.is_string(), "{metadata}");
    assert_eq!(metadata["annotations"]["build"], "7");
    // As in a manifest that kubectl printed.
    let records = "annotations: {perfvalidation.dev/rerun: old, kubectl.kubernetes.io/last-applied-configuration: old}";
    let (out, again) = run(records).await;
    assert!(!out.contains("are set"), "{out}");
    assert_eq!(again["annotations"], metadata["annotations"]);
}

#[tokio::test]
async fn ctrl_c_asks_and_follows_the_answer() {
    for (answer, code) in [("l\n", 3), ("", 3), ("suspend\n", 130), ("d\n", 130)] {
        let mut desk = Desk::new();
        desk.answers = Some(answer);
        let run = under_way(&desk).await;
        run.is_interrupted();
        let ended = run.ends().await;
        assert_eq!(ended.code, code, "{answer:?}: {}", ended.err);
        ended.notes("[l]eave it running, [s]uspend it and free its GPUs, or [d]elete it?");
        let left = object(&desk, "mine");
        assert_eq!(left.is_none(), answer == "d\n", "{answer:?}");
        let suspended = left.is_some_and(|left| left["spec"]["suspend"] == json!(true));
        assert_eq!(suspended, answer == "suspend\n", "{answer:?}");
    }
}

#[tokio::test]
async fn a_second_ctrl_c_is_no_answer_and_leaves_it_running() {
    let mut desk = Desk::new();
    desk.answers = Some(SILENCE);
    let run = under_way(&desk).await;
    run.is_interrupted();
    run.notes("is still running").await;
    run.is_interrupted();
    let ended = run.ends().await;
    ended.exits(3, "mine goes on");
    assert_eq!(object(&desk, "mine").expect("there")["spec"]["suspend"], json!(false));
}

#[tokio::test]
async fn without_an_answer_ctrl_c_leaves_the_run_running() {
    let desk = Desk::new();
    let run = under_way(&desk).await;
    run.is_interrupted();
    let ended = run.ends().await;
    ended.exits(3, "kubectl perfval watch mine -n perf");
    assert!(object(&desk, "mine").is_some());
}

#[tokio::test]
async fn what_the_api_server_would_refuse_is_refused_before() {
    let file = edited_sample(&[("spec:\n", "spec:\n  modle: x\n")]);
    let desk = Desk::new();
    let answer = desk.types(&format!("run -f {}", file.path().display())).await;
    answer.exits(2, "modle");
    let flags = desk.types("run --preset h200 --model a:b").await;
    assert_eq!(flags.code, 2);
    for words in [
        "the manifest of these flags would be refused",
        "spec.model.name: write a model id",
    ] {
        flags.notes(words);
    }
    assert!(desk.server.objects("perfvalidations").is_empty());
    let nothing = desk.types("run").await;
    nothing.exits(2, "no manifest and no preset: write -f FILE, or --preset GPU");
}

#[tokio::test]
async fn different_namespaces_of_manifest_and_flag_are_refused() {
    let file = edited_sample(&[("name: quick\n", "name: quick\n  namespace: perf\n")]);
    let desk = Desk::new();
    let run = format!("run -f {} --name mine --detach", file.path().display());
    let refused = desk.types(&format!("{run} -n other")).await;
    refused.exits(2, "namespace perf, and the flags have other");
    assert!(object(&desk, "mine").is_none());
    assert_eq!(desk.types(&format!("{run} -n perf")).await.code, 0);
}

#[tokio::test]
async fn a_report_is_written_at_the_time_out_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("report");
    let desk = Desk::new();
    let typed = format!("run -f {MANIFEST} --name mine");
    assert_eq!(desk.types(&format!("{typed} --detach")).await.code, 0);
    desk.becomes("mine", "benchmarking");
    // The rerun that the next command requests has begun.
    let token = desk.moment.timestamp_millis().to_string();
    desk.server.edit("perfvalidations", "perf", "mine", |object| {
        object["status"]["run"]["rerunToken"] = json!(token);
    });
    let report = directory.display();
    let answer = desk.types(&format!("{typed} --timeout 50ms --report {report}")).await;
    assert_eq!(answer.code, 3, "{}", answer.err);
    assert!(directory.join("junit.xml").exists(), "{}", answer.err);
}

#[tokio::test]
async fn a_run_that_has_not_begun_gets_no_report_of_the_run_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("report");
    let desk = Desk::new();
    let typed = format!("run -f {MANIFEST} --name mine --report {}", directory.display());
    let run = desk.start(&typed);
    run.shows("waiting for an operator").await;
    desk.becomes("mine", "failed");
    assert_eq!(run.ends().await.code, 1);
    assert!(directory.join("junit.xml").exists());
    let again = desk.types(&format!("{typed} --timeout 1s")).await;
    again.exits(3, "is not written: the run has not begun");
    assert!(!directory.join("junit.xml").exists(), "{}", again.err);
}

#[tokio::test]
async fn a_report_that_cannot_be_written_hides_no_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("report");
    let desk = Desk::new();
    let typed = format!("run -f {MANIFEST} --name mine --report {}", directory.display());
    let run = desk.start(&typed);
    run.shows("waiting for an operator").await;
    std::fs::write(&directory, "a file").expect("written");
    desk.becomes("mine", "failed");
    let answer = run.ends().await;
    answer.exits(1, "report is not written");
    let later = format!("report mine --directory {} -n perf`.", directory.display());
    answer.notes(&format!("Write it later with `kubectl perfval {later}"));
}

#[tokio::test]
async fn a_report_is_written_once_the_cluster_answers_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("report");
    let desk = Desk::new();
    desk.server.fail(Fault::refuse("get", "configmaps", 503).times(1));
    let typed = format!("run -f {MANIFEST} --name mine --report {}", directory.display());
    let run = desk.start(&typed);
    run.shows("waiting for an operator").await;
    desk.becomes("mine", "failed");
    let answer = run.ends().await;
    answer.exits(1, "The cluster answered 503 (get configmaps: fault 503); trying again.");
    assert!(directory.join("junit.xml").exists(), "{}", answer.err);
}

#[tokio::test]
async fn a_report_without_a_place_is_refused_before_the_run() {
    let desk = Desk::new();
    for directory in ["/proc/no-folder", "/proc"] {
        let typed = format!("run -f {MANIFEST} --name mine --report {directory}");
        desk.types(&typed).await.exits(2, directory);
        assert_eq!(object(&desk, "mine"), None, "nothing is created");
    }
}

#[tokio::test]
async fn a_run_that_is_not_created_leaves_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = folder.path().join("new");
    let desk = Desk::new();
    desk.server.fail(Fault::refuse("create", "perfvalidations", 503));
    let report = new.join("report");
    let typed = format!("run -f {MANIFEST} --name mine --report {}", report.display());
    desk.types(&typed).await.exits(4, "the cluster answered 503");
    assert!(folder.path().exists() && !new.exists());
}

#[tokio::test]
async fn a_dump_gives_a_new_object_with_the_users_metadata_only() {
    let dumped = "name: quick\n  uid: u-9\n  resourceVersion: \"7\"\n  finalizers: [a.b/c]\n  labels: {team: a}\n";
    let file = edited_sample(&[("name: quick\n", dumped)]);
    let desk = Desk::new();
    let answer = desk.types(&format!("run -f {} --detach", file.path().display())).await;
    assert_eq!(answer.code, 0, "{answer:?}");
    let metadata = object(&desk, "quick").expect("created")["metadata"].clone();
    assert_eq!(metadata["labels"], json!({"team": "a"}));
    assert_ne!(metadata["uid"], json!("u-9"));
    assert_eq!(metadata["finalizers"], Value::Null);
}

#[tokio::test]
async fn a_name_flag_replaces_the_name_of_the_manifest() {
    let desk = Desk::new();
    let long = format!("--name {}", "a".repeat(70));
    for (metadata, flags, code, said) in [
        (
            "labels: {}\n",
            "",
            2,
            "the manifest has no metadata.name: write one, or give --name",
        ),
        ("generateName: quick-\n", "", 2, "the manifest has no metadata.name"),
        ("generateName: quick-\n", "--name one", 0, ""),
        ("name: 5\n", "--name two", 0, ""),
        (
            "name: 5\n",
            "",
            2,
            "metadata.name: 5 is not of type \"string\": write it in quotes",
        ),
        (
            "name: a\n",
            long.as_str(),
            2,
            "\n  metadata.name: write at most 63 characters",
        ),
        (
            "name: a\n",
            "--name A_B",
            2,
            "metadata.name: \"A_B\": write lower-case letters",
        ),
        (
            "name: a\n  namspace: b\n",
            "",
            2,
            "metadata.namspace: there is no such field; did you mean namespace?",
        ),
    ] {
        let file = edited_sample(&[("name: quick\n", metadata)]);
        let typed = format!("run -f {} --detach {flags}", file.path().display());
        desk.types(&typed).await.exits(code, said);
    }
    assert_eq!(desk.server.objects("perfvalidations").len(), 2);
}

#[test]
fn flags_that_would_be_ignored_are_refused() {
    for (typed, kind) in [
        ("run --preset h200 --detach --timeout 5m", ErrorKind::ArgumentConflict),
        // A variable of a shell that is not set: no node has this name.
        ("run --preset h200 --node ", ErrorKind::InvalidValue),
        ("calibrate -f a.yaml --node ", ErrorKind::InvalidValue),
        (
            "judge a.json -f a.yaml --node-gpus 8",
            ErrorKind::MissingRequiredArgument,
        ),
    ] {
        let words = ["kubectl-perfval"].into_iter().chain(typed.split(' '));
        let refused = Cli::try_parse_from(words).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(refused, Err(kind), "{typed}");
    }
}
