//! Times of single requests: the parts of AIPerf's record that are kept, and the bounds of those in a result.

use perfval_verdict::frame::{Framed, Payload, find, frame};
use perfval_verdict::requests::{CdfPoint, Distribution, Quantiles, RequestTimes};
use perfval_verdict::saved::recorded;
use proptest::prelude::*;
use serde_json::{Value, json};

const SECOND: i64 = 1_000_000_000;
/// Begin of the requests of these tests (ns): a whole second.
const ZERO: i64 = 1_795_167_922_000_000_000;

fn line(phase: &str, began_ns: i64, latency: f64) -> String {
    format!(
        r#"{{"metadata": {{"benchmark_phase": "{phase}", "request_start_ns": {began_ns}}}, "metrics": {{"request_latency": {{"value": {latency}, "unit": "ms"}}}}}}"#
    ) + "\n"
}

fn measured(began_ns: i64, latency: f64) -> String {
    line("profiling", ZERO + began_ns, latency)
}

fn read(text: &str) -> RequestTimes {
    RequestTimes::read(text.as_bytes()).expect("read")
}

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a recording")
}

/// Within the width of a bucket, and of a rounded microsecond.
fn is_about(us: i64, ms: f64) -> bool {
    let us = f64::from(i32::try_from(us).expect("half an hour at most"));
    (us - ms * 1000.0).abs() <= 0.51 + ms * 1000.0 * 0.0006
}

#[test]
fn a_stall_of_one_second_is_its_own_point_and_a_second_without_requests_has_none() {
    let failed = measured(0, 9000.0).replace("\"metrics\"", "\"error\": {\"code\": 500}, \"metrics\"");
    let mut text = line("warmup", ZERO - SECOND, 9000.0) + &failed;
    for second in [0, 1, 3] {
        for request in 1..=100 {
            let slow = if second == 1 { 1000 } else { 0 };
            text += &measured(
                i64::from(second) * SECOND + i64::from(request),
                f64::from(request + slow),
            );
        }
    }
    let times = read(&text);
    assert_eq!((times.count, times.unread, times.seconds, times.every), (300, 0, 3, 1));
    let points = &times.request_latency.over_time;
    assert_eq!(points.iter().map(|point| point.from).collect::<Vec<_>>(), [0, 1, 3]);
    for (point, more) in points.iter().zip([0.0, 1000.0, 0.0]) {
        for (us, ms) in [(point.median, 50.0), (point.p90, 90.0), (point.p99, 99.0)] {
            assert!(is_about(us, ms + more), "{point:?}");
        }
    }
    let at_most = |per_mille| times.request_latency.at_most(per_mille).expect("a point");
    for (per_mille, ms) in [(0, 1.0), (500, 75.0), (990, 1097.0), (1000, 1100.0)] {
        assert!(is_about(at_most(per_mille), ms), "{per_mille}: {}", at_most(per_mille));
    }
    assert_eq!(times.time_to_first_token, Distribution::default(), "no request has it");
}

#[test]
fn records_of_aiperf_are_read_and_cut_ones_counted() {
    let text =
        fixture("aiperf-records.jsonl") + "{\"metadata\": {\n\n{\"metadata\": {\"benchmark_phase\": 7}}\n\u{0}\n";
    let times = read(&text);
    assert_eq!((times.count, times.unread), (2, 3), "two of four failed");
    let first = &times.time_to_first_token;
    assert_eq!((first.at_most(500), first.at_most(1000)), (Some(36_291), Some(66_876)));
    let between = &times.inter_token_latency;
    assert_eq!((between.at_most(500), between.at_most(990)), (Some(6_699), Some(6_699)));
}

#[test]
fn a_day_has_no_more_points_than_two_minutes() {
    let lines = |seconds: i64| {
        (0..seconds)
            .map(|second| measured(second * SECOND, 20.0))
            .collect::<String>()
    };
    for (seconds, every) in [(120, 1), (121, 2), (240, 2), (1000, 16), (86_400, 1024)] {
        let times = read(&lines(seconds));
        assert_eq!((times.seconds, times.every), (seconds - 1, every), "{seconds} s");
        let points = &times.request_latency.over_time;
        assert!(
            (50..=120).contains(&points.len()),
            "{seconds} s: {} points",
            points.len()
        );
        assert!(points.windows(2).all(|pair| pair[0].from < pair[1].from), "{points:?}");
    }
}

#[test]
fn a_line_without_an_end_and_times_that_cannot_be_are_not_drawn() {
    let endless = "x".repeat(3 << 20);
    let wild = [-3.0, 1e300, 1e12].map(|latency| measured(0, latency)).concat();
    let times = read(&(endless + "\n" + &wild + &measured(0, 20.0) + "{\"metadata\""));
    assert_eq!((times.count, times.unread), (1, 2));
    assert_eq!(times.request_latency.at_most(1000), Some(20_000));

    let text = [i64::MIN, -1, 0, i64::MAX]
        .map(|began| line("profiling", began, 20.0))
        .concat();
    let times = read(&text);
    assert_eq!(times.count, 4);
    assert!(plausible(&times), "a clock that jumps is bounded: {times:?}");
    assert_eq!(
        read(""),
        RequestTimes {
            every: 1,
            ..RequestTimes::default()
        }
    );
}

fn plausible(times: &RequestTimes) -> bool {
    let mut payload = payload();
    payload["requests"] = serde_json::to_value(times).expect("JSON");
    recorded(payload.to_string().as_bytes()).requests.as_ref() == Some(times)
}

fn payload() -> Value {
    json!({"record": {"nonce": "n", "exitCode": 0, "outcome": {"failure": {"kind": "Killed", "signal": 9}}}})
}

#[test]
fn a_payload_without_them_and_one_with_others_are_read_alike() {
    let times = read(&measured(0, 20.0));
    assert!(plausible(&times));
    assert_eq!(
        recorded(payload().to_string().as_bytes()).requests,
        None,
        "an older one"
    );
    let shape = serde_json::to_value(&times).expect("JSON");
    let with = |path: &str, value: Value| {
        let mut requests = shape.clone();
        *requests.pointer_mut(path).expect(path) = value;
        requests
    };
    let points: Vec<Value> = (0..2000).map(|from| json!([from, 1, 1, 1])).collect();
    for lie in [
        json!("of another version"),
        json!({"count": 1}),
        with("/every", json!(0)),
        with("/seconds", json!(i64::MAX)),
        with("/requestLatency/overTime", json!(points)),
        with("/requestLatency/overTime/0/0", json!(-1)),
        with("/requestLatency/overTime/0/3", json!(i64::MAX)),
        with("/requestLatency/overTime/0", json!([0, 1])),
        with("/requestLatency/cdf/0/0", json!(1001)),
        with("/requestLatency/cdf/0/1", json!(30_000_000)),
    ] {
        let mut payload = payload();
        payload["requests"] = lie.clone();
        let read = recorded(payload.to_string().as_bytes());
        assert_eq!((read.requests, read.record.exit_code), (None, 0), "{lie}");
        assert_eq!(read.record.nonce, "n", "the trial itself is believed: {lie}");
    }
}

#[test]
fn they_travel_in_the_log() {
    let mut sent: Payload = serde_json::from_value(payload()).expect("a payload");
    sent.requests = Some(read(&measured(0, 20.0)));
    let log = frame(&sent).expect("a frame");
    let Framed::Complete(got) = find(&log, "n") else {
        panic!("{log}")
    };
    assert_eq!(got.requests, sent.requests);
    // An older operator reads a newer runner: it passes over what it does not know.
    assert!(log.contains(r#""requests":{"count":1,"seconds":0,"every":1,"#), "{log}");
    let points = &got.requests.expect("some").request_latency;
    assert_eq!(
        points.over_time,
        [Quantiles {
            from: 0,
            median: 20_000,
            p90: 20_000,
            p99: 20_000
        }]
    );
    assert!(points.cdf.contains(&CdfPoint(999, 20_000)));
}

proptest! {
    #[test]
    fn quantiles_do_not_depend_on_the_order_of_lines(
        mut requests in prop::collection::vec((0..400 * SECOND, 1..2_000_000_i32), 1..300),
    ) {
        let text = |requests: &[(i64, i32)]| -> String {
            requests.iter().map(|(began, us)| measured(*began, f64::from(*us) / 1000.0)).collect()
        };
        let times = read(&text(&requests));
        requests.reverse();
        prop_assert_eq!(&times, &read(&text(&requests)));

        let mut sorted: Vec<i32> = requests.iter().map(|(_, us)| *us).collect();
        sorted.sort_unstable();
        for CdfPoint(per_mille, us) in &times.request_latency.cdf {
            let rank = (sorted.len() * usize::try_from(*per_mille).unwrap()).div_ceil(1000).max(1);
            prop_assert!(is_about(*us, f64::from(sorted[rank - 1]) / 1000.0), "{} {} {:?}", per_mille, us, sorted);
        }
        prop_assert!(plausible(&times));
    }
}
