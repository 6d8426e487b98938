//! Real exports, each read as its run went.

use perfval_api::{Metric, Statistic};
use perfval_verdict::aiperf::{FailedRequests, Report, parse};
use rust_decimal::Decimal;

/// Numbers in the export as a person reads them; empty where the field is absent.
struct Row {
    file: &'static str,
    /// Requests in flight, and number of requests if the options had one.
    asked: (i64, Option<i64>),
    throughput: &'static str,
    ttft: (&'static str, &'static str, &'static str),
    latency_p99: &'static str,
    itl_p99: &'static str,
    ok: i64,
    failed: i64,
    truncated: i64,
    error_percent: &'static str,
    effective: &'static str,
    wait: &'static str,
    complete: bool,
    cancelled: bool,
    starved: bool,
}

#[rustfmt::skip]
const ROWS: [Row; 17] = [
    Row { file: "success", asked: (128, Some(768)), throughput: "4438.2", ttft: ("166.7", "264.7", "278.0"), latency_p99: "1901", itl_p99: "28.2", ok: 768, failed: 0, truncated: 0, error_percent: "0", effective: "128", wait: "74", complete: true, cancelled: false, starved: false },
    Row { file: "success-client-tokenized", asked: (16, Some(160)), throughput: "2225.2", ttft: ("56.8", "99.7", "106.0"), latency_p99: "489", itl_p99: "6.8", ok: 160, failed: 0, truncated: 0, error_percent: "0", effective: "16", wait: "8", complete: true, cancelled: false, starved: false },
    Row { file: "0.12.0-success", asked: (16, Some(80)), throughput: "1922.3", ttft: ("58.2", "101.6", "103.1"), latency_p99: "276", itl_p99: "7.3", ok: 80, failed: 0, truncated: 0, error_percent: "0", effective: "16", wait: "16", complete: true, cancelled: false, starved: false },
    // 0.11 has no numbers of the generator.
    Row { file: "0.11.0-success", asked: (16, Some(80)), throughput: "634.5", ttft: ("165.5", "190.2", "191.2"), latency_p99: "835.3", itl_p99: "23.2", ok: 80, failed: 0, truncated: 0, error_percent: "0", effective: "", wait: "", complete: true, cancelled: false, starved: false },
    // One of two workers was killed in mid-run: least-loaded feeds the dead one, and the numbers cover 115 successes of 1500.
    Row { file: "0.11.0-dead-worker-least-loaded", asked: (16, Some(1500)), throughput: "441.2", ttft: ("158.5", "282.3", "283.9"), latency_p99: "943.0", itl_p99: "27.3", ok: 115, failed: 1385, truncated: 1, error_percent: "92.4", effective: "", wait: "", complete: true, cancelled: false, starved: false },
    Row { file: "slow-worker-round-robin", asked: (128, Some(768)), throughput: "559.7", ttft: ("153.8", "43668", "44847"), latency_p99: "56720", itl_p99: "212", ok: 768, failed: 0, truncated: 0, error_percent: "0", effective: "127", wait: "10", complete: true, cancelled: false, starved: false },
    // 113 of 128 in flight, yet the generator was idle: the slow worker drained its queue at the end.
    Row { file: "slow-worker-kv", asked: (128, Some(768)), throughput: "1532.0", ttft: ("148.4", "13705", "14085"), latency_p99: "27433", itl_p99: "232", ok: 768, failed: 0, truncated: 0, error_percent: "0", effective: "113", wait: "13", complete: true, cancelled: false, starved: false },
    Row { file: "slow-worker-least-loaded", asked: (128, Some(768)), throughput: "3221.7", ttft: ("175.1", "2499", "2512"), latency_p99: "15218", itl_p99: "202", ok: 768, failed: 0, truncated: 0, error_percent: "0", effective: "128", wait: "33", complete: true, cancelled: false, starved: false },
    Row { file: "partial-10pct-503", asked: (8, Some(80)), throughput: "2527.2", ttft: ("22.8", "32.6", "36.4"), latency_p99: "202", itl_p99: "2.9", ok: 72, failed: 8, truncated: 0, error_percent: "10", effective: "8", wait: "6", complete: true, cancelled: false, starved: false },
    // 141 failed and 16 were cut: 157 of 1500.
    Row { file: "partial-dead-worker-round-robin", asked: (64, Some(1500)), throughput: "5973.3", ttft: ("56.9", "134.8", "157.4"), latency_p99: "814", itl_p99: "11.8", ok: 1359, failed: 141, truncated: 16, error_percent: "10.47", effective: "64", wait: "13", complete: true, cancelled: false, starved: false },
    Row { file: "partial-dead-worker-least-loaded", asked: (64, Some(1500)), throughput: "5933.8", ttft: ("70.7", "173.4", "173.4"), latency_p99: "1944", itl_p99: "7.4", ok: 96, failed: 1404, truncated: 0, error_percent: "93.6", effective: "48", wait: "9", complete: true, cancelled: false, starved: false },
    Row { file: "cancelled-sigint", asked: (32, Some(3000)), throughput: "3768.5", ttft: ("62.8", "108.5", "109.2"), latency_p99: "569", itl_p99: "8.1", ok: 256, failed: 0, truncated: 0, error_percent: "0", effective: "32", wait: "18", complete: false, cancelled: true, starved: false },
    Row { file: "cancelled-failed-request-threshold", asked: (8, Some(80)), throughput: "2783.2", ttft: ("22.5", "24.1", "24.1"), latency_p99: "171", itl_p99: "2.4", ok: 8, failed: 10, truncated: 0, error_percent: "55.56", effective: "8", wait: "6", complete: false, cancelled: true, starved: false },
    // Ten seconds of requests; those in flight at the end were waited for.
    Row { file: "duration-success", asked: (8, None), throughput: "62.3", ttft: ("132.5", "147.1", "147.5"), latency_p99: "1037.7", itl_p99: "127.4", ok: 80, failed: 0, truncated: 0, error_percent: "0", effective: "8", wait: "6", complete: true, cancelled: false, starved: false },
    // A server that stops answering one request in four: with a grace beyond the requests' deadline (20 s) each of the six is an error.
    Row { file: "duration-hanging", asked: (8, None), throughput: "16.4", ttft: ("131.5", "144.4", "145.1"), latency_p99: "1027.8", itl_p99: "127.0", ok: 60, failed: 6, truncated: 0, error_percent: "9.09", effective: "6", wait: "6", complete: true, cancelled: false, starved: false },
    // The same server with a grace of 5 s: six requests are forgotten, and the run counts as complete. The Job never asks for that.
    Row { file: "duration-short-grace", asked: (8, None), throughput: "32.0", ttft: ("130.4", "155.4", "155.7"), latency_p99: "1040.8", itl_p99: "128.0", ok: 60, failed: 0, truncated: 0, error_percent: "0", effective: "4", wait: "9", complete: true, cancelled: false, starved: false },
    Row { file: "underdriven-c1024", asked: (1024, Some(4096)), throughput: "9470.6", ttft: ("174.1", "1259", "1371"), latency_p99: "1354", itl_p99: "31.8", ok: 4096, failed: 0, truncated: 0, error_percent: "0", effective: "224", wait: "2695", complete: true, cancelled: false, starved: true },
];

fn fixture(name: &str) -> String {
    let path = format!("tests/fixtures/{name}");
    std::fs::read_to_string(path).expect("a fixture")
}

fn report(name: &str) -> Report {
    parse(fixture(&format!("aiperf-{name}.json")).as_bytes()).expect("a report")
}

/// Compares at the precision of the table.
#[track_caller]
fn assert_rounds_to(found: Option<Decimal>, expected: &str, what: &str) {
    let expected: Decimal = expected.parse().expect("a number");
    let found = found.unwrap_or_else(|| panic!("{what} is absent"));
    let rounded = found.round_dp_with_strategy(expected.scale(), rust_decimal::RoundingStrategy::MidpointAwayFromZero);
    assert_eq!(rounded, expected, "{what}: {found}");
}

#[test]
fn every_sample_is_read_as_its_run_went() {
    for row in &ROWS {
        let report = report(row.file);
        let check = |metric, statistic, expected| {
            let what = format!("{} {metric:?} {statistic:?}", row.file);
            assert_rounds_to(report.value(metric, statistic), expected, &what);
        };
        check(Metric::OutputTokenThroughput, Statistic::Avg, row.throughput);
        check(Metric::TimeToFirstToken, Statistic::P50, row.ttft.0);
        check(Metric::TimeToFirstToken, Statistic::P99, row.ttft.1);
        check(Metric::TimeToFirstToken, Statistic::Max, row.ttft.2);
        check(Metric::RequestLatency, Statistic::P99, row.latency_p99);
        check(Metric::InterTokenLatency, Statistic::P99, row.itl_p99);
        let generator = &report.generator;
        for (found, expected) in [
            (generator.effective_concurrency_p50, row.effective),
            (generator.credit_to_start_p50_ms, row.wait),
        ] {
            if expected.is_empty() {
                assert_eq!(found, None, "{}", row.file);
            } else {
                assert_rounds_to(found, expected, row.file);
            }
        }
        assert_rounds_to(Some(report.error_percent()), row.error_percent, row.file);

        assert_eq!((report.concurrency, report.requested), row.asked, "{}", row.file);
        let counts = (report.succeeded, report.failed, report.truncated);
        assert_eq!(counts, (row.ok, row.failed, row.truncated), "{}", row.file);
        let state = (report.complete, report.cancelled, report.starved());
        assert_eq!(state, (row.complete, row.cancelled, row.starved), "{}", row.file);
        assert!(report.duration_seconds.is_some(), "{}", row.file);
    }
}

#[test]
fn the_table_covers_every_export_there_is() {
    for entry in std::fs::read_dir("tests/fixtures").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(sample) = name.strip_prefix("aiperf-").and_then(|n| n.strip_suffix(".json")) else {
            continue;
        };
        let known = ROWS.iter().any(|row| row.file == sample) || sample == "all-failed";
        assert!(known, "{name} is in no row");
    }
}

#[test]
fn numbers_keep_every_digit_of_the_export() {
    let report = report("success");
    let throughput = report.value(Metric::OutputTokenThroughput, Statistic::Avg).unwrap();
    assert_eq!(throughput.to_string(), "4438.205116310684");
    assert_eq!(report.metrics[&Metric::TimeToFirstToken].len(), Statistic::ALL.len());
    assert_eq!(
        report.metrics[&Metric::RequestThroughput].len(),
        1,
        "a rate has an average only"
    );
    assert_eq!(report.aiperf_version.as_deref(), Some("0.13.0"));
}

#[test]
fn errors_come_with_the_most_frequent_first() {
    let report = report("partial-dead-worker-round-robin");
    let counts: Vec<i64> = report.errors.iter().map(|e| e.count).collect();
    assert_eq!(counts, [138, 2, 1]);
    assert_eq!(report.errors[0].code, Some(500));
    assert!(report.errors[0].message.contains("Connection refused"));
    assert!(report.errors.iter().all(|e| e.message.len() <= 200));
    // Redaction looks for the beginning of a secret before this mark.
    assert!(report.errors.iter().any(|e| e.message.ends_with('…')));
}

#[test]
fn a_cancelled_run_has_a_reason() {
    let report = report("cancelled-sigint");
    let reason = report.incomplete_reason.unwrap();
    assert_eq!(reason, "Run cancelled before all records were processed.");
}

#[test]
fn a_run_without_any_success_is_known_from_its_records() {
    let wrapper: serde_json::Value = serde_json::from_str(&fixture("aiperf-all-failed.json")).unwrap();
    let mut requests = FailedRequests::default();
    for record in wrapper["records"].as_array().unwrap() {
        // The samples are warm-up requests; the same lines of the measured phase differ in this word only.
        requests.add(&record.to_string()).unwrap();
        assert_eq!(requests, FailedRequests::default(), "warm-up requests are not counted");
    }
    for record in wrapper["records"].as_array().unwrap() {
        let mut record = record.clone();
        record["metadata"]["benchmark_phase"] = "profiling".into();
        requests.add(&record.to_string()).unwrap();
    }
    assert_eq!((requests.succeeded, requests.failed), (0, 5));
    let errors = requests.errors();
    assert_eq!(errors[0].kind, "ClientConnectorError");
    assert_eq!(errors[0].count, 2, "equal errors are one kind");
    assert!(errors.iter().any(|e| e.code == Some(404)));
}

#[test]
fn a_cut_stream_counts_as_a_success_in_the_records() {
    let mut requests = FailedRequests::default();
    for line in fixture("aiperf-records.jsonl").lines() {
        requests.add(line).unwrap();
    }
    assert_eq!((requests.succeeded, requests.failed), (2, 2));
}
