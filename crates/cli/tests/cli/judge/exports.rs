//! Files that hold no trial: none of them ever passes. `crates/verdict/tests/report_malformed.rs` has all faults of an export.

use serde_json::json;

use super::{CaseFolder, judge, text};

#[test]
fn no_broken_file_ever_passes() {
    let folder = CaseFolder::new();
    let whole = text("success");
    let huge = folder.file("huge", "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&huge)
        .and_then(|file| file.set_len(100 << 20))
        .expect("100 MB");
    let mut padded = whole.clone().into_bytes();
    padded.resize(5 << 20, b' ');
    let broken = [
        (
            "truncated",
            whole.as_bytes()[..whole.len() / 2].to_vec(),
            "not valid JSON",
        ),
        ("broken gzip", vec![0x1f, 0x8b, 8, 0, 0], "gzip is broken"),
        (
            "an object with a strange record",
            b"{\"kind\": \"Pod\", \"record\": 5}".to_vec(),
            "aiperf_version",
        ),
        (
            "a payload that is none",
            b"{\"record\": {\"nonce\": 5}}".to_vec(),
            "payload",
        ),
        ("5 MB", padded, "larger than"),
    ];
    let broken = broken.map(|(name, content, words)| (name, folder.file(name, content), words));
    for (name, file, words) in broken.into_iter().chain([("100 MB", huge, "larger than")]) {
        let answer = judge(&folder.manifest(&json!({})), &[file], &["-o", "json"]);
        assert_eq!(answer.code, 4, "{name}: {answer:?}");
        let report = answer.json();
        assert_eq!(report["trials"][0]["outcome"], "Invalid", "{name}: {report:#}");
        let remedy = report["trials"][0]["findings"][0]["remedy"].as_str();
        assert!(
            remedy.is_some_and(|remedy| remedy.starts_with("download the export again")),
            "{name}: {report:#}"
        );
        let evidence = report["trials"][0]["findings"][0]["evidence"]
            .as_str()
            .unwrap_or_default();
        assert!(evidence.contains(words), "{name}: no {words:?} in {evidence:?}");
    }
}

#[test]
fn a_broken_export_in_a_whole_payload_is_a_case_for_the_pods_log() {
    let folder = CaseFolder::new();
    let failure = json!({"failure": {"kind": "Malformed", "message": "EOF"}});
    let payload = json!({"record": {"nonce": "n", "exitCode": 1, "outcome": failure}});
    let file = folder.file("payload", payload.to_string());
    let report = judge(&folder.manifest(&json!({})), &[file], &["-o", "json"]).json();
    let remedy = report["trials"][0]["findings"][0]["remedy"]
        .as_str()
        .unwrap_or_default();
    assert!(remedy.starts_with("see the log"), "{report:#}");
}

#[test]
fn the_reason_of_a_broken_file_is_there_once() {
    let folder = CaseFolder::new();
    let file = folder.file("truncated", &text("success")[..100]);
    let answer = judge(&folder.manifest(&json!({})), &[file], &[]);
    let last = answer.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("Error BenchmarkFailed: "), "{answer:?}");
    assert_eq!(last.matches("BenchmarkFailed").count(), 1, "{answer:?}");
}

/// The benchmark is not to blame for a file that somebody named by mistake.
#[test]
fn a_file_of_another_kind_is_bad_input() {
    let folder = CaseFolder::new();
    for (name, content) in [
        ("a manifest", "kind: PerfValidation\nspec: {}\n"),
        ("a Pod", "{\"kind\": \"Pod\", \"metadata\": {}}"),
        ("an empty file", ""),
        ("a list", "[]"),
    ] {
        let answer = judge(&folder.manifest(&json!({})), &[folder.file(name, content)], &[]);
        answer.exits(2, "holds no trial");
    }
}
