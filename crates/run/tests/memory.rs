//! What it takes to save a run of twenty trials, in a process of its own: the operator's container has 256 MiB.

use std::collections::BTreeMap;
use std::iter::repeat_n;

use perfval_api::{PerfValidation, Reason, Verdict, Why};
use perfval_run::build::PackedTrial;
use perfval_run::secret::Redactor;
use perfval_run::{Run, Settings, build};
use perfval_testkit::memory::Growth;
use perfval_testkit::random::random_numbers;
use perfval_testkit::trial;
use perfval_verdict::frame::{self, FRAME_BYTES, Outcome, Payload};
use serde_json::json;

/// A quarter of what the container has; the rest is for everything else that the operator holds.
const MOST: u64 = 64 << 20;
/// The largest export that the runner prints.
const EXPORT: usize = FRAME_BYTES - 100_000;
/// The rest of the log.
const OUTPUT: usize = 4 << 20;

/// A log with an export of which a quarter hardly packs, so that a trial just fits, behind AIPerf's output.
fn log(number: u64) -> String {
    let mut random = random_numbers(number);
    let noise = (0..EXPORT / 4).map(|_| char::from(b'0' + u8::try_from(random() >> 58).expect("six bits") % 64));
    let noise: String = noise
        .filter(|c| *c != '\\')
        .chain(repeat_n('x', EXPORT / 4 * 3))
        .collect();
    let outcome = Outcome::Report(Box::new(trial::report(|recorded| recorded, false)));
    let record = trial::record(format!("n{number}"), outcome, []);
    let export = json!({ "text": noise }).to_string();
    let payload = Payload::new(record).with_export(&export).expect("JSON");
    let line = "INFO another line of AIPerf\n";
    line.repeat(OUTPUT / line.len()) + &frame::frame(&payload).expect("a frame")
}

#[test]
fn twenty_trials_of_four_megabytes_are_packed_in_a_quarter_of_the_operators_memory() {
    let object: PerfValidation = serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": "h100-baseline", "namespace": "perf", "uid": "00000000-0000-4000-8000-000000000000"},
        "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}},
    }))
    .expect("an object");
    let settings = Settings::default();
    let run = Run::new(&object, &settings);
    let growth = Growth::begin();

    // As they are read: log by log.
    let trials = (1..=20).map(|number: u64| {
        let packed =
            PackedTrial::from_log(&log(number), &format!("n{number}"), &Redactor::default()).expect("a record");
        (i64::try_from(number).expect("small"), packed)
    });
    let trials: BTreeMap<i64, PackedTrial> = trials.collect();
    let why = Why::new(Reason::GatesMet, "fast");
    let results = build::results(&run, Verdict::Passed, &why, &trials, &BTreeMap::new());
    let omitted = results.data.as_ref().and_then(|data| data.get("omitted.txt"));
    let saved = results.binary_data.as_ref().expect("trials").len();
    assert!(saved > 1, "{saved}");
    assert_eq!(saved + omitted.expect("some are").lines().count(), 20);
    let taken = growth.most();
    println!("{} MiB for 20 trials of {} MiB", taken >> 20, (EXPORT + OUTPUT) >> 20);
    assert!(taken < MOST, "{taken} bytes");
}
