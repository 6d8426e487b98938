//! Mutates real exports, logs and metrics for a while and holds the readers to their promises: never a panic, never a
//! number that cannot be.

use std::collections::BTreeSet;

use fastrand::Rng;
use perfval_testkit::fuzz;
use perfval_verdict::aiperf::{FailedRequests, Measure, Report, parse};
use perfval_verdict::dynamo::worker_metrics;
use perfval_verdict::frame::{
    Framed, MESSAGE_BYTES, Outcome, Payload, TrialRecord, find, find_message, frame, message,
};
use perfval_verdict::gpus::{Recorder, dcgm, summarize};
use rust_decimal::Decimal;

const NONCE: &str = "fuzz-1";

/// What breaks parsers, and what changes meaning without breaking them.
const TOKENS: [&str; 22] = [
    "NaN",
    "Infinity",
    "-",
    "1e999",
    "1e-400",
    "-1",
    "0",
    "null",
    "true",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\\u0000",
    "\n",
    "99999999999999999999999999999999",
    "0.1",
    "\"avg\":1,",
    "é",
];

#[test]
fn mutated_results_never_break_a_promise() {
    let corpus = corpus();
    let mut tally = Tally::default();
    fuzz::rounds(1000, |rng| {
        for input in &corpus {
            let mutated = mutate(rng, input, &corpus);
            tally.add(&mutated);
        }
        tally.executions
    });
    println!("{tally:?}");
    // A run in which nothing was read, or nothing was refused, has tested nothing.
    assert!(tally.reports > 0 && tally.refused > 0, "{tally:?}");
    assert!(tally.frames > 0 && tally.broken_frames > 0, "{tally:?}");
    assert!(tally.metrics > 0, "{tally:?}");
    assert!(tally.gpu_pages > 0 && tally.refused_gpu_pages > 0, "{tally:?}");
}

/// Every fixture, and every export once more inside a frame.
fn corpus() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir("tests/fixtures").expect("fixtures");
    let telemetry = std::fs::read_dir("tests/fixtures/telemetry").expect("pages of GPU metrics");
    let files = files.chain(telemetry);
    let mut paths: Vec<_> = files.map(|entry| entry.expect("a fixture").path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    let mut corpus: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a fixture"))
        .collect();
    let framed: Vec<Vec<u8>> = corpus.iter().filter_map(|export| framed(export)).collect();
    assert!(framed.len() >= 12, "the exports are among the fixtures");
    corpus.extend(framed);
    corpus
}

fn framed(export: &[u8]) -> Option<Vec<u8>> {
    let report = parse(export).ok()?;
    let payload = Payload {
        record: record(report),
        aiperf: None,
        workers: Vec::new(),
        gpus: Vec::new(),
    };
    let text = frame(&payload.with_export(str::from_utf8(export).ok()?).ok()?).ok()?;
    Some(format!("12:00:00 INFO a line of the log\n{text}").into_bytes())
}

fn record(report: Report) -> TrialRecord {
    TrialRecord {
        nonce: NONCE.to_owned(),
        exit_code: 0,
        outcome: Outcome::Report(Box::new(report)),
        workers: Vec::new(),
        scrape_errors: [].into(),
        gpus: None,
        abridged: BTreeSet::new(),
    }
}

fn mutate(rng: &mut Rng, input: &[u8], corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.usize(1..4) {
        let from = rng.usize(0..=bytes.len());
        let to = from + rng.usize(0..=(bytes.len() - from).min(40));
        match rng.u8(0..16) {
            0 => bytes.truncate(from),
            1 => drop(bytes.drain(from..to)),
            2 => bytes[from..to].fill_with(|| rng.u8(..)),
            3 => drop(bytes.splice(from..to, rng.choice(TOKENS).unwrap_or_default().bytes())),
            4 => bytes.extend_from_within(from..to),
            5 => {
                let other = &corpus[rng.usize(0..corpus.len())];
                let start = rng.usize(0..other.len());
                let end = (start + rng.usize(0..200)).min(other.len());
                drop(bytes.splice(from..to, other[start..end].iter().copied()));
            }
            _ => exchange_number(rng, &mut bytes, from),
        }
    }
    bytes
}

/// Replaces the next number, which keeps the document well-formed: the mutation that reaches deepest.
fn exchange_number(rng: &mut Rng, bytes: &mut Vec<u8>, from: usize) {
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
        return;
    };
    let rest = &bytes[start..];
    let digits = rest
        .iter()
        .position(|b| !b.is_ascii_digit() && *b != b'.')
        .unwrap_or(rest.len());
    let number = match rng.u8(0..8) {
        0 => f64::from_bits(rng.u64(..)).to_string(),
        1 => rng.i64(..).to_string(),
        2 => format!("{:e}", f64::from_bits(rng.u64(..))),
        3 => "null".to_owned(),
        _ => rng.u16(..).to_string(),
    };
    bytes.splice(start..start + digits, number.bytes());
}

#[derive(Debug, Default)]
struct Tally {
    executions: u64,
    reports: u64,
    refused: u64,
    frames: u64,
    broken_frames: u64,
    metrics: u64,
    gpu_pages: u64,
    refused_gpu_pages: u64,
    /// All pages, one after the other: what comes later contradicts what came before.
    recorder: Recorder,
}

impl Tally {
    fn add(&mut self, input: &[u8]) {
        self.executions += 1;
        match parse(input) {
            Ok(report) => {
                self.reports += 1;
                keeps_its_promises(&report);
            }
            Err(error) => {
                self.refused += 1;
                assert!(error.to_string().len() < 2000, "{error}");
            }
        }
        let text = String::from_utf8_lossy(input);
        match find(&text, NONCE) {
            Framed::Complete(payload) => {
                self.frames += 1;
                assert_eq!(payload.record.nonce, NONCE);
            }
            Framed::Truncated | Framed::Malformed(_) => self.broken_frames += 1,
            Framed::Missing => {}
        }
        let _ = find_message(&text, NONCE); // any answer is right but a panic
        if let Ok(scraped) = worker_metrics::read(&text) {
            self.metrics += 1;
            assert!(scraped.reading.in_flight >= 0 && scraped.reading.finished >= 0);
        }
        self.add_gpus(input);
        let mut requests = FailedRequests::default();
        for line in text.lines().take(5) {
            let _ = requests.add(line); // any answer is right but a panic
        }
    }
}

impl Tally {
    fn add_gpus(&mut self, page: &[u8]) {
        match dcgm::read(page) {
            Ok(gpus) => {
                self.gpu_pages += 1;
                assert!((1..=64).contains(&gpus.len()));
                let second = i64::try_from(self.gpu_pages).expect("a small number");
                self.recorder.add(second, gpus);
            }
            Err(error) => {
                self.refused_gpu_pages += 1;
                self.recorder.failed(&error.to_string());
            }
        }
        if self.executions.is_multiple_of(1000) {
            let (pages, errors, series) = std::mem::take(&mut self.recorder).finish();
            assert!(series.len() <= 64 && errors.len() <= 8, "{errors:?}");
            let record = summarize(pages, errors, &series, &[], None);
            assert!(
                record
                    .gpus
                    .iter()
                    .all(|gpu| gpu.readings >= 0 && gpu.sm_mhz.is_none_or(|mhz| mhz >= 0))
            );
        }
    }
}

fn keeps_its_promises(report: &Report) {
    assert!(report.succeeded >= 0 && report.failed >= 0 && report.succeeded + report.failed > 0);
    assert!((0..=report.succeeded).contains(&report.truncated), "{report:?}");
    assert!(
        (Decimal::ZERO..=Decimal::ONE_HUNDRED).contains(&report.error_percent()),
        "{report:?}"
    );
    let bound = Decimal::from(1_000_000_000_000_i64);
    let mut gated = Vec::new();
    for (metric, statistics) in &report.metrics {
        for (statistic, value) in statistics {
            assert!(
                (Decimal::ZERO..=bound).contains(value),
                "{metric:?} {statistic:?} {value}"
            );
            gated.push(Measure {
                metric: *metric,
                statistic: *statistic,
            });
        }
    }
    let _ = report.starved();

    let text = message(&record(report.clone()), &gated);
    assert!(text.len() <= MESSAGE_BYTES, "{} bytes", text.len());
    match find_message(&text, NONCE) {
        Framed::Complete(TrialRecord {
            outcome: Outcome::Report(read),
            ..
        }) => assert_eq!(read.metrics, report.metrics),
        other => panic!("{other:?}"),
    }
}
