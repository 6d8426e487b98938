//! The operator reads the runner's record, even after losses on the way.

use std::collections::BTreeMap;

use perfval_api::{Metric, Statistic};
use perfval_verdict::aiperf::{ErrorKind, Measure, Report, parse};
use perfval_verdict::frame::{
    Failure, Framed, MESSAGE_BYTES, Outcome, Part, Payload, TrialRecord, find, find_message, frame, message,
};
use perfval_verdict::gpus::{GpuRecord, GpuSummary};
use perfval_verdict::workers::{Pace, Reading, Sample, Scrape, Unit, WorkerSeries, WorkerSummary};
use proptest::prelude::*;
use rust_decimal::Decimal;

const NONCE: &str = "1f2e3d4c-2";

fn export() -> String {
    let path = "tests/fixtures/aiperf-partial-dead-worker-round-robin.json";
    std::fs::read_to_string(path).expect("a fixture")
}

fn record(workers: usize) -> TrialRecord {
    let worker = |index| WorkerSummary {
        address: format!("10.244.100.{index}"),
        seconds: 280,
        samples: 300,
        served: 1234,
        peak_in_flight: 128,
        mean_in_flight: Decimal::new(12_345, 2),
        rate_per_second: Decimal::new(123_456, 3),
        seconds_per_request: Some(Decimal::new(1_234, 3)),
        pace: Some(Pace {
            unit: Unit::Tokens,
            mean: Decimal::new(123_456, 1),
            best: Decimal::new(234_567, 1),
        }),
        peak_waiting: Some(12),
        ..WorkerSummary::default()
    };
    TrialRecord {
        nonce: NONCE.to_owned(),
        workers: (0..workers).map(worker).collect(),
        scrape_errors: [("10.244.100.3: timeout: global".to_owned(), 7)].into(),
        ..TrialRecord::new(Outcome::Report(Box::new(parse(export().as_bytes()).expect("a report"))))
    }
}

fn failure(failure: Failure) -> TrialRecord {
    TrialRecord {
        exit_code: 1,
        outcome: Outcome::Failure(failure),
        ..record(0)
    }
}

fn payload(record: TrialRecord) -> Payload {
    let samples = vec![
        Sample(
            0,
            Scrape::Reading(Reading {
                in_flight: 32,
                started: 40,
                finished: 8,
                tokens: Some(900),
                ..Reading::default()
            }),
        ),
        Sample(1, Scrape::Nothing(perfval_verdict::workers::Silence::TimedOut)),
    ];
    Payload {
        workers: vec![WorkerSeries {
            address: "10.244.100.1".to_owned(),
            samples,
        }],
        ..Payload::new(record)
    }
}

fn report(record: &TrialRecord) -> &Report {
    match &record.outcome {
        Outcome::Report(report) => report,
        Outcome::Failure(failure) => panic!("a report, not {failure:?}"),
    }
}

fn complete<T: std::fmt::Debug>(found: Framed<T>) -> T {
    match found {
        Framed::Complete(found) => found,
        other => panic!("complete, not {other:?}"),
    }
}

const ITL_P95: Measure = Measure {
    metric: Metric::InterTokenLatency,
    statistic: Statistic::P95,
};

#[test]
fn a_small_record_travels_whole() {
    let mut small = record(1);
    if let Outcome::Report(report) = &mut small.outcome {
        report.metrics.retain(|metric, _| *metric == Metric::TimeToFirstToken);
    }
    let text = message(&small, &[]);
    assert!(text.len() <= MESSAGE_BYTES);
    assert_eq!(complete(find_message(&text, NONCE)), small);
}

#[test]
fn gated_numbers_stay_and_removed_parts_are_listed() {
    for (workers, gone) in [
        (1, vec![]),
        (6, vec![Part::Statistics]),
        (8, vec![Part::Statistics]),
        (12, vec![Part::Statistics, Part::ErrorTexts]),
        (64, vec![Part::Statistics, Part::ErrorTexts, Part::Workers]),
    ] {
        let whole = record(workers);
        let text = message(&whole, &[ITL_P95]);
        assert!(text.len() <= MESSAGE_BYTES, "{} bytes", text.len());
        let short = complete(find_message(&text, NONCE));
        assert_eq!(short.abridged, gone.into_iter().collect(), "{workers} workers: {text}");
        let (short, whole) = (report(&short), report(&whole));
        for (metric, statistic) in [
            (ITL_P95.metric, ITL_P95.statistic),
            (Metric::OutputTokenThroughput, Statistic::Avg),
            (Metric::TimeToFirstToken, Statistic::P99),
        ] {
            assert_eq!(short.value(metric, statistic), whole.value(metric, statistic));
            assert!(short.value(metric, statistic).is_some());
        }
        assert_eq!(short.error_percent(), whole.error_percent());
    }
}

/// The share of requests in time decides between two causes at nine of ten, so message and log must agree on it.
#[test]
fn the_ninetieth_percentile_of_a_gated_tail_stays() {
    let (whole, metric) = (record(8), Metric::InterTokenLatency);
    let p90 = |gated: &[Measure]| {
        report(&complete(find_message(&message(&whole, gated), NONCE))).value(metric, Statistic::P90)
    };
    assert!(report(&whole).value(metric, Statistic::P90).is_some());
    assert_eq!(p90(&[ITL_P95]), report(&whole).value(metric, Statistic::P90));
    assert_eq!(p90(&[]), None);
}

#[test]
fn the_gpus_go_before_the_texts_of_errors() {
    let gpu = |n: i64| GpuSummary {
        uuid: format!("GPU-10de2330-0000-4000-8000-{n:012}"),
        index: Some(n),
        readings: 60,
        sm_mhz: Some(1900),
        watts: Some(650),
        ..GpuSummary::default()
    };
    let with = |gpus: i64| TrialRecord {
        gpus: Some(GpuRecord {
            pages: 80,
            gpus: (0..gpus).map(gpu).collect(),
            ..GpuRecord::default()
        }),
        ..record(4)
    };
    for (gpus, gone) in [(4, vec![Part::Statistics]), (20, vec![Part::Statistics, Part::Gpus])] {
        let whole = with(gpus);
        let text = message(&whole, &[ITL_P95]);
        assert!(text.len() <= MESSAGE_BYTES, "{} bytes", text.len());
        let short = complete(find_message(&text, NONCE));
        assert_eq!(short.abridged, gone.into_iter().collect(), "{gpus} GPUs: {text}");
        assert_eq!(short.gpus.is_some(), gpus == 4);
        let log = frame(&payload(whole.clone())).expect("a frame");
        assert_eq!(complete(find(&log, NONCE)).record, whole, "the log holds all");
    }
}

/// The longest numbers that an export can hold, every one of them gated, and every text at its bound.
#[test]
fn the_largest_report_that_can_be_keeps_every_gate() {
    let longest: Decimal = "0.0000012345678901234567".parse().unwrap();
    let gated: Vec<Measure> = Metric::ALL
        .iter()
        .filter(|metric| metric.aiperf_tag().is_some())
        .flat_map(|&metric| {
            Statistic::ALL
                .iter()
                .map(move |&statistic| Measure { metric, statistic })
        })
        .filter(|m| !m.metric.is_rate() || m.statistic == Statistic::Avg)
        .collect();
    let mut metrics: BTreeMap<Metric, BTreeMap<Statistic, Decimal>> = BTreeMap::new();
    for measure in &gated {
        metrics
            .entry(measure.metric)
            .or_default()
            .insert(measure.statistic, longest);
    }
    let error = ErrorKind {
        code: Some(503),
        kind: "k".repeat(60),
        message: "\"".repeat(200),
        count: 1 << 40,
    };
    let mut largest = record(64);
    largest.outcome = Outcome::Report(Box::new(Report {
        aiperf_version: Some("v".repeat(40)),
        incomplete_reason: Some("\"".repeat(200)),
        requested: Some(1 << 40),
        duration_seconds: Some(longest),
        metrics: metrics.clone(),
        errors: vec![error; 5],
        ..Report::default()
    }));
    let text = message(&largest, &gated);
    println!("{} bytes", text.len());
    assert!(text.len() <= MESSAGE_BYTES, "{} bytes", text.len());
    let kept = complete(find_message(&text, NONCE));
    assert_eq!(report(&kept).metrics, metrics, "{:?}", kept.abridged);
}

#[test]
fn a_record_beyond_all_bounds_still_gives_a_valid_message() {
    let mut huge = record(0);
    huge.nonce = "n".repeat(10_000);
    let text = message(&huge, &[]);
    assert!(text.len() <= MESSAGE_BYTES);
    let read = complete(find_message(&text, &"n".repeat(200)));
    assert!(matches!(read.outcome, Outcome::Failure(Failure::Malformed { .. })));
}

#[test]
fn cut_missing_and_foreign_messages_are_distinguished() {
    let text = message(&record(2), &[]);
    assert_eq!(find_message("", NONCE), Framed::Missing);
    assert_eq!(find_message("\n", NONCE), Framed::Missing);
    assert_eq!(find_message(&text, "another"), Framed::Missing);
    assert!(matches!(find_message("OOMKilled", NONCE), Framed::Malformed(_)));
    assert!(matches!(find_message("{}", NONCE), Framed::Malformed(_)));
    for end in 1..text.len() {
        let cut = String::from_utf8_lossy(&text.as_bytes()[..end]);
        assert_eq!(find_message(&cut, NONCE), Framed::Truncated, "cut after {end} bytes");
    }
}

#[test]
fn a_frame_holds_the_export_unchanged() {
    let whole = payload(record(4)).with_export(&export()).unwrap();
    let text = frame(&whole).unwrap();
    assert_eq!(text.lines().count(), 3, "the payload is one line");
    let read = complete(find(&format!("noise\n{text}"), NONCE));
    assert_eq!(read.record, whole.record);
    assert_eq!(read.workers, whole.workers);
    let carried: serde_json::Value = serde_json::from_str(read.aiperf.unwrap().get()).unwrap();
    let original: serde_json::Value = serde_json::from_str(&export()).unwrap();
    assert_eq!(carried, original);
    assert!(text.contains("5973.3"), "digits are taken over as text");
}

#[test]
fn every_cut_of_a_frame_is_truncated_or_missing() {
    let text = frame(&payload(record(1))).unwrap();
    for end in 0..text.len() - 1 {
        let found = find(&String::from_utf8_lossy(&text.as_bytes()[..end]), NONCE);
        assert!(
            matches!(found, Framed::Truncated | Framed::Missing),
            "cut after {end} bytes: {found:?}"
        );
    }
    let begin = text.lines().next().unwrap().len();
    assert!(matches!(find(&text[..begin], NONCE), Framed::Truncated));
    // A rotated log begins in the middle.
    assert!(matches!(find(&text[begin..], NONCE), Framed::Truncated));
}

#[test]
fn only_the_last_complete_pair_of_this_trial_counts() {
    let mut old = record(0);
    old.exit_code = 9;
    let foreign = frame(&payload(TrialRecord {
        nonce: "other".to_owned(),
        ..record(0)
    }))
    .unwrap();
    let (old, new) = (frame(&payload(old)).unwrap(), frame(&payload(record(0))).unwrap());
    let cut = &new[..new.len() / 2];

    assert_eq!(
        complete(find(&format!("{old}{new}{foreign}"), NONCE)).record.exit_code,
        0
    );
    assert_eq!(complete(find(&format!("{old}{cut}"), NONCE)).record.exit_code, 9);
    let failed = frame(&payload(failure(Failure::Killed { signal: 9 }))).unwrap();
    assert_eq!(complete(find(&format!("{failed}{new}"), NONCE)).record.exit_code, 0);
    assert_eq!(complete(find(&format!("{new}{failed}"), NONCE)).record.exit_code, 1);
    assert!(matches!(find(&foreign, NONCE), Framed::Missing));
    assert!(
        matches!(find(&new, "1f2e3d4c"), Framed::Missing),
        "a part of the nonce is another nonce"
    );
    assert_eq!(complete(find(&new.replace('\n', "\r\n"), NONCE)).record.exit_code, 0);
}

#[test]
fn a_failure_has_its_own_lines() {
    let failed = failure(Failure::AllFailed {
        failed: 40,
        errors: Vec::new(),
    });
    let text = frame(&payload(failed.clone())).unwrap();
    assert!(!text.contains("RESULT"), "{text}");
    assert_eq!(complete(find(&text, NONCE)).record, failed);
    let forged = text.replace("FAILURE", "RESULT");
    assert!(matches!(find(&forged, NONCE), Framed::Malformed(_)));
}

#[test]
fn a_frame_with_anything_but_one_line_is_malformed() {
    let text = frame(&payload(record(0))).unwrap();
    let [begin, json, end] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("three lines")
    };
    for inside in [
        String::new(),
        format!("{json}\n{json}\n"),
        "{\n".to_owned(),
        "[]\n".to_owned(),
    ] {
        let found = find(&format!("{begin}\n{inside}{end}\n"), NONCE);
        assert!(matches!(found, Framed::Malformed(_)), "{inside}: {found:?}");
    }
}

#[test]
fn every_failure_travels() {
    let text = || "cannot".to_owned();
    for kind in [
        Failure::Misconfigured { message: text() },
        Failure::NotExecutable { message: text() },
        Failure::AllFailed {
            failed: 3,
            errors: vec![ErrorKind {
                kind: text(),
                count: 3,
                ..ErrorKind::default()
            }],
        },
        Failure::Exited { tail: text() },
        Failure::NoExport { tail: text() },
        Failure::Malformed { message: text() },
        Failure::Killed { signal: 9 },
        Failure::Cancelled { signal: 15 },
        Failure::TimedOut { seconds: 900 },
    ] {
        let record = failure(kind);
        assert_eq!(complete(find_message(&message(&record, &[]), NONCE)), record);
        assert_eq!(
            complete(find(&frame(&payload(record.clone())).unwrap(), NONCE)).record,
            record
        );
    }
}

proptest! {
    #[test]
    fn a_message_always_fits_and_keeps_gated_numbers(
        values in proptest::collection::btree_map((0..9usize, 0..13usize), 1..1_000_000_000_000_000_i64, 0..60),
        gates in proptest::collection::vec((0..9usize, 0..13usize), 0..12),
        workers in 0..70usize,
        text in ".{0,300}",
    ) {
        let mut sent = record(workers);
        sent.scrape_errors.insert(text.clone(), 1);
        let mut metrics: BTreeMap<Metric, BTreeMap<Statistic, Decimal>> = BTreeMap::new();
        for ((metric, statistic), value) in values {
            let statistics = metrics.entry(Metric::ALL[metric]).or_default();
            statistics.insert(Statistic::ALL[statistic], Decimal::new(value, 6));
        }
        sent.outcome = Outcome::Report(Box::new(Report { metrics, incomplete_reason: Some(text), ..Report::default() }));
        let gated: Vec<Measure> = gates
            .iter()
            .map(|(m, s)| Measure { metric: Metric::ALL[*m], statistic: Statistic::ALL[*s] })
            .collect();

        let text = message(&sent, &gated);
        prop_assert!(text.len() <= MESSAGE_BYTES);
        let read = complete(find_message(&text, NONCE));
        for gate in &gated {
            let value = |r: &TrialRecord| report(r).value(gate.metric, gate.statistic);
            prop_assert_eq!(value(&read), value(&sent));
        }
    }
}
