//! Trials as the runner recorded them: real AIPerf 0.13 against a real Dynamo 1.4.2 frontend and four mocker workers on two
//! busy cores, every router healthy and with one worker 10 × slower, frozen or without work.

use perfval_api::{GateResult, PerfValidationSpec, RouterMode, TrialOutcome};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::Payload;
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, JudgedTrial, judge};
use perfval_verdict::workers::summarize;
use serde_json::json;

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

/// Judges a recording on what its samples say today.
fn judged(name: &str, router: RouterMode) -> JudgedTrial {
    let path = format!("tests/fixtures/trials/{name}.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let Payload {
        mut record, workers, ..
    } = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    record.workers = summarize(&workers, record.outcome.measured_seconds());
    let evidence = Evidence {
        record: &record,
        before: &[],
        after: &[],
        share: Share { gpus: 4, node_gpus: 4 },
        devices: &[],
        product: None,
    };
    judge(evidence, &lenient(router))
}

#[test]
fn every_recorded_trial_is_judged_for_what_its_workers_did() {
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
        let named: Vec<Cause> = verdict.findings.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(
            (verdict.outcome, named.as_slice()),
            (outcome, cause.as_slice()),
            "{name}: {:?}",
            verdict.findings
        );
        assert!(
            verdict.gates.iter().all(|gate| gate.result == GateResult::Met),
            "{name}"
        );
    }
}

#[test]
fn the_slow_worker_is_the_one_that_is_named() {
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
fn a_missed_gate_on_the_slowest_worker_names_it_and_never_says_that_all_are_alike() {
    let text = include_str!("fixtures/trials/slow-gpu-round-robin-h200.json");
    let Payload { record, .. } = serde_json::from_str(text).expect("a payload");
    let evidence = Evidence {
        record: &record,
        before: &[],
        after: &[],
        share: Share { gpus: 4, node_gpus: 4 },
        devices: &[],
        product: None,
    };
    let mut spec = lenient(RouterMode::RoundRobin);
    let gate = json!({"name": "slowest", "metric": "SlowestWorkerPercent", "operator": ">=", "threshold": "90"});
    assert_eq!(judge(evidence, &spec).outcome, TrialOutcome::Pass, "without the gate");
    spec.gates.push(serde_json::from_value(gate).expect("a gate"));
    let trial = judge(evidence, &spec);
    let causes: Vec<Cause> = trial.findings.iter().map(|(cause, _)| *cause).collect();
    assert_eq!((trial.outcome, causes), (TrialOutcome::Miss, vec![Cause::SlowWorker]));
    let said = &trial.findings[0].1.evidence;
    assert!(
        said.starts_with("worker 127.0.30.4 decodes at 88.1 % ± 8.8 % of its peers' speed")
            && said.ends_with("beyond doubt"),
        "{said}"
    );
    assert!(trial.slow_gpus.is_empty(), "the history of a GPU wants certainty");
}
