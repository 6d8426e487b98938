//! Times of single requests that the runner hands over from AIPerf's record.

use std::fs;

use perfval_verdict::frame::{Outcome, Payload};
use perfval_verdict::requests::RequestTimes;

use crate::rig::{Rig, fixture};

/// Copies a good export, and the record that a test wrote.
const BOTH: &str = r#"cp "$EXPORT" "$DIR"/profile_export_aiperf.json; cp "$DIR"/record "$DIR"/profile_export.jsonl"#;

fn measure(script: &str, record: &str) -> Payload {
    let rig = Rig::new(script);
    fs::write(rig.dir().join("record"), record).expect("written");
    rig.run(&[]).payload()
}

/// The recorded lines again and again, each time a second later.
fn long(times: i64) -> String {
    let recorded = fixture("aiperf-records.jsonl");
    let began = |line: &str| {
        line.split("\"request_start_ns\": ")
            .nth(1)?
            .split(',')
            .next()?
            .parse::<i64>()
            .ok()
    };
    let later = |line: &str, seconds: i64| {
        let then = began(line).expect("a start");
        line.replace(&then.to_string(), &(then + seconds * 1_000_000_000).to_string()) + "\n"
    };
    (0..times)
        .flat_map(|seconds| {
            recorded
                .lines()
                .map(move |line| later(line, seconds))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn times_of_single_requests_equal_those_read_from_the_export() {
    let record = long(90);
    let payload = measure(BOTH, &record);
    assert!(matches!(payload.record.outcome, Outcome::Report(_)));
    let read = RequestTimes::read(record.as_bytes()).expect("read");
    assert_eq!((read.count, read.unread), (180, 0), "two of each four failed");
    assert!(read.request_latency.over_time.len() > 90, "{read:?}");
    assert_eq!(payload.requests, Some(read));
}

#[test]
fn a_record_that_is_cut_or_no_record_costs_the_trial_nothing() {
    let whole = fixture("aiperf-records.jsonl");
    let cut = measure(BOTH, &whole[..whole.len() - 200]);
    assert_eq!(cut.requests.map(|times| (times.count, times.unread)), Some((2, 1)));
    for garbage in ["", "\u{0}\n\n\n", "[1, 2]\n{}\n"] {
        let payload = measure(BOTH, garbage);
        assert!(matches!(payload.record.outcome, Outcome::Report(_)), "{garbage:?}");
        assert_eq!(payload.requests, None, "{garbage:?}");
    }
    let folder = r#"cp "$EXPORT" "$DIR"/profile_export_aiperf.json; mkdir "$DIR"/profile_export.jsonl"#;
    let payload = measure(folder, "");
    assert!(matches!(payload.record.outcome, Outcome::Report(_)));
    assert_eq!(payload.requests, None);
}

#[test]
fn a_trial_that_was_ended_keeps_the_times_of_its_requests() {
    let payload = measure(r#"cp "$DIR"/record "$DIR"/profile_export.jsonl; kill -9 $$"#, &long(2));
    assert!(matches!(payload.record.outcome, Outcome::Failure(_)));
    assert_eq!(payload.requests.map(|times| times.count), Some(4));
}
