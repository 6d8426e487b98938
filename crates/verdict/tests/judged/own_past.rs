//! Gates on what a worker's own GPU did before.

use chrono::DateTime;
use perfval_api::{DecodeSpeed, GateResult, TrialOutcome, TrialState};
use perfval_verdict::close::close;
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, judge};
use perfval_verdict::workers::{WorkerSpeed, WorkerSummary};
use rust_decimal::Decimal;
use serde_json::json;

use crate::earlier::{after, closed};
use crate::{device, evidence, pods, sample, spec, spend_the_latency_in_workers, worker};

/// A GPU that lost 18 % against its own past passed with a warning.
#[test]
fn a_gate_on_the_own_past_fails_a_gpu_that_became_slow() {
    let with_gate = |threshold: &str| {
        let mut spec = spec();
        let gate = json!({"name": "past", "metric": "OwnPastPercent", "operator": ">=", "threshold": threshold});
        spec.gates.push(serde_json::from_value(gate).expect("a gate"));
        spec
    };
    let earlier = ["10", "10.1", "9.9", "10", "10", "10.1"];
    let mut slow = after(&earlier);
    closed(&mut slow, &with_gate("90"), "12.2");
    let [.., gate] = slow.gates.as_slice() else {
        panic!("no gates");
    };
    assert_eq!(
        (gate.observed.as_deref(), gate.result),
        (Some("89.2"), GateResult::Missed)
    );
    assert_eq!(slow.state.trials[0].outcome, Some(TrialOutcome::Miss));
    assert_eq!(slow.state.trials[0].causes, ["SlowWorker"]);

    let mut sound = after(&earlier);
    closed(&mut sound, &with_gate("90"), "10.6");
    assert_eq!(sound.state.trials[0].outcome, Some(TrialOutcome::Pass));
    let mut young = after(&earlier[..2]);
    closed(&mut young, &with_gate("90"), "12.2");
    assert_eq!(
        young.state.trials[0].outcome,
        Some(TrialOutcome::Pass),
        "nothing to compare with yet"
    );
    assert_eq!(young.gates.last().map(|gate| gate.result), Some(GateResult::Unmeasured));
}

/// Two workers, each with its own past.
#[test]
fn each_of_several_workers_has_its_own_past() {
    let mut status = after(&["10"; 6]);
    status.placement.as_mut().expect("a placement").gpus = 2;
    status.state.plan.device_ids = ["a", "b"].map(device).into();
    status.state.worker_pods = pods()[..2].to_vec();
    for entry in &mut status.state.history {
        let other = DecodeSpeed {
            token_ms: "12".into(),
            gpu: Some("GPU-b".into()),
            ..entry.speeds[0].clone()
        };
        entry.speeds.push(other);
    }
    let speed = |name: &str, token_ms: i64| WorkerSummary {
        speed: Some(WorkerSpeed {
            token_ms: token_ms.into(),
            batch: Decimal::from(200),
            peers: None,
        }),
        ..worker(name, 40, 128)
    };
    let mut record = sample("success", vec![speed("a", 12), speed("b", 12)]);
    spend_the_latency_in_workers(&mut record);
    let pods = &pods()[..2];
    let evidence = Evidence {
        share: Share { gpus: 2, node_gpus: 8 },
        devices: &status.state.plan.device_ids,
        ..evidence(&record, pods)
    };
    let judged = judge(evidence, &spec());
    status.state.trials.push(TrialState {
        number: 1,
        ..TrialState::default()
    });
    close(&spec(), &mut status, 1, &judged, DateTime::UNIX_EPOCH);
    let mut percents: Vec<_> = status
        .state
        .workers
        .iter()
        .map(|load| {
            load.percent_of_earlier_runs
                .as_ref()
                .map(|speed| format!("{speed} of {}", speed.of))
        })
        .collect();
    percents.sort();
    assert_eq!(
        percents,
        [Some("100 ± 8.7 of 6".into()), Some("83.3 ± 7.2 of 6".to_owned())]
    );
    assert_eq!(status.state.trials[0].slow_gpus, ["GPU-a"]);
}
