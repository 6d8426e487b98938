//! Whole runs with simulated engines: how often a healthy GPU is blamed, and how often a slow one is found.

use std::collections::BTreeSet;

use chrono::DateTime;
use perfval_api::{
    DeviceStatus, Metric, PerfValidationSpec, PerfValidationStatus, Statistic, TrialOutcome, TrialState, WorkerPod,
};
use perfval_testkit::random::Random;
use perfval_verdict::aiperf::Report;
use perfval_verdict::close::close;
use perfval_verdict::frame::{Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, judge};
use perfval_verdict::workers::{Engine, Reading, Sample, Scrape, WorkerSeries, summarize};
use rust_decimal::Decimal;
use serde_json::json;

/// Windows of 2 s in a trial of a minute.
const WINDOWS: i64 = 30;
/// Noise of the ratio of two workers in one window, as on two H200s.
const PAIR: f64 = 0.05;
/// Requests that are decoded together.
const BATCH: i64 = 200;

/// A worker of this speed (logarithm) through a trial.
fn worker(name: &str, speed: f64, random: &mut Random) -> WorkerSeries {
    let (mut gaps, mut gap_us, mut steps, mut finished) = (0, 0, 0, 0);
    let samples = (0..=WINDOWS).map(|window| {
        let reading = Reading {
            in_flight: BATCH,
            started: finished + BATCH,
            finished,
            tokens: Some(gaps),
            engine: Engine {
                gaps: Some(gaps),
                gap_us: Some(gap_us),
                steps: Some(steps),
                ..Engine::default()
            },
            ..Reading::default()
        };
        let token_us = 10_000.0 * (-speed - PAIR / std::f64::consts::SQRT_2 * random.normal()).exp();
        let made = 200 * BATCH;
        gaps += made;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "far below 2^53"
        )]
        let took = (token_us * made as f64) as i64;
        gap_us += took;
        steps += 200;
        finished += 400;
        Sample(2 * window, Scrape::Reading(reading))
    });
    WorkerSeries {
        address: name.to_owned(),
        samples: samples.collect(),
    }
}

fn spec(gates: &[serde_json::Value]) -> PerfValidationSpec {
    let throughput = json!({"name": "t", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"});
    let gates: Vec<_> = std::iter::once(&throughput).chain(gates).collect();
    serde_json::from_value(json!({
        "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "trials": {"rule": "All", "max": 20}, "gates": gates,
    }))
    .expect("a spec")
}

/// The status of a run of `trials` trials with workers of these speeds.
fn run(speeds: &[f64], trials: i64, spec: &PerfValidationSpec, random: &mut Random) -> PerfValidationStatus {
    let names: Vec<String> = (0..speeds.len()).map(|at| format!("w{at}")).collect();
    // The GPUs of a worker: one has the worker's name, several have numbers.
    let gpus = |name: &String| -> Vec<String> {
        match spec.gpus_per_worker() {
            1 => vec![name.clone()],
            each => (0..each).map(|gpu| format!("{name}-{gpu}")).collect(),
        }
    };
    let pod = |name: &String| WorkerPod {
        pod: name.clone(),
        uid: name.clone(),
        address: Some(name.clone()),
        devices: gpus(name).iter().map(|gpu| format!("n1/{gpu}")).collect(),
        ..WorkerPod::default()
    };
    let device = |name: String| DeviceStatus {
        pool: "n1".into(),
        uuid: Some(format!("GPU-{name}")),
        name,
    };
    let pods: Vec<WorkerPod> = names.iter().map(pod).collect();
    let devices: Vec<DeviceStatus> = names.iter().flat_map(gpus).map(device).collect();
    let mut status = PerfValidationStatus::default();
    for number in 1..=trials {
        let series: Vec<WorkerSeries> = names
            .iter()
            .zip(speeds)
            .map(|(name, speed)| worker(name, *speed, random))
            .collect();
        let throughput = (Statistic::Avg, Decimal::ONE_THOUSAND);
        let report = Report {
            succeeded: 10,
            complete: true,
            metrics: [(Metric::OutputTokenThroughput, [throughput].into())].into(),
            ..Report::default()
        };
        let record = TrialRecord {
            workers: summarize(&series, None),
            ..TrialRecord::new(Outcome::Report(Box::new(report)))
        };
        let evidence = Evidence {
            before: &pods,
            after: &pods,
            devices: &devices,
            ..Evidence::new(&record, Share { gpus: 8, node_gpus: 8 })
        };
        let judged = judge(evidence, spec);
        status.state.trials.push(TrialState {
            number,
            ..TrialState::default()
        });
        close(spec, &mut status, number, &judged, DateTime::UNIX_EPOCH);
    }
    status
}

/// The GPUs that a run blames, by name or by a cause.
fn blamed(status: &PerfValidationStatus) -> Vec<String> {
    let trials = &status.state.trials;
    let mut gpus: BTreeSet<String> = trials.iter().flat_map(|trial| trial.slow_gpus.clone()).collect();
    let mut of_trials = trials.iter().flat_map(|trial| &trial.causes);
    let caused = of_trials.any(|cause| cause == "SlowWorker");
    let found = status.diagnosis.iter().any(|finding| finding.cause == "SlowWorker");
    if gpus.is_empty() && (caused || found) {
        gpus.insert("?".into());
    }
    gpus.into_iter().collect()
}

/// Healthy GPUs whose speeds differ by this much (standard deviation, percent).
fn healthy(workers: usize, percent: f64, random: &mut Random) -> Vec<f64> {
    (0..workers).map(|_| percent / 100.0 * random.normal()).collect()
}

fn times(runs: usize, mut holds: impl FnMut() -> bool) -> usize {
    (0..runs).filter(|_| holds()).count()
}

fn median_of_others(speeds: &[f64], at: usize) -> f64 {
    let mut others = speeds.to_vec();
    others.remove(at);
    others.sort_by(f64::total_cmp);
    let middle = others.len() / 2;
    if others.len() % 2 == 1 {
        others[middle]
    } else {
        f64::midpoint(others[middle - 1], others[middle])
    }
}

#[test]
fn every_gpu_of_a_slow_worker_is_named() {
    let mut spec = spec(&[]);
    spec.dynamo_mut().worker.gpus = 2;
    let status = run(&[0.0, 0.0, -0.3, 0.0], 2, &spec, &mut Random(3));
    assert_eq!(blamed(&status), ["GPU-w2-0", "GPU-w2-1"]);
    let found = status.diagnosis.iter().find(|finding| finding.cause == "SlowWorker");
    let evidence = &found.expect("a finding").evidence;
    assert!(
        evidence.starts_with("worker w2 (n1/w2-0, n1/w2-1, GPU-w2-0, GPU-w2-1) decodes at "),
        "{evidence}"
    );
}

#[test]
fn a_healthy_gpu_is_blamed_in_one_run_of_a_hundred_at_most() {
    let (random, spec) = (&mut Random(7), &spec(&[]));
    for (workers, percent, trials, runs) in [
        (8, 1.4, 2, 500),
        (8, 2.0, 2, 500),
        (8, 2.0, 20, 200),
        (8, 1.4, 20, 100),
        (2, 1.4, 2, 500),
        (4, 2.0, 4, 200),
    ] {
        let found = times(runs, || {
            let speeds = healthy(workers, percent, random);
            !blamed(&run(&speeds, trials, spec, random)).is_empty()
        });
        println!("{workers} GPUs, {percent} %, {trials} trials: {found} of {runs} runs blame a healthy GPU");
        assert!(
            found * 100 <= runs,
            "{workers} GPUs, {percent} %, {trials} trials: {found} of {runs}"
        );
    }
}

#[test]
fn a_gpu_that_is_a_tenth_slower_than_its_peers_is_found_and_no_other() {
    let (random, spec) = (&mut Random(11), &spec(&[]));
    for (workers, percent) in [(8, 1.4), (8, 2.0), (2, 1.4)] {
        let runs = 300;
        let found = times(runs, || {
            let mut speeds = healthy(workers, percent, random);
            speeds[0] = median_of_others(&speeds, 0) + 0.9_f64.ln();
            blamed(&run(&speeds, 2, spec, random)) == ["GPU-w0"]
        });
        println!("{workers} GPUs, {percent} %: {found} of {runs} runs find the slow GPU alone");
        assert!(
            found * 100 >= runs * 99,
            "{workers} GPUs, {percent} %: {found} of {runs}"
        );
    }
}

#[test]
fn a_gpu_that_would_have_been_named_is_named() {
    let (random, spec) = (&mut Random(13), &spec(&[]));
    for workers in [2, 8] {
        let (runs, mut claims) = (400, 0);
        let found = times(runs, || {
            let mut speeds = healthy(workers, 1.0, random);
            let status = run(&speeds, 2, spec, random);
            let claim = status.state.metrics.expect("metrics").detectable_slowdown_percent;
            let Some(percent) = claim.and_then(|percent| percent.parse::<f64>().ok()) else {
                return false;
            };
            claims += 1;
            speeds[0] = median_of_others(&speeds, 0) + (1.0 - percent / 100.0).ln();
            blamed(&run(&speeds, 2, spec, random)).contains(&"GPU-w0".to_owned())
        });
        println!("{workers} GPUs: {found} of {claims} claims hold");
        assert!(claims * 10 >= runs * 9, "{claims} claims in {runs} runs");
        assert!(found * 100 >= claims * 93, "{workers} GPUs: {found} of {claims}");
    }
}

#[test]
fn most_of_a_node_slow_by_a_fifth_is_named_and_misses_the_gate() {
    let gate = json!({"name": "slowest", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90"});
    let (random, plain, gated) = (&mut Random(17), &spec(&[]), &spec(&[gate]));
    for (workers, slow) in [(8, 4), (8, 5), (8, 6), (8, 7), (4, 3), (6, 4), (3, 2), (5, 4)] {
        let runs = 40;
        let mut slowed = |spec| {
            let mut speeds = healthy(workers, 1.4, random);
            for speed in &mut speeds[..slow] {
                *speed += 0.8_f64.ln();
            }
            run(&speeds, 2, spec, random)
        };
        let named = times(runs, || {
            let status = slowed(plain);
            let text: Vec<&str> = status
                .diagnosis
                .iter()
                .map(|finding| finding.evidence.as_str())
                .collect();
            assert!(!text.concat().contains("would have been named"), "{text:?}");
            let blamed = blamed(&status);
            let of_slow = |gpu: &String| (0..slow).any(|at| *gpu == format!("GPU-w{at}"));
            blamed.len() >= slow.min(4) && blamed.iter().all(of_slow)
        });
        let missed = times(runs, || {
            let trials = slowed(gated).state.trials;
            trials.iter().all(|trial| trial.outcome == Some(TrialOutcome::Miss))
        });
        println!("{slow} of {workers} slow: named in {named}, gate missed in {missed} of {runs}");
        assert!(
            named >= runs - 1 && missed >= runs - 1,
            "{slow} of {workers}: {named}, {missed} of {runs}"
        );
    }
}
