//! A worker's page of metrics as Dynamo and its engines write it.

use perfval_verdict::dynamo::worker_metrics::{ExpositionError, read};
use perfval_verdict::workers::{Engine, Reading};
use proptest::prelude::*;

fn fixture(name: &str) -> String {
    let path = format!("tests/fixtures/{name}");
    std::fs::read_to_string(path).expect("a fixture")
}

#[test]
fn both_dumps_are_read_for_the_generate_endpoint_alone() {
    let old = read(&fixture("dynamo-worker-metrics.txt")).unwrap();
    assert_eq!(
        old,
        Reading {
            in_flight: 15,
            started: 295,
            finished: 280,
            tokens: None,
            bytes: Some(3_453_374),
            busy_ms: Some(138_454),
            waiting: Some(0),
            engine: Engine::default(),
        }
    );

    let new = read(&fixture("dynamo-worker-metrics-1.6.1.txt")).unwrap();
    assert_eq!(
        new,
        Reading {
            in_flight: 0,
            started: 105,
            finished: 105,
            tokens: Some(6615),
            bytes: Some(955_606),
            busy_ms: Some(48_856),
            waiting: Some(0),
            engine: Engine {
                gaps: Some(6615),
                gap_us: Some(44_809_258),
                ..Engine::default()
            },
        }
    );
}

#[test]
fn counters_of_an_engine_are_read_from_a_page_of_a_hundred_kilobytes() {
    let page = fixture("vllm-0.26.0-worker-metrics.txt");
    assert!(page.len() > 100_000);
    let reading = read(&page).unwrap();
    assert_eq!(reading.tokens, Some(1_664_644));
    let expected = Engine {
        gaps: Some(1_651_638),
        gap_us: Some(17_464_869_260),
        steps: Some(7600),
        prefill_ms: Some(789_261),
        queue_ms: Some(1_721),
        // Without --enable-mfu-metrics.
        gflop: Some(0),
        moved_mb: Some(0),
    };
    assert_eq!(reading.engine, expected);
}

#[test]
fn another_endpoint_is_never_taken_for_generate() {
    let text = fixture("dynamo-worker-metrics.txt");
    let renamed = text.replace("dynamo_endpoint=\"generate\"", "dynamo_endpoint=\"generate_more\"");
    assert!(matches!(read(&renamed), Err(ExpositionError::Missing(_))));
    let hidden = text.replace("dynamo_endpoint=\"generate\"", "x=\"dynamo_endpoint=generate\"");
    assert!(matches!(read(&hidden), Err(ExpositionError::Missing(_))));
    assert!(matches!(read(""), Err(ExpositionError::Missing(_))));
}

#[test]
fn counters_that_are_none_are_errors() {
    let text = fixture("dynamo-worker-metrics.txt");
    for value in ["NaN", "+Inf", "-1", "1e30", "many", "0x1f"] {
        let wrong = text.replace("bbf2\"} 295", &format!("bbf2\"}} {value}"));
        assert_ne!(wrong, text);
        assert!(matches!(read(&wrong), Err(ExpositionError::Number { .. })), "{value}");
    }
    let other_form = text.replace("bbf2\"} 295", "bbf2\"} 2.95e2 1795166231988");
    assert_eq!(read(&other_form).unwrap().started, 295);
}

#[test]
fn optional_unreadable_series_are_left_out() {
    let text = fixture("dynamo-worker-metrics-1.6.1.txt");
    let whole = read(&text).unwrap();
    for (series, value) in [
        ("dynamo_component_response_bytes_total", "NaN"),
        ("dynamo_component_request_duration_seconds_sum", "-3"),
        ("vllm:inter_token_latency_seconds_count", "+Inf"),
    ] {
        let line = |line: &str| {
            if line.starts_with(series) {
                format!("{} {value}", line.rsplit_once(' ').unwrap().0)
            } else {
                line.to_owned()
            }
        };
        let wrong: Vec<String> = text.lines().map(line).collect();
        let found = read(&wrong.join("\n")).unwrap();
        assert_ne!(found, whole, "{series}");
        assert_eq!(
            (found.in_flight, found.started, found.finished),
            (0, 105, 105),
            "{series}"
        );
    }
}

#[test]
fn queues_are_summed() {
    let more = "\ndynamo_request_queue 3\nvllm:num_requests_waiting{engine=\"0\"} 4\nvllm:num_requests_waiting{engine=\"1\"} 5\n";
    let reading = read(&(fixture("dynamo-worker-metrics.txt") + more)).unwrap();
    assert_eq!(reading.waiting, Some(12));
}

/// `--data-parallel-size 2`: each engine estimates the work of its own GPU.
#[test]
fn estimates_per_gpu_are_averaged_over_the_engines_of_a_worker() {
    let line = |what: &str, engine: i64, value: &str| {
        format!("\nvllm:estimated_{what}_per_gpu_total{{engine=\"{engine}\"}} {value}")
    };
    let lines = [
        line("flops", 0, "3e9"),
        line("flops", 1, "1e9"),
        line("read_bytes", 0, "4e6"),
        line("read_bytes", 1, "2e6"),
        line("write_bytes", 0, "2e6"),
        line("write_bytes", 1, "0.0"),
    ];
    let page = |lines: &[String]| {
        read(&(fixture("dynamo-worker-metrics.txt") + &lines.concat()))
            .unwrap()
            .engine
    };
    let two = page(&lines);
    assert_eq!((two.gflop, two.moved_mb), (Some(2), Some(4)));
    let one = page(&[lines[0].clone(), lines[2].clone(), lines[4].clone()]);
    assert_eq!((one.gflop, one.moved_mb), (Some(3), Some(6)));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z_{}=\"., 0-9\n#:+-]{0,300}") {
        prop_assert!(read(&text).is_err());
    }
}
