//! What it takes to save a run of twenty trials, in a process of its own: the operator's container has 128 MiB.

#[path = "build/minute.rs"]
mod minute;

use std::collections::BTreeMap;

use perfval_api::{PerfValidation, Reason, Verdict, Why};
use perfval_run::{Run, Settings, build};
use perfval_testkit::memory::Growth;
use perfval_verdict::frame::{self, Framed, Payload};
use serde_json::json;

/// Half of what the container has; the rest is for everything else that the operator holds.
const MOST: u64 = 64 << 20;

#[test]
fn twenty_trials_are_saved_in_half_of_the_operators_memory() {
    let object: PerfValidation = serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": "h100-baseline", "namespace": "perf", "uid": "00000000-0000-4000-8000-000000000000"},
        "spec": {"model": {"name": "m"}, "workload": {"image": "i:1.4.2"}},
    }))
    .expect("an object");
    let settings = Settings::default();
    let run = Run::new(&object, &settings);
    drop(minute::minute(0)); // the recording is unpacked once
    let growth = Growth::begin();

    // As they are read: log by log, each with a megabyte of AIPerf's output before its record.
    let logs = (1..=20).map(|trial| {
        let mut payload: Payload = serde_json::from_str(&minute::minute(trial)).expect("a payload");
        payload.record.nonce = format!("n{trial}");
        let log = "INFO another line of AIPerf\n".repeat(40_000) + &frame::frame(&payload).expect("a frame");
        (trial, frame::without_output(log, &format!("n{trial}")))
    });
    let logs: BTreeMap<i64, String> = logs.collect();
    let held: usize = logs.values().map(String::len).sum();
    assert!(held < 20 << 20, "{held} bytes of logs are held");
    let payloads = logs
        .iter()
        .map(|(trial, log)| match frame::find(log, &format!("n{trial}")) {
            Framed::Complete(payload) => (*trial, serde_json::to_string(&payload).expect("JSON")),
            other => panic!("{other:?}"),
        });
    let payloads: BTreeMap<i64, String> = payloads.collect();
    let why = Why::new(Reason::GatesMet, "fast");
    let results = build::results(&run, Verdict::Passed, &why, &payloads, &BTreeMap::new());
    assert_eq!(results.binary_data.as_ref().expect("trials").len(), 20);
    let taken = growth.most();
    println!("{} MiB for {} MiB of records", taken >> 20, held >> 20);
    assert!(taken < MOST, "{taken} bytes");
}
