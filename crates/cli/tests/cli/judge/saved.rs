//! Saved trials: payloads of the runner, packed or not, and the ConfigMap of a run's results.

use k8s_openapi::api::core::v1::ConfigMap;
use perfval_verdict::aiperf;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Outcome, Payload, TrialRecord};
use perfval_verdict::workers::{EngineWork, Pace, Unit, WorkerSummary};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::super::bundle::gzip;
use super::{CaseFolder, fixture, judge, text};

/// A payload as the runner logs it: four workers with these rates.
fn payload(export: &str, rates: [i64; 4]) -> String {
    let export = text(export);
    let worker = |(address, rate): (&str, i64)| WorkerSummary {
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
        engine: Some(EngineWork {
            tflops: None,
            gb_per_second: Some(Decimal::from(3000)),
        }),
        ..WorkerSummary::default()
    };
    let record = TrialRecord {
        nonce: "n".to_owned(),
        workers: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
            .into_iter()
            .zip(rates)
            .map(worker)
            .collect(),
        ..TrialRecord::new(Outcome::Report(Box::new(
            aiperf::parse(export.as_bytes()).expect("a report"),
        )))
    };
    serde_json::to_string(&Payload::new(record).with_export(&export).expect("JSON")).expect("JSON")
}

/// A payload of a trial that meets the gates.
fn good() -> String {
    payload("success", [20; 4])
}

/// A results ConfigMap as `kubectl get configmap -o json` prints it, with the same payload for each of these trials.
fn results(summary: &Value, payload: &str, numbers: &[i64]) -> Value {
    let packed = numbers
        .iter()
        .map(|number| (format!("trial-{number}.json.gz"), gzip(payload)));
    let results = ConfigMap {
        data: Some([("summary.json".to_owned(), summary.to_string())].into()),
        binary_data: Some(packed.collect()),
        ..ConfigMap::default()
    };
    let mut results = serde_json::to_value(&results).expect("JSON");
    results["kind"] = "ConfigMap".into();
    results["apiVersion"] = "v1".into();
    results
}

/// A summary of a run on 4 of 8 GPUs, with further fields.
fn summary(fields: &Value) -> Value {
    let mut summary = json!({"placement": {"node": "n1", "allocation": "DRA", "gpus": 4, "nodeGPUs": 8}});
    for (field, value) in fields.as_object().expect("fields") {
        summary[field] = value.clone();
    }
    summary
}

fn trial(number: i64, outcome: &str) -> Value {
    json!({"number": number, "outcome": outcome, "startedAt": "2026-09-20T14:13:40Z"})
}

/// A trial that lost a worker, as only its pod showed.
fn trial_with_loss(number: i64, outcome: &str, cause: Cause, loss: &str) -> Value {
    let mut trial = trial(number, outcome);
    trial["causes"] = json!([cause.as_str()]);
    trial["workerLoss"] = loss.into();
    trial
}

#[test]
fn saved_trials_are_judged_with_what_the_workers_did() {
    let folder = CaseFolder::new();
    let manifest = folder.manifest(&json!({}));
    let payload = payload("slow-worker-least-loaded", [20, 2, 20, 20]);
    let mut results = results(&summary(&json!({"trials": [trial(1, "Miss")]})), &payload, &[1]);
    for file in [
        folder.file("trial-1.json", &payload),
        folder.file("trial-1.json.gz", gzip(&payload).0),
        folder.file("results.json", results.to_string()),
    ] {
        let answer = judge(&manifest, std::slice::from_ref(&file), &[]);
        assert_eq!(answer.code, 1, "{}: {answer:?}", file.display());
        for words in ["WorkerStall", "10.0.0.2", "Failed GatesMissed"] {
            answer.prints(words);
        }
    }

    let mut incomplete = results.clone();
    incomplete["data"]["omitted.txt"] = "trial 2: 900000 bytes packed".into();
    let answer = judge(
        &manifest,
        &[folder.file("incomplete.json", incomplete.to_string())],
        &[],
    );
    answer.exits(2, "trial 2");
    let mut incomplete = results.clone();
    let mut open = trial(4, "Pass");
    open["outcome"] = Value::Null;
    let trials = json!([trial(1, "Miss"), trial(2, "Miss"), trial(3, "Invalid"), open]);
    incomplete["data"]["summary.json"] = json!({ "trials": trials }).to_string().into();
    let answer = judge(&manifest, &[folder.file("missing.json", incomplete.to_string())], &[]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.err.ends_with("cannot be repeated: 2\n"), "{answer:?}");
    incomplete["data"] = json!({});
    let answer = judge(&manifest, &[folder.file("unknown.json", incomplete.to_string())], &[]);
    answer.exits(2, "no summary.json");

    results["binaryData"] = json!({});
    let answer = judge(&manifest, &[folder.file("empty.json", results.to_string())], &[]);
    assert_eq!(answer.code, 2, "{answer:?}");
}

/// Each of these runs was judged by more than the measurements of its trials.
#[test]
fn a_saved_run_gets_the_verdict_of_the_operator() {
    let folder = CaseFolder::new();
    let good = good();
    let single = json!({});
    let sequential = json!({"trials": {"rule": "Sequential"}});
    let bandwidth = json!({"gates": [
        {"name": "bandwidth", "metric": "MemoryBandwidthPercent", "operator": ">=", "threshold": "50"},
    ]});
    let placement = |field: &str, value: Value| {
        let mut placement = json!({"node": "n1", "allocation": "DRA", "gpus": 7, "nodeGPUs": 7});
        placement[field] = value;
        placement
    };
    let missing = json!({
        "placement": placement("expectedGPUs", json!(8)), "plan": {"deviceIds": [], "expectedBy": "Spec"},
        "trials": [trial(1, "Pass")],
    });
    let known_product = json!({"placement": placement("product", json!("NVIDIA H200")), "trials": [trial(1, "Pass")]});
    let after_a_crash = |number| {
        let mut trial = trial(number, "Pass");
        trial["workerLoss"] = "Crashed".into();
        trial
    };
    let crashed = [Cause::WorkerCrashed.finding("worker w0 restarted (before the trial)")];
    let between = json!({"trials": [trial(1, "Pass"), after_a_crash(2)], "diagnosis": crashed});
    let undecided = json!({"trials": [after_a_crash(1)], "diagnosis": crashed});
    let later = |cause, loss| {
        let first = trial_with_loss(1, "Invalid", cause, loss);
        json!({"trials": [first, trial(2, "Pass"), trial(3, "Pass")]})
    };
    let lost = json!({"trials": [trial(1, "Pass"), trial(2, "Invalid"), trial(3, "Pass")]});
    let cases: [(&Value, &Value, &[i64], u8, &str); 7] = [
        (&single, &missing, &[1], 1, "Failed GPUsMissing: n1 has 7 of 8 GPUs"),
        (&bandwidth, &known_product, &[1], 0, "Passed GatesMet"),
        (
            &sequential,
            &between,
            &[1, 2],
            1,
            "Failed WorkerCrashed: worker w0 restarted (before the trial)",
        ),
        (
            &sequential,
            &undecided,
            &[1],
            1,
            "1 trial was saved, and the rule Sequential (max 8)",
        ),
        (
            &sequential,
            &later(Cause::WorkerCrashed, "Crashed"),
            &[1, 2, 3],
            1,
            "Failed WorkerCrashed",
        ),
        (
            &sequential,
            &later(Cause::WorkerRestarted, "Removed"),
            &[1, 2, 3],
            3,
            "Inconclusive WorkerRestarted",
        ),
        (
            &sequential,
            &lost,
            &[1, 3],
            0,
            "results.json: trial 2 left no measurement",
        ),
    ];
    for (spec, fields, payloads, code, words) in cases {
        let results = results(&summary(fields), &good, payloads);
        let file = folder.file("results.json", results.to_string());
        let answer = judge(&folder.manifest(spec), &[file], &[]);
        assert_eq!(answer.code, code, "{fields}: {answer:?}");
        assert!(answer.out.contains(words), "{fields}: no {words:?} in {}", answer.out);
    }
}

#[test]
fn a_saved_run_is_judged_with_the_gpus_of_its_workers() {
    let folder = CaseFolder::new();
    let mut payload: Value = serde_json::from_str(&good()).expect("JSON");
    let broken = json!({"uuid": "GPU-b", "index": 1, "readings": 60, "doubleBitErrors": {"value": 2, "at": 5}});
    payload["record"]["gpus"] = json!({"pages": 60, "gpus": [broken]});
    let worker = json!({
        "pod": "worker-b", "uid": "b", "restarts": 0, "address": "10.0.0.2", "devices": ["n1/gpu-1"],
    });
    let fields = json!({
        "plan": {"deviceIds": [{"pool": "n1", "name": "gpu-1", "uuid": "GPU-b"}]},
        "trials": [trial(1, "Pass")],
        "workerPods": [worker],
    });
    let results = results(&summary(&fields), &payload.to_string(), &[1]);
    let file = folder.file("results.json", results.to_string());
    let answer = judge(&folder.manifest(&json!({})), &[file], &[]);
    let words = "worker worker-b (GPU 1, GPU-b): 2 double-bit ECC errors in second 5";
    assert!(answer.out.contains(words), "no {words:?} in {answer:?}");
}

#[test]
fn results_that_do_not_decide_alone_are_refused() {
    let folder = CaseFolder::new();
    let gates = json!([
        {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500"},
        {"name": "own-past", "metric": "OwnPastPercent", "operator": ">=", "threshold": "90"},
    ]);
    let own_past = folder.path().join("own-past.yaml");
    std::fs::rename(folder.manifest(&json!({ "gates": gates })), &own_past).expect("renamed");
    let plain = folder.manifest(&json!({}));

    let good = good();
    let trials = json!([trial(1, "Pass")]);
    let compared = |observed: Value| {
        let gate = json!({"name": "own-past", "observed": observed, "effective": "90", "result": "Missed"});
        summary(&json!({ "trials": trials, "gates": [gate] }))
    };
    let file = |name: &str, results: Value| folder.file(name, results.to_string());
    let run = file("run.json", results(&compared(Value::Null), &good, &[1]));
    let reference = file("reference.json", results(&compared(json!("80")), &good, &[1]));
    let unlisted = file("unlisted.json", results(&compared(Value::Null), &good, &[1, 2]));
    let broken = file("broken.json", results(&compared(Value::Null), "{", &[1]));
    let refused: [(_, Vec<_>, &[&str], &str); 5] = [
        (
            &plain,
            vec![run.clone(), fixture("success")],
            &[],
            "give it without other files",
        ),
        (&plain, vec![run.clone()], &["--gpus", "2"], "its run used 4 of 8 GPUs"),
        (&plain, vec![unlisted], &[], "no outcome of trial 2"),
        (&plain, vec![broken], &[], "trial-1.json.gz cannot be read"),
        (
            &own_past,
            vec![reference],
            &[],
            "compared gate own-past with earlier runs",
        ),
    ];
    for (manifest, files, flags, words) in refused {
        let answer = judge(manifest, &files, flags);
        answer.exits(2, words);
    }
    let accepted: [(_, &[&str]); 2] = [(&plain, &["--gpus", "4", "--node-gpus", "8"]), (&own_past, &[])];
    for (manifest, flags) in accepted {
        let answer = judge(manifest, std::slice::from_ref(&run), flags);
        assert_eq!(answer.code, 0, "{answer:?}");
    }
}
