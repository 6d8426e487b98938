//! Exports that are broken: none of them ever passes.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Desk, judge, text};

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
            // That no answer had a token is a measurement.
            if metric == "output_token_throughput" && value == json!(0) {
                continue;
            }
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
