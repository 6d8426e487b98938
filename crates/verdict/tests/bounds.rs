//! A pod printed the record, so any number may be in it. Each is bounded where it is read, and every record that is
//! read can be judged.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use flate2::Compression;
use flate2::write::GzEncoder;
use perfval_api::{Metric, PerfValidationSpec, Statistic};
use perfval_verdict::aiperf::{ErrorKind, FrontendTimes, Generator, Report};
use perfval_verdict::frame::{FRAME_BYTES, Failure, Framed, Outcome, Payload, TrialRecord, find, frame};
use perfval_verdict::gate::Share;
use perfval_verdict::generator::GeneratorCpu;
use perfval_verdict::gpus::{Field, GpuRecord, GpuSample, GpuSeries, GpuSummary, Mark};
use perfval_verdict::node_cpu::NodeCpu;
use perfval_verdict::node_facts::NodeFacts;
use perfval_verdict::requests::{CdfPoint, Distribution, Quantiles, RequestTimes};
use perfval_verdict::saved::{MOST_TRIALS, SavedRun, recorded};
use perfval_verdict::trial::{Evidence, judge};
use perfval_verdict::workers::{
    AgainstPeers, Drift, Engine, EngineWork, MOST_PER_NODE, Pace, Reading, Sample, Scrape, Unit, WorkerSeries,
    WorkerSpeed, WorkerSummary,
};
use perfval_verdict::{gpus, workers};
use rust_decimal::Decimal;
use serde_json::{Value, json};

const NONCE: &str = "n";

/// A payload without an absent number. No `..Default`: a new field has to be named here.
fn full() -> Payload {
    let (one, two) = (Decimal::ONE, Decimal::TWO);
    let cpu = GeneratorCpu {
        seconds: 60,
        used: Some(one),
        limit: Some(two),
        throttled_percent: Some(one),
        waiting_percent: Some(one),
    };
    let report = Report {
        aiperf_version: Some("0.13.0".to_owned()),
        requested: Some(100),
        concurrency: 8,
        succeeded: 90,
        failed: 8,
        truncated: 2,
        cancelled: false,
        incomplete_reason: None,
        complete: true,
        duration_seconds: Some(one),
        generator: Generator {
            effective_concurrency_p50: Some(one),
            credit_to_start_p50_ms: Some(one),
            request_latency_p50_ms: Some(one),
            cpu: Some(cpu),
        },
        frontend: FrontendTimes {
            dispatch_wait_ms: Some(one),
            request_ms: Some(one),
            loop_delay_ms: Some(one),
        },
        metrics: Metric::ALL
            .iter()
            .map(|metric| {
                (
                    *metric,
                    Statistic::ALL.iter().map(|statistic| (*statistic, one)).collect(),
                )
            })
            .collect(),
        errors: vec![ErrorKind {
            code: Some(500),
            kind: "TimeoutError".to_owned(),
            message: String::new(),
            count: 8,
        }],
    };
    Payload {
        record: TrialRecord {
            nonce: NONCE.to_owned(),
            exit_code: 0,
            outcome: Outcome::Report(Box::new(report)),
            workers: vec![worker("a"), worker("b"), worker("c")],
            scrape_errors: [("timeout".to_owned(), 3)].into(),
            gpus: Some(GpuRecord {
                pages: 3,
                errors: [("timeout".to_owned(), 3)].into(),
                gpus: vec![gpu("GPU-a"), gpu("GPU-b"), gpu("GPU-c")],
            }),
            node_cpu: Some(NodeCpu {
                node: "n1".to_owned(),
                seconds: 60,
                cpus: Some(8),
                busy_percent: Some(one),
                waiting_percent: Some(one),
            }),
            commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
            abridged: BTreeSet::new(),
        },
        aiperf: None,
        workers: vec![series("a"), series("b")],
        gpus: vec![gpu_series()],
        requests: Some(requests()),
        node: Some(NodeFacts::default()),
    }
}

fn worker(address: &str) -> WorkerSummary {
    let (one, two) = (Decimal::ONE, Decimal::TWO);
    WorkerSummary {
        address: address.to_owned(),
        seconds: 60,
        samples: 60,
        timeouts: 1,
        failures: 1,
        resets: 0,
        served: 30,
        peak_in_flight: 8,
        mean_in_flight: two,
        rate_per_second: one,
        seconds_per_request: Some(two),
        pace: Some(Pace {
            unit: Unit::Tokens,
            mean: one,
            best: two,
        }),
        speed: Some(WorkerSpeed {
            token_ms: one,
            batch: one,
            peers: Some(AgainstPeers {
                percent: Decimal::ONE_HUNDRED,
                within: one,
            }),
        }),
        engine: Some(EngineWork {
            tflops: Some(one),
            gb_per_second: Some(one),
        }),
        drift: Some(Drift {
            first: one,
            last_but_one: Some(one),
            last: one,
        }),
        still_seconds: 6,
        still_in_flight: 4,
        frozen_seconds: 1,
        refused_at_end: Some(1),
        peak_waiting: Some(1),
    }
}

fn gpu(uuid: &str) -> GpuSummary {
    let mark = Some(Mark { value: 1, at: Some(2) });
    GpuSummary {
        uuid: uuid.to_owned(),
        index: Some(1),
        pods: BTreeSet::new(),
        foreign_pods: 1,
        readings: 5,
        sm_mhz: Some(1),
        memory_mhz: Some(1),
        watts: Some(1),
        busy_percent: Some(1),
        celsius: Some(1),
        used_mib: Some(1),
        reasons: Some(1),
        slowed: mark,
        held_back_ms: mark,
        pcie_generation: Some(1),
        pcie_width: Some(1),
        xid: mark,
        double_bit_errors: mark,
        remapped_rows: mark,
        remap_failed: true,
        pcie_replays: mark,
        nvlink_errors: mark,
        idle_readings: 5,
        idle_busy: mark,
        idle_busy_percent: Some(1),
    }
}

fn series(address: &str) -> WorkerSeries {
    let reading = |second: i64| Reading {
        in_flight: 2,
        started: 10 * second,
        finished: 9 * second,
        tokens: Some(900 * second),
        bytes: Some(900 * second),
        busy_ms: Some(900 * second),
        waiting: Some(1),
        engine: Engine {
            gaps: Some(900 * second),
            gap_us: Some(900 * second),
            steps: Some(900 * second),
            prefill_ms: Some(second),
            queue_ms: Some(second),
            gflop: Some(second),
            moved_mb: Some(second),
        },
    };
    WorkerSeries {
        address: address.to_owned(),
        samples: (0..12)
            .map(|second| Sample(second, Scrape::Reading(reading(second))))
            .collect(),
    }
}

fn gpu_series() -> GpuSeries {
    let mut reading = gpus::GpuReading::default();
    for field in Field::ALL {
        reading.set(field, 1);
    }
    GpuSeries {
        uuid: "GPU-a".to_owned(),
        index: Some(0),
        pods: BTreeSet::new(),
        foreign_pods: 1,
        samples: vec![GpuSample(1, reading), GpuSample(2, reading)],
    }
}

fn requests() -> RequestTimes {
    let times = || Distribution {
        over_time: vec![Quantiles {
            from: 1,
            median: 1,
            p90: 1,
            p99: 1,
        }],
        cdf: vec![CdfPoint(500, 1)],
    };
    RequestTimes {
        count: 5,
        unread: 1,
        seconds: 1,
        every: 1,
        time_to_first_token: times(),
        inter_token_latency: times(),
        request_latency: times(),
    }
}

/// Every number of a document, as JSON pointers; decimals are texts.
fn numbers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    add_numbers(value, "", &mut found);
    found
}

fn add_numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::String(text) if text.parse::<Decimal>().is_ok() => found.push(path.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add_numbers(item, &format!("{path}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                add_numbers(field, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// The log of a pod that prints this payload.
fn printed(payload: &Value) -> String {
    let kind = match payload["record"]["outcome"]["report"] {
        Value::Null => "FAILURE",
        _ => "RESULT",
    };
    format!("=====PERFVAL-{kind}-BEGIN {NONCE}=====\n{payload}\n=====PERFVAL-{kind}-END {NONCE}=====\n")
}

fn judged(record: &TrialRecord) {
    let spec: PerfValidationSpec = serde_json::from_value(json!({
        "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}},
        "gates": [
            {"name": "a", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500"},
            {"name": "b", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90", "scaling": "ByGPUShare"},
            {"name": "c", "metric": "MemoryBandwidthPercent", "operator": ">=", "threshold": "90"},
        ],
    }))
    .expect("a spec");
    let evidence = Evidence {
        product: Some("NVIDIA H200"),
        ..Evidence::new(record, Share { gpus: 1, node_gpus: 2 })
    };
    judge(evidence, &spec);
}

#[test]
fn a_record_with_an_absurd_number_is_refused() {
    let payload = serde_json::to_value(full()).expect("JSON");
    assert!(
        matches!(find(&printed(&payload), NONCE), Framed::Complete(_)),
        "as it is"
    );
    let paths = numbers(&payload);
    assert!(paths.len() > 300, "{}", paths.len());
    for path in paths {
        for absurd in [
            "10000000000000000",
            "-10000000000000000",
            "79228162514264337593543950335",
        ] {
            let mut lying = payload.clone();
            let number = lying.pointer_mut(&path).expect("it is there");
            *number = if number.is_string() {
                absurd.into()
            } else {
                serde_json::from_str(absurd).expect("a number")
            };
            match find(&printed(&lying), NONCE) {
                Framed::Malformed(_) => {}
                // Numbers that are only drawn make no record unusable.
                Framed::Complete(read) if path.starts_with("/requests/") => assert_eq!(read.requests, None, "{path}"),
                _ => panic!("{path} = {absurd} is taken over"),
            }
        }
    }
}

#[test]
fn the_version_and_the_node_of_a_record_are_cut() {
    let mut forged = serde_json::to_value(full()).expect("JSON");
    for path in ["/record/outcome/report/aiperfVersion", "/record/nodeCpu/node"] {
        *forged.pointer_mut(path).expect("it is there") = "0".repeat(10_000).into();
    }
    let Framed::Complete(Payload { record, .. }) = find(&printed(&forged), NONCE) else {
        panic!("a record")
    };
    assert_eq!(record.node_cpu.expect("CPUs").node.len(), 253);
    let Outcome::Report(report) = record.outcome else {
        panic!("a report")
    };
    assert_eq!(report.aiperf_version.expect("a version").len(), 40);
}

#[test]
fn a_record_of_more_workers_or_gpus_than_any_node_has_is_refused() {
    for path in [
        "/record/workers",
        "/record/gpus/gpus",
        "/record/outcome/report/errors",
        "/workers",
        "/gpus",
    ] {
        let with = |entries| {
            let mut lying = serde_json::to_value(full()).expect("JSON");
            let list = lying.pointer_mut(path).expect("it is there");
            *list = vec![list[0].clone(); entries].into();
            find(&printed(&lying), NONCE)
        };
        assert!(matches!(with(MOST_PER_NODE), Framed::Complete(_)), "{path}");
        match with(MOST_PER_NODE + 1) {
            Framed::Malformed(why) => assert!(why.contains("at most 64"), "{path}: {why}"),
            _ => panic!("{path} is taken over"),
        }
    }
}

/// A field that nothing reads takes memory too: each empty object that is kept takes hundreds of bytes.
#[test]
fn a_record_of_more_objects_than_any_runner_prints_is_refused() {
    let mut payload = serde_json::to_value(full()).expect("JSON");
    payload["record"]["commit"] = vec![json!({}); 50_000].into();
    match find(&printed(&payload), NONCE) {
        Framed::Malformed(why) => assert!(why.contains("objects and lists"), "{why}"),
        _ => panic!("it is taken over"),
    }
}

/// Users of the namespace can change what a run saved.
#[test]
fn saved_results_of_more_than_any_run_are_refused() {
    let gzip = |payload: &Value| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        serde_json::to_writer(&mut gzip, payload).expect("JSON");
        gzip.finish().expect("packed")
    };
    let mut payload = serde_json::to_value(full()).expect("JSON");
    let honest = gzip(&payload);
    payload["record"]["commit"] = vec![json!({}); 50_000].into();
    let packed = gzip(&payload);
    match recorded(&packed).record.outcome {
        Outcome::Failure(Failure::Malformed { message }) => assert!(message.contains("objects and lists"), "{message}"),
        _ => panic!("it is taken over"),
    }
    let read = |keys: &[String], packed: &[u8]| {
        let all = keys.iter().map(|key| (key.as_str(), packed));
        SavedRun::default().with(all).map(|saved| saved.records.len())
    };
    let keys: Vec<String> = (1..=MOST_TRIALS + 1)
        .map(|trial| format!("trial-{trial}.json.gz"))
        .collect();
    let why = read(&keys[..1], &packed).expect_err("too many objects");
    assert!(why.contains("objects and lists"), "{why}");
    assert_eq!(read(&keys[1..], &honest), Ok(MOST_TRIALS));
    assert!(read(&keys, &honest).is_err_and(|why| why.contains("trials")));
}

#[test]
fn a_failure_with_an_absurd_number_is_refused() {
    let all_failed = Failure::AllFailed {
        failed: 7,
        errors: Vec::new(),
    };
    for failure in [all_failed, Failure::TimedOut { seconds: 7 }] {
        let record = TrialRecord {
            outcome: Outcome::Failure(failure),
            ..full().record
        };
        let text = printed(&serde_json::to_value(Payload::new(record)).expect("JSON"));
        assert!(matches!(find(&text, NONCE), Framed::Complete(_)), "{text}");
        let lying = text.replace(":7", ":10000000000000000");
        assert!(matches!(find(&lying, NONCE), Framed::Malformed(_)), "{lying}");
    }
}

#[test]
fn any_mixture_of_numbers_within_the_bounds_can_be_judged() {
    let record = serde_json::to_value(full().record).expect("JSON");
    let paths = numbers(&record);
    let edges = [
        "1000000000000000",
        "-1000000000000000",
        "0.0000000000000000000000000001",
        "0",
        "1",
        "7",
    ];
    let mut random = Rng::with_seed(7);
    for _ in 0..2000 {
        let mut lying = record.clone();
        for path in paths.iter().filter(|path| !path.ends_with("exitCode")) {
            if random.usize(..3) > 0 {
                put(&mut lying, path, edges[random.usize(..edges.len())]);
            }
        }
        judged(&serde_json::from_value(lying).expect("within the bounds"));
    }
}

/// Puts a number in, if its field can have it.
fn put(payload: &mut Value, path: &str, number: &str) {
    let at = payload.pointer_mut(path).expect("it is there");
    if at.is_string() {
        *at = number.into();
    } else if !number.contains('.') {
        *at = serde_json::from_str(number).expect("a number");
    }
}

#[test]
fn every_number_at_its_bound_can_be_judged_and_summed_up() {
    let payload = serde_json::to_value(full()).expect("JSON");
    for edge in [
        "1000000000000000",
        "-1000000000000000",
        "0.0000000000000000000000000001",
    ] {
        let mut lying = payload.clone();
        for path in &numbers(&payload) {
            // Seconds and requests have narrower bounds of their own.
            let narrow = path.starts_with("/requests/") || path.ends_with("exitCode") || path.contains("samples");
            if !narrow {
                put(&mut lying, path, edge);
            }
        }
        let Framed::Complete(read) = find(&printed(&lying), NONCE) else {
            panic!("{edge} is within the bounds");
        };
        judged(&read.record);
        workers::summarize(&read.workers, read.record.outcome.measured_seconds());
    }
}

#[test]
fn a_frame_larger_than_any_runner_prints_is_refused() {
    let mut payload = full();
    payload.record.scrape_errors = BTreeMap::from([("x".repeat(FRAME_BYTES), 1)]);
    let text = printed(&serde_json::to_value(&payload).expect("JSON"));
    match find(&text, NONCE) {
        Framed::Malformed(why) => assert!(why.contains("bytes"), "{why}"),
        _ => panic!("it is taken over"),
    }
}

#[test]
fn an_export_that_does_not_fit_into_a_frame_is_left_out_of_it() {
    let export = format!("{{\"filler\": \"{}\"}}", "x".repeat(FRAME_BYTES));
    let payload = full().with_export(&export).expect("JSON");
    match find(&frame(&payload).expect("a frame"), NONCE) {
        Framed::Complete(read) => {
            assert!(read.aiperf.is_none());
            assert_eq!(read.record, payload.record);
        }
        _ => panic!("it is refused"),
    }
}
