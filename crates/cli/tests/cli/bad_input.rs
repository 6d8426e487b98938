//! Each error has one sentence and an exit code.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use perfval_testkit::api_server::Fault;

use super::desk::{Desk, PATIENCE};
use super::socket::{PROGRAM, closed, of_address, program, typed};

#[tokio::test]
async fn a_cluster_without_the_definition() {
    let desk = Desk::new();
    desk.server.withdraw("perfvalidations");
    for words in [
        "get",
        "describe",
        "watch x",
        "run -f ../../config/samples/quick.yaml",
        "suspend x",
    ] {
        let answer = desk.types(words).await;
        assert_eq!((answer.code, answer.out.as_str()), (4, ""), "{words}");
        assert!(
            answer
                .err
                .starts_with("kubectl perfval: this cluster has no PerfValidation API: install the operator with"),
            "{answer:?}"
        );
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
}

#[tokio::test]
async fn fewer_gpus_than_the_manifest_needs() {
    let desk = Desk::new();
    let answer = desk
        .types("run -f ../../config/samples/gpu-h200.yaml --max-gpus 1")
        .await;
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    answer.notes("--max-gpus 1 is below placement.minGPUs of the manifest, 2");
    answer.notes("remove the gate on the slowest worker");
    assert!(desk.server.objects("perfvalidations").is_empty(), "nothing is created");
}

#[tokio::test]
async fn rights_that_are_missing() {
    let desk = Desk::with("passed");
    desk.server.fail(Fault::refuse("list", "perfvalidations", 403));
    desk.server.fail(Fault::refuse("patch", "perfvalidations", 403));
    let answer = desk.types("get").await;
    answer.exits(4, "you may not read PerfValidations: perfvalidations is forbidden");
    answer.notes("ask for the cluster role perfvalidation-operator-view in this namespace");
    let all = desk.types("get -A").await;
    all.exits(
        4,
        "ask for the cluster role perfvalidation-operator-view in the whole cluster",
    );
    let answer = desk.types("suspend run").await;
    answer.notes("ask for the cluster role perfvalidation-operator-edit");
    let watch = desk.types("watch run --timeout 1m").await;
    assert_eq!(watch.code, 0, "a run that is over needs no watch: {}", watch.err);
}

#[tokio::test]
async fn a_watch_that_is_not_allowed_ends() {
    let desk = Desk::with("sizing");
    desk.server.fail(Fault::refuse("list", "perfvalidations", 403));
    let answer = desk.types("watch run").await;
    answer.exits(4, "you may not read PerfValidations");
}

#[tokio::test]
async fn credentials_and_a_server_that_is_ill() {
    let desk = Desk::with("passed");
    for (code, said) in [
        (401, "log in again, or choose another --context"),
        (
            429,
            "the cluster answered 429 (read PerfValidations): list perfvalidations: fault 429; try again",
        ),
        (500, "the cluster answered 500 (read PerfValidations)"),
        (503, "the cluster answered 503 (read PerfValidations)"),
    ] {
        desk.server.heal();
        desk.server.fail(Fault::refuse("list", "perfvalidations", code));
        let answer = desk.types("get").await;
        answer.exits(4, said);
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_decoded() {
    let words = "the answer of the cluster cannot be read (read PerfValidations): ";
    let edit = |desk: &Desk| {
        desk.server.edit("perfvalidations", "perf", "run", |object| {
            object["status"]["verdict"] = "Splendid".into();
        });
    };
    let desk = Desk::with("passed");
    edit(&desk);
    for typed in ["get run", "describe run", "watch run", "report run"] {
        let answer = desk.types(typed).await;
        answer.exits(4, words);
        answer.notes("unknown variant `Splendid`");
        answer.notes("use the plug-in of the operator's release");
    }
    let desk = Desk::with("benchmarking");
    let watch = desk.start("watch run");
    watch.shows("Benchmarking").await;
    edit(&desk);
    watch.ends().await.exits(4, words);
}

#[tokio::test]
async fn an_object_that_is_not_there() {
    let desk = Desk::with("passed");
    for words in [
        "get no",
        "describe no",
        "watch no",
        "history no",
        "logs no",
        "rerun no",
        "diff no",
    ] {
        let answer = desk.types(words).await;
        assert_eq!(answer.code, 2, "{words}");
        assert_eq!(
            answer.err,
            "kubectl perfval: there is no PerfValidation no in namespace perf: `kubectl perfval get -A` lists all\n"
        );
    }
}

#[test]
fn no_cluster_a_context_that_is_not_there_and_a_server_that_does_not_listen() {
    let file = of_address(closed());
    let path = file.path();
    for (words, kubeconfig, said) in [
        ("get", Path::new("/nonexistent"), "no cluster is configured"),
        ("get --context b", path, "no cluster is configured"),
        ("get", path, "the cluster does not answer"),
        ("size", path, "the cluster does not answer"),
        ("get --kubeconfig /nonexistent", path, "no cluster is configured"),
    ] {
        let answer = typed(words, kubeconfig);
        answer.exits(4, said);
        assert_eq!(answer.err.trim_end().lines().count(), 1, "{answer:?}");
    }
}

#[test]
fn a_name_that_no_object_can_have_needs_no_cluster() {
    let file = of_address(closed());
    for (words, said) in [
        (
            "watch ",
            "\"\" is not a valid name for a PerfValidation: write at most 63 lower-case letters",
        ),
        ("watch a%b", "\"a%b\" is not a valid name"),
        ("report A_B/1", "\"A_B\" is not a valid name"),
        ("get -n A_B", "write lower-case letters, digits and '-'"),
        ("logs a --operator-namespace ", "write lower-case letters, digits"),
    ] {
        typed(words, file.path()).exits(2, said);
    }
}

/// A server that takes a connection and never answers.
#[test]
fn ctrl_c_ends_a_command_that_waits_for_its_cluster() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let file = of_address(listener.local_addr().expect("an address"));
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || listener.incoming().try_for_each(|connection| tell.send(connection)));
    for words in ["get", "watch run", "run --preset h200 --name a"] {
        // Whoever runs the tests in the background has Ctrl-C ignored, and so would their children.
        let words = format!("--default-signal=INT {PROGRAM} {words}");
        let mut child = program("env", &words, file.path()).spawn().expect("it starts");
        let connection = told.recv_timeout(PATIENCE).expect("it asks");
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.expect("kill").success());
        let began = Instant::now();
        let ended = loop {
            match child.try_wait().expect("its end") {
                Some(ended) => break ended,
                None if began.elapsed() > PATIENCE => {
                    child.kill().expect("killed");
                    panic!("{words:?} does not end");
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!(ended.signal(), Some(2), "{words:?}: {ended}");
        drop(connection);
    }
}

#[tokio::test]
async fn a_reader_that_left_is_no_verdict() {
    for (words, code) in [
        ("watch run", 3),
        ("run --preset h200 --name mine", 3),
        ("run --preset h200 --name other --detach", 0),
        ("report run -o markdown", 1),
        ("describe run", 0),
    ] {
        let mut desk = Desk::with("failed");
        desk.nobody_reads = true;
        let answer = desk.types(words).await;
        assert_eq!((answer.code, answer.err.as_str()), (code, ""), "{words}");
    }
}

#[tokio::test]
async fn a_reader_that_left_hides_no_gap_and_no_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report");
    let mut desk = Desk::with("failed");
    desk.nobody_reads = true;
    for (words, code) in [
        ("doctor".to_owned(), 1),
        ("doctor -o json".to_owned(), 1),
        (format!("report run -d {}", report.display()), 1),
        ("calibrate -f ../../config/samples/gpu-h200.yaml".to_owned(), 3),
    ] {
        let answer = desk.types(&words).await;
        assert_eq!(answer.code, code, "{words}: {answer:?}");
    }
    std::fs::remove_file(report.join("summary.md")).expect("written");
    let answer = desk.types(&format!("verify {}", report.display())).await;
    assert_eq!((answer.code, answer.err.as_str()), (1, ""));
}

#[test]
fn a_reader_that_left_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = program(PROGRAM, "presets h200", Path::new("/nonexistent"))
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn();
    let output = child.expect("it starts").wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn judge_needs_no_cluster() {
    let judge = |export: &str| {
        let words = format!("judge {export} -f ../../config/samples/quick.yaml --gpus 1");
        typed(&words, Path::new("/nonexistent"))
    };
    let answer = judge("../verdict/tests/fixtures/aiperf-success.json");
    assert!(answer.out.starts_with("TRIAL "), "{answer:?}");
    assert!(matches!(answer.code, 0 | 1 | 3), "{answer:?}");
    assert_eq!(judge("no.json").code, 2);
}
