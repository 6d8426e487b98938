//! AIPerf's export and its lines of records.

use perfval_verdict::aiperf::{FailedRequests, Measure, Report, frontend_times, parse};
use perfval_verdict::frame::{Framed, MESSAGE_BYTES, Outcome, TrialRecord, find_message, message};
use perfval_verdict::progress::Tally;
use rust_decimal::Decimal;

const NONCE: &str = "fuzz-1";

pub fn run(input: &[u8]) -> bool {
    let _ = frontend_times(input); // any answer is right but a panic
    records(&String::from_utf8_lossy(input));
    match parse(input) {
        Ok(report) => {
            keeps_its_promises(&report);
            true
        }
        Err(error) => {
            assert!(error.to_string().len() < 2000, "{error}");
            false
        }
    }
}

fn records(text: &str) {
    let (mut failed, mut tally) = (FailedRequests::default(), Tally::default());
    for line in text.lines() {
        let _ = failed.add(line);
        tally.add(line);
        let progress = tally.progress();
        assert!(
            progress.errors <= progress.requests && progress.seconds >= 0,
            "{progress:?}"
        );
    }
    assert!(failed.errors().len() <= 64);
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
    fits_its_message(report, &gated);
}

/// What is gated survives the termination message.
fn fits_its_message(report: &Report, gated: &[Measure]) {
    let record = TrialRecord {
        nonce: NONCE.to_owned(),
        ..TrialRecord::new(Outcome::Report(Box::new(report.clone())))
    };
    let text = message(&record, gated);
    assert!(text.len() <= MESSAGE_BYTES, "{} bytes", text.len());
    match find_message(&text, NONCE) {
        Framed::Complete(TrialRecord {
            outcome: Outcome::Report(read),
            ..
        }) => assert_eq!(read.metrics, report.metrics),
        other => panic!("{other:?}"),
    }
}
