//! Saved trials: payloads of the runner, packed or not, and the ConfigMap of a run's results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_verdict::aiperf;
use perfval_verdict::frame::{Outcome, Payload, TrialRecord};
use perfval_verdict::workers::{Pace, Unit, WorkerSummary};
use rust_decimal::Decimal;
use serde_json::json;

use super::{Desk, judge, text};

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
        gpus: None,
        node_cpu: None,
        commit: None,
        abridged: BTreeSet::new(),
    };
    let payload = Payload {
        record,
        aiperf: None,
        workers: Vec::new(),
        gpus: Vec::new(),
        requests: None,
        node: None,
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
                json!({"placement": {"node": "n1", "allocation": "DRA", "gpus": 4, "nodeGPUs": 8}}).to_string(),
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
    let mut incomplete = results.clone();
    let trial = |(number, outcome): (i64, Option<&str>)| json!({"number": number, "outcome": outcome, "startedAt": "2026-09-20T14:13:40Z"});
    let outcomes = [Some("Miss"), Some("Miss"), Some("Invalid"), None];
    let trials: Vec<_> = (1..).zip(outcomes).map(trial).collect();
    incomplete["data"]["summary.json"] = json!({"trials": trials}).to_string().into();
    let answer = judge(&manifest, &[desk.file("missing.json", incomplete.to_string())], &[]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.complaint.contains("cannot be repeated: 2, 3"), "{answer:?}");
    incomplete["data"] = json!({});
    let answer = judge(&manifest, &[desk.file("unknown.json", incomplete.to_string())], &[]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.complaint.contains("no summary.json"), "{answer:?}");

    results["binaryData"] = json!({});
    let answer = judge(&manifest, &[desk.file("empty.json", results.to_string())], &[]);
    assert_eq!(answer.code, 2, "{answer:?}");
}
