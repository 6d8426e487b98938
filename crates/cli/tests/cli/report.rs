//! Reports of runs, and of what AIPerf wrote.

use perfval_testkit::api_server::Fault;
use serde_json::Value;

use super::desk::Desk;
use super::socket::{PROGRAM, kubeconfig, program};

#[tokio::test]
async fn a_report_is_written_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("report");
    let desk = Desk::with("failed");
    let answer = desk
        .types(&format!("report run --directory {}", directory.display()))
        .await;
    assert_eq!(answer.code, 1, "its verdict: {}", answer.err);
    let mut written: Vec<_> = std::fs::read_dir(&directory)
        .expect("written")
        .collect::<Result<_, _>>()
        .expect("listed");
    written.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = written
        .iter()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    let expected = [
        "ctrf-report.json",
        "junit.xml",
        "metrics.openmetrics.txt",
        "report.html",
        "statement.intoto.json",
        "summary.md",
    ];
    assert_eq!(names, expected);
    let junit = desk.types("report run -o junit").await.out;
    assert_eq!(
        junit,
        std::fs::read_to_string(directory.join("junit.xml")).expect("written")
    );
    let markdown = desk.types("report run -o markdown").await.out;
    assert!(markdown.contains("Failed"), "{markdown}");
    let earlier = desk.types("report run/7 -o html").await;
    earlier.exits(2, "run 7 of run has no saved results");
    let exports = "../verdict/tests/fixtures/aiperf-success.json -f ../../config/samples/quick.yaml --gpus 1 -o ctrf";
    let exports = desk.types(&format!("report {exports}")).await;
    let ctrf: Value = serde_json::from_str(&exports.out).unwrap_or_else(|error| panic!("{error}: {exports:?}"));
    assert!(ctrf["results"]["tests"].is_array(), "{ctrf}");
}

#[tokio::test]
async fn the_requests_that_aiperf_recorded_beside_its_export_are_in_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = folder.path().join("profile_export_aiperf.json");
    std::fs::copy("../verdict/tests/fixtures/aiperf-success.json", &export).expect("copied");
    let report = format!(
        "report {} -f ../../config/samples/quick.yaml --gpus 1 -o html",
        export.display()
    );
    let desk = Desk::new();
    let title = "began in each second of the measured phase";
    let without = desk.types(&report).await;
    without.prints("</html>");
    assert!(!without.out.contains(title), "{}", without.out);
    let records = folder.path().join("profile_export.jsonl");
    std::fs::copy("../verdict/tests/fixtures/aiperf-records.jsonl", &records).expect("copied");
    let with = desk.types(&report).await;
    with.prints(title);
    assert_eq!(with.code, without.code, "it judges nothing");
}

#[tokio::test]
async fn a_report_without_a_run_is_refused_with_a_remedy() {
    let desk = Desk::with("failed");
    let export = "../verdict/tests/fixtures/aiperf-success.json";
    let folder = tempfile::tempdir().expect("a folder");
    // The same export in another layout.
    let compact = folder.path().join("compact.json");
    let lines = std::fs::read_to_string(export).expect("an export");
    std::fs::write(&compact, lines.lines().map(str::trim).collect::<String>()).expect("written");
    let compact = compact.display();
    for (words, said) in [
        (
            format!("report {export}"),
            "is a file: give the manifest whose gates judge it, with -f",
        ),
        ("report run other".to_owned(), "a report is of one run"),
        (
            "report -f ../../config/samples/quick.yaml".to_owned(),
            "give AIPerf's exports too",
        ),
        (
            "report ../../config/samples/quick.yaml -f ../../config/samples/quick.yaml --gpus 1".to_owned(),
            "holds no trial",
        ),
        (
            format!("report {export} {export} -f ../../config/samples/quick.yaml --gpus 1"),
            "hold the same trial",
        ),
        (
            format!("report {export} {compact} -f ../../config/samples/quick.yaml --gpus 1"),
            "hold the same trial",
        ),
        (
            format!("report {export} -f ../../config/samples/quick.yaml --gpus 8 --node-gpus 2"),
            "--gpus 8 is more than --node-gpus 2",
        ),
        (
            format!("report {export} -f ../../config/samples/gpu-h200.yaml"),
            "scales with the GPUs in use: give --gpus",
        ),
    ] {
        let answer = desk.types(&words).await;
        answer.exits(2, said);
    }
}

#[test]
fn a_file_with_the_name_of_a_validation_hides_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("run"), "a file").expect("written");
    let desk = Desk::with("failed");
    let file = kubeconfig(&desk.server);
    let mut report = program(PROGRAM, "report run -o markdown", file.path());
    let output = report.current_dir(folder.path()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "its verdict: {output:?}");
}

#[tokio::test]
async fn a_run_without_a_report_leaves_no_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().display();
    let path = |name: &str| folder.path().join(name);
    let list = || -> Vec<_> {
        let files = std::fs::read_dir(folder.path()).expect("a folder");
        files
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .collect()
    };
    std::fs::write(path("notes.txt"), "mine").expect("written");
    let desk = Desk::with("failed");
    // It is no report, but has the name of one of its files.
    std::fs::write(path("summary.md"), "mine").expect("written");
    let run = format!("run -f absent.yaml --report {directory}");
    desk.types(&run).await.exits(2, "absent.yaml");
    assert!(path("summary.md").exists());
    desk.server.fail(Fault::refuse("create", "perfvalidations", 503));
    for (manifest, code, said) in [
        ("../../config/samples/quick.yaml", 4, "the cluster answered 503"),
        ("absent.yaml", 2, "absent.yaml"),
    ] {
        let earlier = desk.types(&format!("report run --directory {directory}")).await;
        assert_eq!(earlier.code, 1, "its verdict: {}", earlier.err);
        let run = format!("run -f {manifest} --report {directory}");
        desk.types(&run).await.exits(code, said);
        assert_eq!(list(), ["notes.txt"], "{manifest}");
    }
    // A part of a report.
    let obstacle = path("ctrf-report.json");
    std::fs::create_dir(&obstacle).expect("made");
    let part = desk.types(&format!("report run --directory {directory}")).await;
    part.exits(2, "ctrf-report.json cannot be used");
    desk.types(&run).await.exits(2, "absent.yaml");
    std::fs::remove_dir(&obstacle).expect("removed");
    assert_eq!(list(), ["notes.txt"]);
}

#[tokio::test]
async fn the_report_of_a_run_that_is_not_over_is_no_pass() {
    let answer = Desk::with("benchmarking").types("report run -o markdown").await;
    assert_eq!(answer.code, 3, "{}", answer.err);
}

#[tokio::test]
async fn a_changed_or_missing_file_of_a_report_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("report");
    let desk = Desk::with("failed");
    let verify = format!("verify {}", directory.display());
    let answer = desk.types(&verify).await;
    answer.exits(2, "statement.intoto.json does not exist");

    desk.types(&format!("report run --directory {}", directory.display()))
        .await;
    let answer = desk.types(&verify).await;
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.prints(": Failed\n");
    assert_eq!(answer.out.matches("  unchanged  ").count(), 5, "{answer:?}");

    let junit = directory.join("junit.xml");
    let text = std::fs::read_to_string(&junit).expect("written");
    std::fs::write(&junit, text.replace("failure", "skipped")).expect("changed");
    std::fs::remove_file(directory.join("summary.md")).expect("removed");
    let answer = desk.types(&verify).await;
    assert_eq!(answer.code, 1, "{answer:?}");
    answer.prints("CHANGED    junit.xml");
    answer.prints("MISSING    summary.md");
    answer.prints("Write it again with `kubectl perfval report`.");
    assert_eq!(answer.out.matches("  unchanged  ").count(), 3, "{answer:?}");

    let statement = directory.join("statement.intoto.json");
    for (text, why) in [
        ("{}", "missing field"),
        ("no JSON", "expected"),
        (
            r#"{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://perfvalidation.dev/verdict/v1", "predicate": {},
                "subject": [{"name": "../../etc/passwd", "digest": {"sha256": ""}}]}"#,
            "is not the name of a file",
        ),
        (
            r#"{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1", "predicate": {}, "subject": []}"#,
            "its types are",
        ),
    ] {
        std::fs::write(&statement, text).expect("written");
        let answer = desk.types(&verify).await;
        answer.exits(2, why);
    }
}
