//! The frontend's own times, from AIPerf's export of its metrics.

use perfval_verdict::aiperf::{FrontendTimes, frontend_times};
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// A healthy trial of the rig (Dynamo 1.4.2, AIPerf 0.13.0).
const EXPORT: &[u8] = include_bytes!("fixtures/server-metrics.json");
const LOOP: &str = "dynamo_frontend_event_loop_delay_seconds";

fn ms(text: &str) -> Decimal {
    text.parse().expect("a number")
}

#[test]
fn the_measured_phase_counts_and_not_the_warm_up() {
    let expected = FrontendTimes {
        dispatch_wait_ms: Some(ms("0.019")),
        request_ms: Some(ms("1092.721")),
        loop_delay_ms: Some(ms("1.327")),
    };
    assert_eq!(frontend_times(EXPORT).ok(), Some(expected));
}

#[test]
fn unreported_and_impossible_times_are_absent() {
    let with = |average: Value| {
        let mut export: Value = serde_json::from_slice(EXPORT).expect("JSON");
        export["metrics"][LOOP]["series"][0]["stats"]["avg"] = average;
        frontend_times(export.to_string().as_bytes()).map(|times| times.loop_delay_ms)
    };
    assert_eq!(with(json!(0.072_396)).ok(), Some(Some(ms("72.396"))));
    assert_eq!(with(json!(-1)).ok(), Some(None));
    assert_eq!(with(Value::Null).ok(), Some(None));
    let mut older: Value = serde_json::from_slice(EXPORT).expect("JSON");
    older["metrics"].as_object_mut().expect("metrics").remove(LOOP);
    let older = frontend_times(older.to_string().as_bytes()).expect("an older frontend");
    assert_eq!((older.loop_delay_ms, older.request_ms), (None, Some(ms("1092.721"))));
}
