//! Trials as the runner recorded them: real AIPerf 0.13 against a real Dynamo 1.4.2 frontend and four mocker workers on two
//! busy cores, every router healthy and with one worker 10 × slower, frozen or without work.

use perfval_api::{DeviceStatus, GateResult, PerfValidationSpec, RouterMode, TrialOutcome, WorkerPod};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Payload, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, JudgedTrial, judge};
use perfval_verdict::workers::summarize;
use serde_json::json;

const FOUR: Share = Share { gpus: 4, node_gpus: 4 };

/// Gates that every recorded trial meets, so that only what the workers did can make it a miss.
fn lenient(router: RouterMode) -> PerfValidationSpec {
    let mut spec: PerfValidationSpec = serde_json::from_value(json!({
        "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}},
        "gates": [
            {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "100"},
            {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "100k"},
        ],
    }))
    .expect("a spec");
    spec.dynamo_mut().router_mode = router;
    spec
}

/// Judges a recording by its samples with today's rules.
fn judged(name: &str, router: RouterMode) -> JudgedTrial {
    let path = format!("tests/fixtures/trials/{name}.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let Payload {
        mut record, workers, ..
    } = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    record.workers = summarize(&workers, record.outcome.measured_seconds());
    judge(Evidence::new(&record, FOUR), &lenient(router))
}

fn causes(trial: &JudgedTrial) -> Vec<Cause> {
    trial.findings.iter().map(|(cause, _)| *cause).collect()
}

#[test]
fn every_recorded_trial_is_judged_by_its_workers() {
    use RouterMode::{Kv, LeastLoaded, PowerOfTwo, Random, RoundRobin};
    use TrialOutcome::{Invalid, Miss, Pass};
    let cases = [
        ("healthy-least-loaded", LeastLoaded, Pass, None),
        ("healthy-round-robin", RoundRobin, Pass, None),
        ("healthy-random", Random, Pass, None),
        ("healthy-kv", Kv, Pass, None),
        ("slow-least-loaded", LeastLoaded, Miss, Some(Cause::WorkerStall)),
        ("slow-round-robin", RoundRobin, Miss, Some(Cause::WorkerStall)),
        ("slow-random", Random, Miss, Some(Cause::WorkerStall)),
        ("slow-kv", Kv, Miss, Some(Cause::WorkerStall)),
        // The generator was short of CPU too (54 of 128 in flight, 12 % of the latency waited): no excuse.
        ("slow-power-of-two", PowerOfTwo, Miss, Some(Cause::WorkerStall)),
        (
            "frozen-10s-least-loaded",
            LeastLoaded,
            Pass,
            Some(Cause::TransientStall),
        ),
        // Frozen before the load came, and passed over by the frontend from then on.
        (
            "served-nothing-round-robin",
            RoundRobin,
            Invalid,
            Some(Cause::UnevenService),
        ),
        (
            "starved-power-of-two",
            PowerOfTwo,
            Invalid,
            Some(Cause::GeneratorStarved),
        ),
    ];
    for (name, router, outcome, cause) in cases {
        let verdict = judged(name, router);
        assert_eq!(
            (verdict.outcome, causes(&verdict).as_slice()),
            (outcome, cause.as_slice()),
            "{name}: {:?}",
            verdict.findings
        );
        let results: Vec<GateResult> = verdict.gates.iter().map(|gate| gate.result).collect();
        assert_eq!(results, [GateResult::Met; 2], "{name}");
    }
}

#[test]
fn only_the_slow_worker_is_reported() {
    for name in ["least-loaded", "round-robin", "random", "power-of-two"] {
        let verdict = judged(&format!("slow-{name}"), RouterMode::LeastLoaded);
        let evidence = &verdict.findings[0].1.evidence;
        assert!(evidence.starts_with("worker 127.0.9.4 took "), "{name}: {evidence}");
        assert!(
            !evidence.contains(';') || evidence.matches("worker ").count() == 1,
            "{name}: {evidence}"
        );
    }
}

/// One of two GPUs with a foreign load: 88.1 % ± 8.8 % of its peer's speed, so not beyond doubt, and below the gate.
#[test]
fn a_missed_gate_on_the_slowest_worker_reports_it_and_never_calls_all_alike() {
    let text = include_str!("fixtures/trials/slow-gpu-round-robin-h200.json");
    let Payload { record, .. } = serde_json::from_str(text).expect("a payload");
    let evidence = Evidence::new(&record, FOUR);
    let mut spec = lenient(RouterMode::RoundRobin);
    let gate = json!({"name": "slowest", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90"});
    assert_eq!(judge(evidence, &spec).outcome, TrialOutcome::Pass, "without the gate");
    spec.gates.push(serde_json::from_value(gate).expect("a gate"));
    let trial = judge(evidence, &spec);
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (TrialOutcome::Miss, vec![Cause::SlowWorker])
    );
    let said = &trial.findings[0].1.evidence;
    assert!(
        said.starts_with("worker 127.0.30.4 decodes at 88.1 % ± 8.8 % of its peers' speed")
            && said.ends_with("differs from its peers"),
        "{said}"
    );
    assert!(trial.slow_gpus.is_empty(), "the history of a GPU wants certainty");
}

/// One worker with tensor parallelism over two H100s, one of which another process used for 30 % of the time.
#[test]
fn a_gpu_that_others_use_explains_the_miss_of_the_only_worker() {
    let text = include_str!("fixtures/trials/shared-gpu-of-two-h100.json");
    let Payload { record, .. } = serde_json::from_str(text).expect("a payload");
    let uuids = [
        "GPU-9730c834-5e04-8582-1718-d40fef39894b",
        "GPU-f7090979-a314-0161-0905-35230fb5d63c",
    ];
    let devices: Vec<DeviceStatus> = [0, 1]
        .map(|n| DeviceStatus {
            pool: "gpu-node-1".to_owned(),
            name: format!("gpu-{n}"),
            uuid: Some(uuids[n].to_owned()),
        })
        .into();
    let worker = WorkerPod {
        pod: "pv-1-worker-0".to_owned(),
        address: Some("10.244.0.21".to_owned()),
        devices: vec!["gpu-node-1/gpu-0".to_owned(), "gpu-node-1/gpu-1".to_owned()],
        ..WorkerPod::default()
    };
    let mut spec = lenient(RouterMode::LeastLoaded);
    spec.dynamo_mut().worker.gpus = 2;
    spec.gates[0].threshold = serde_json::from_value(json!("15000")).expect("a threshold");
    let judged = |record: &TrialRecord| {
        let evidence = Evidence {
            before: std::slice::from_ref(&worker),
            after: std::slice::from_ref(&worker),
            devices: &devices,
            product: Some("NVIDIA H100 80GB HBM3"),
            ..Evidence::new(record, Share { gpus: 2, node_gpus: 2 })
        };
        judge(evidence, &spec)
    };
    let trial = judged(&record);
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (TrialOutcome::Miss, vec![Cause::GPUShared])
    );
    let evidence = &trial.findings[0].1.evidence;
    assert!(
        evidence.contains(uuids[1]) && !evidence.contains(uuids[0]),
        "{evidence}"
    );
    // Without the readings of its GPUs nothing explains the miss.
    let mut unread = record.clone();
    unread.gpus = None;
    assert_eq!(causes(&judged(&unread)), [Cause::BalancedDegradation]);
}
