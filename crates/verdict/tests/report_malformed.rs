//! Every fault of an export is an error with its path, and never becomes a number.

use perfval_api::{Metric, Statistic};
use perfval_verdict::aiperf::{Measure, Report, ReportError, parse};
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// The least that can be judged.
fn small() -> Value {
    json!({
        "aiperf_version": "0.13.0",
        "input_config": {
            "phases": [{"name": "warmup", "requests": 8, "concurrency": 8},
                       {"name": "profiling", "requests": 80, "concurrency": 8}],
            "endpoint": {"use_server_token_count": true}
        },
        "was_cancelled": false,
        "request_count": {"unit": "requests", "avg": 79.0},
        "error_request_count": {"unit": "requests", "avg": 1.0},
        "output_sequence_length": {"unit": "tokens", "avg": 64.0, "count": 79},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 350.5},
        "time_to_first_token": {"unit": "ms", "avg": 20.0, "p99": 22.25},
        "error_summary": [{"error_details": {"code": 503, "type": "Service Unavailable", "message": "overloaded"}, "count": 1}]
    })
}

fn read(value: &Value) -> Result<perfval_verdict::aiperf::Report, ReportError> {
    parse(value.to_string().as_bytes())
}

#[test]
fn the_least_that_can_be_judged_is_judged() {
    let report = read(&small()).unwrap();
    assert_eq!((report.succeeded, report.failed, report.truncated), (79, 1, 0));
    assert!(report.complete);
    assert_eq!(
        report.value(Metric::TimeToFirstToken, Statistic::P99),
        Some("22.25".parse().unwrap())
    );
    assert_eq!(report.value(Metric::TimeToFirstToken, Statistic::P50), None);
    assert!(!report.starved(), "absent is not starved");
}

#[test]
fn every_cut_is_an_error() {
    let whole = small().to_string();
    for end in 0..whole.len() {
        let error = parse(&whole.as_bytes()[..end]).unwrap_err();
        assert!(matches!(error, ReportError::Json(_)), "cut after {end} bytes: {error}");
    }
}

#[test]
fn every_wrong_value_is_named() {
    // Pointer to the value, what stands there instead, what the error must name.
    let cases = [
        ("/was_cancelled", json!("false"), "was_cancelled"),
        ("/was_cancelled", Value::Null, "was_cancelled"),
        ("/request_count", json!(79), "request_count"),
        ("/request_count/avg", json!("79"), "request_count.avg"),
        ("/request_count/avg", json!(79.5), "request_count.avg"),
        ("/request_count/avg", json!(-79), "request_count.avg"),
        ("/request_count/avg", Value::Null, "request_count.avg"),
        ("/error_request_count/avg", Value::Null, "error_request_count.avg"),
        ("/error_request_count/avg", json!(true), "error_request_count.avg"),
        ("/output_sequence_length", Value::Null, "output_sequence_length"),
        ("/output_sequence_length/count", json!(80), "80 answers"),
        (
            "/output_token_throughput/avg",
            json!([350.5]),
            "output_token_throughput.avg",
        ),
        (
            "/output_token_throughput/avg",
            json!(-0.5),
            "output_token_throughput.avg",
        ),
        ("/time_to_first_token/p99", json!("NaN"), "time_to_first_token.p99"),
        ("/time_to_first_token/p99", json!(1e13), "time_to_first_token.p99"),
        ("/input_config/phases", json!({}), "input_config.phases"),
        ("/input_config/phases/1/name", json!("load"), "profiling"),
        ("/input_config/phases/0/name", json!("profiling"), "profiling"),
        (
            "/input_config/phases/1/requests",
            json!("80"),
            "input_config.phases[1].requests",
        ),
        (
            "/input_config/phases/1/concurrency",
            Value::Null,
            "input_config.phases[1].concurrency",
        ),
        ("/error_summary/0/count", json!(-1), "error_summary[0].count"),
        (
            "/error_summary/0/error_details/code",
            json!("503"),
            "error_summary[0].error_details.code",
        ),
    ];
    for (pointer, value, named) in cases {
        let mut export = small();
        *export.pointer_mut(pointer).unwrap() = value.clone();
        let error = read(&export).expect_err(pointer).to_string();
        assert!(error.contains(named), "{pointer} = {value}: {error}");
    }
}

#[test]
fn only_versions_that_were_looked_at_are_read() {
    let with = |version: Value| {
        let mut export = small();
        export["aiperf_version"] = version;
        read(&export)
    };
    for version in ["0.11.0", "0.12.0", "0.13.0", "0.13.7", "0.13.1rc2", "0.12.0.post1"] {
        assert_eq!(with(json!(version)).unwrap().aiperf_version.as_deref(), Some(version));
    }
    for version in ["0.10.0", "0.14.0", "0.110.0", "0.1", "1.0.0", "", "0.131.0", "main"] {
        let error = with(json!(version)).expect_err(version);
        assert_eq!(error, ReportError::Version(version.to_owned()));
        assert!(error.to_string().contains(&format!("{version:?}")), "{error}");
    }
    for nothing in [Value::Null, json!(0.13)] {
        assert!(with(nothing).unwrap_err().to_string().contains("aiperf_version"));
    }
}

#[test]
fn exports_of_other_tools_are_refused() {
    let foreign = [
        // wrk2, vLLM's benchmark_serving, GuideLLM, k6's summary, an AIPerf record and AIPerf's aggregate of many runs.
        json!({"requests": 100, "latency": {"p99": 12.5}}),
        json!({"date": "20260801-101010", "backend": "vllm", "request_throughput": 12.5, "p99_ttft_ms": 210.0}),
        json!({"benchmarks": [{"metrics": {"time_to_first_token_ms": {"successful": {"percentiles": {"p99": 10}}}}}]}),
        json!({"metrics": {"http_req_duration": {"p(95)": 300.0}}, "root_group": {}}),
        json!({"metadata": {"benchmark_phase": "profiling"}, "metrics": {}}),
        json!({"schema_version": "1.0", "metrics": {"output_token_throughput_avg": {"mean": 1.0}}}),
        json!([]),
        json!("text"),
        json!(7),
    ];
    for export in foreign {
        let error = read(&export).expect_err(&export.to_string());
        assert!(
            matches!(error, ReportError::Missing { .. } | ReportError::Json(_)),
            "{export}: {error}"
        );
    }
}

#[test]
fn numbers_that_are_none_are_errors() {
    let whole = small().to_string();
    for text in [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "1e400",
        "9".repeat(400).as_str(),
        "0x10",
        "1_000",
        "+5",
    ] {
        let export = whole.replace("22.25", text);
        assert_ne!(export, whole);
        assert!(parse(export.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_key_twice_is_an_error_wherever_it_matters() {
    let whole = small().to_string();
    let cases = [
        (
            "\"was_cancelled\":false",
            "\"was_cancelled\":true,\"was_cancelled\":false",
        ),
        ("\"p99\":22.25", "\"p99\":9000,\"p99\":22.25"),
        (
            "\"use_server_token_count\":true",
            "\"use_server_token_count\":false,\"use_server_token_count\":true",
        ),
    ];
    for (once, twice) in cases {
        let export = whole.replace(once, twice);
        assert_ne!(export, whole);
        let error = parse(export.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("duplicate key"), "{error}");
    }
}

#[test]
fn the_counts_must_agree() {
    let mut export = small();
    export["completed_request_count"] = json!({"avg": 80.0});
    assert!(read(&export).is_ok());
    export["completed_request_count"] = json!({"avg": 79.0});
    assert!(matches!(read(&export), Err(ReportError::Contradiction(_))));

    let mut nothing = small();
    nothing["request_count"]["avg"] = json!(0);
    nothing["error_request_count"]["avg"] = json!(0);
    assert!(matches!(read(&nothing), Err(ReportError::Contradiction(_))));
}

#[test]
fn a_run_that_lost_requests_is_not_complete() {
    let mut export = small();
    export["request_count"]["avg"] = json!(70);
    export["output_sequence_length"]["count"] = json!(70);
    assert!(!read(&export).unwrap().complete);
    let mut export = small();
    export["is_complete"] = json!(false);
    assert!(!read(&export).unwrap().complete);
}

#[test]
fn a_zero_measures_an_amount_of_answers_and_the_time_between_tokens_of_one_chunk() {
    let mut export = small();
    export["output_token_throughput"]["avg"] = json!(0.0);
    export["time_to_first_token"]["avg"] = json!(0.0);
    export["time_to_second_token"] = json!({"unit": "ms", "avg": 12.5, "p50": 0.0});
    let mut report = read(&export).unwrap();
    let throughput = |report: &Report| report.value(Metric::OutputTokenThroughput, Statistic::Avg);
    assert_eq!(throughput(&report), Some(Decimal::ZERO));
    let second_token = |report: &Report| report.value(Metric::TimeToSecondToken, Statistic::P50);
    assert_eq!(second_token(&report), Some(Decimal::ZERO));
    assert_eq!(report.value(Metric::TimeToFirstToken, Statistic::Avg), None);
    report.succeeded = 0;
    assert_eq!(throughput(&report), None, "nothing was answered");
    assert_eq!(second_token(&report), None, "nothing was answered");
}

#[test]
fn a_number_in_another_unit_is_refused() {
    for (metric, unit) in [
        ("request_latency", "sec"),
        ("time_to_first_token", "us"),
        ("output_token_throughput", "tokens/min"),
        ("output_sequence_length", "words"),
    ] {
        let mut export = small();
        export[metric] = json!({"unit": unit, "avg": 1.9, "count": 79});
        let error = read(&export).unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{metric}.unit`")) && error.contains(unit),
            "{error}"
        );
    }
    let mut export = small();
    export["request_latency"] = json!({"avg": 1.9});
    let error = read(&export).unwrap_err().to_string();
    assert!(error.contains("no `request_latency.unit`"), "{error}");
}

#[test]
fn a_measure_is_read_as_it_is_written() {
    for &metric in Metric::ALL {
        for &statistic in Statistic::ALL {
            let measure = Measure { metric, statistic };
            assert_eq!(measure.to_string().parse(), Ok(measure));
        }
    }
    for wrong in [
        "",
        "TimeToFirstToken",
        "TimeToFirstToken/",
        "ttft/P99",
        "TimeToFirstToken/p99",
        "A/B/C",
    ] {
        assert!(wrong.parse::<Measure>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_finite_number_keeps_its_value(number in 0.0..1e12_f64) {
        let mut export = small();
        export["time_to_first_token"]["p99"] = json!(number);
        let report = read(&export).unwrap();
        let kept = report.metrics[&Metric::TimeToFirstToken][&Statistic::P99];
        // Below 1e-9 a decimal of 28 places has fewer digits than a double; nothing is judged there.
        if number > 1e-9 {
            prop_assert_eq!(kept.to_string().parse::<f64>().unwrap().to_bits(), number.to_bits());
        }
    }

    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(parse(&bytes).is_err());
    }
}
