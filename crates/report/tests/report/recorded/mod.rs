//! Runs made of recorded trials, judged and saved by the code that judges and saves them in a cluster.

mod saved;

use std::collections::BTreeMap;

use perfval_api::DeviceStatus;
use perfval_verdict::gpus::{Field, GpuReading, GpuSample, GpuSeries};
use perfval_verdict::requests::RequestTimes;
use perfval_verdict::workers::WorkerSeries;
use serde_json::{Value, json};

pub use saved::Saved;
use saved::{Line, lines, one_run, root, saved};

/// Every run of an ordinary size.
pub fn all() -> Vec<Saved> {
    vec![
        healthy(),
        slow(),
        shared(),
        broken(),
        frozen(),
        starved(),
        with_requests(),
    ]
}

pub fn sequential() -> Value {
    json!({"rule": "Sequential", "errorBoundPercent": 5, "max": 8})
}

/// Two real H200s, nothing wrong.
pub fn healthy() -> Saved {
    let known = |line: &Line| line.fault == "Healthy" && line.router == "LeastLoaded" && on_two_h200(line);
    let mut run = one_run(lines(known));
    run.trials.truncate(8);
    let gates = json!([
        {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "13500", "scaling": "PerGPU"},
        {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000"},
        {"name": "slowest-worker", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90", "mode": "Warn"},
    ]);
    saved("h200-healthy", &run, &gates, &sequential())
}

fn on_two_h200(line: &Line) -> bool {
    let is_h200 = line
        .hardware
        .as_ref()
        .is_some_and(|hardware| hardware.product.contains("H200"));
    let two = line.gpus.0 == 2;
    line.place == "silicon" && is_h200 && two && line.trials.iter().all(|trial| trial.record.gpus.is_some())
}

/// Two real H200s, and another process on one of them for a part of the time.
pub fn slow() -> Saved {
    let known = |line: &Line| line.fault == "SlowGpu" && line.router == "LeastLoaded" && on_two_h200(line);
    let run = one_run(lines(|line| known(line) && line.conditions["share"] == json!(0.3)));
    let gates = json!([
        {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "13500", "scaling": "PerGPU"},
        {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000"},
        {"name": "slowest-worker", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "95"},
    ]);
    saved(
        "h200-slow-gpu",
        &run,
        &gates,
        &json!({"rule": "All", "errorBoundPercent": 5, "max": 3}),
    )
}

/// Two real H200s, one of them busy for four fifths of the time, with what nvidia-smi said of both in the same seconds.
pub fn shared() -> Saved {
    let known =
        |line: &Line| line.fault == "SlowGpu" && line.conditions["share"] == json!(0.8) && line.place == "silicon";
    let mut run = one_run(lines(known));
    run.hardware.as_mut().expect("hardware").devices = [0, 1]
        .map(|gpu| DeviceStatus {
            pool: "silicon".to_owned(),
            name: format!("gpu-{gpu}"),
            uuid: Some(uuid(gpu)),
        })
        .to_vec();
    for trial in &mut run.trials {
        for (gpu, worker) in (0..).zip(trial.before.iter_mut().zip(&mut trial.after)) {
            let held = vec![uuid(gpu)];
            (worker.0.devices, worker.1.devices) = (held.clone(), held);
        }
        trial.gpus = telemetry();
    }
    let gates = json!([
        {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "16000", "scaling": "PerGPU"},
        {"name": "itl-p99", "metric": "InterTokenLatency", "statistic": "P99", "operator": "<=", "threshold": "15"},
    ]);
    saved("h200-shared-gpu", &run, &gates, &json!({"rule": "Single"}))
}

fn uuid(gpu: i64) -> String {
    format!("GPU-b51c9ad4-0d6e-4d3a-9b1c-2f4e8d7a6c0{gpu}")
}

/// The looks at both GPUs began seven seconds before the runner did.
fn telemetry() -> Vec<GpuSeries> {
    const BEFORE: i64 = 7;
    let path = root().join("crates/verdict/tests/fixtures/telemetry/h200-shared.csv");
    let text = std::fs::read_to_string(path).expect("a recording");
    let mut series: BTreeMap<i64, GpuSeries> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let values: Vec<i64> = line.split(',').map(|value| value.parse().expect("a number")).collect();
        let (second, gpu) = (values[0] - BEFORE, values[1]);
        let mut reading = GpuReading::default();
        let fields = [
            (Field::SmClock, 2),
            (Field::MemoryClock, 3),
            (Field::Power, 4),
            (Field::Temperature, 5),
            (Field::Utilisation, 6),
            (Field::Reasons, 7),
        ];
        for (field, column) in fields {
            reading.set(field, values[column]);
        }
        let of_gpu = series.entry(gpu).or_insert_with(|| GpuSeries {
            uuid: uuid(gpu),
            index: Some(gpu),
            ..GpuSeries::default()
        });
        if second >= 0 {
            of_gpu.samples.push(GpuSample(second, reading));
        }
    }
    series.into_values().collect()
}

/// Simulated engines on the lab, one of them killed in each trial.
pub fn broken() -> Saved {
    of_the_lab("lab-dead-worker", "Dead", &json!({"rule": "All", "max": 3}))
}

/// The same, one of them stopped for ten seconds in each trial.
pub fn frozen() -> Saved {
    of_the_lab("lab-frozen-worker", "FrozenTenSeconds", &sequential())
}

/// The same, with a load generator that has no CPU: nothing can be trusted.
pub fn starved() -> Saved {
    of_the_lab("lab-starved-generator", "StarvedGenerator", &sequential())
}

fn of_the_lab(name: &str, fault: &str, rule: &Value) -> Saved {
    let mut known = lines(|line| line.place == "lab" && line.fault == fault && line.router == "LeastLoaded");
    known.truncate(1);
    let gates = json!([
        {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "211.5"},
        {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "1492.7"},
    ]);
    saved(name, &one_run(known), &gates, rule)
}

/// As many trials as a spec allows, each with the samples of eight workers and as many points of its requests as there may be.
pub fn large() -> Saved {
    let known = |line: &Line| line.fault == "Healthy" && line.router == "LeastLoaded" && on_two_h200(line);
    let mut run = one_run(lines(known));
    for trial in &mut run.trials {
        trial.gpus = telemetry();
        trial.requests = Some(requests(12_000));
        trial.series = (0..8).filter_map(|worker| eighth(&trial.series, worker)).collect();
    }
    run.trials = run.trials.iter().cycle().take(20).cloned().collect();
    let gates = json!([{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"}]);
    saved("large", &run, &gates, &json!({"rule": "All", "max": 20}))
}

/// Times of this many requests, a hundred of them in each second.
pub fn requests(count: u32) -> RequestTimes {
    RequestTimes::read(record(count).as_bytes()).expect("it is text")
}

/// That record: in each second the times of a hundred requests, evenly spread, and each second slower than the one before it.
pub fn record(requests: u32) -> String {
    let line = |request: u32| {
        let (began, slow) = (u64::from(request) * 10_000_000, f64::from(request % 100));
        let drift = 1.0 + f64::from(request / 100) / 10_000.0;
        // As long as a real line is.
        let rest = "x".repeat(900);
        format!(
            r#"{{"metadata": {{"benchmark_phase": "profiling", "request_start_ns": {began}, "x_request_id": "{rest}"}}, "metrics": {{"time_to_first_token": {{"value": {}}}, "inter_token_latency": {{"value": {}}}, "request_latency": {{"value": {}}}}}}}"#,
            drift * (60.0 + slow),
            drift * (7.0 + slow / 100.0),
            drift * (480.0 + slow)
        ) + "\n"
    };
    (0..requests).map(line).collect()
}

/// Two real H200s, each trial with a record of half a minute of requests.
pub fn with_requests() -> Saved {
    let known = |line: &Line| line.fault == "Healthy" && line.router == "LeastLoaded" && on_two_h200(line);
    let mut run = one_run(lines(known));
    run.trials.truncate(2);
    for trial in &mut run.trials {
        trial.requests = Some(requests(3000));
    }
    let gates = json!([{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"}]);
    saved("requests", &run, &gates, &json!({"rule": "All", "max": 2}))
}

fn eighth(series: &[WorkerSeries], worker: usize) -> Option<WorkerSeries> {
    let mut one = series.get(worker % 2)?.clone();
    one.address = format!("10.0.0.{worker}");
    Some(one)
}
