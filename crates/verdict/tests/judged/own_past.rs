//! Gates on what a worker's own GPU did before.

use perfval_api::{DecodeSpeed, GateResult, TrialOutcome};
use perfval_verdict::gate::Share;
use perfval_verdict::trial::{Evidence, judge};
use perfval_verdict::workers::WorkerSummary;

use crate::earlier::{after, beside_earlier_runs, closed};
use crate::{close_next, device, evidence, pods, sample, spec, speed, spend_the_latency_in_workers, with_gate, worker};

/// A GPU that lost 18 % against its own past passed with a warning.
#[test]
fn a_gate_on_the_own_past_fails_a_gpu_that_became_slow() {
    let spec = with_gate("OwnPastPercent", "90");
    let earlier = ["10", "10.1", "9.9", "10", "10", "10.1"];
    let mut slow = after(&earlier);
    closed(&mut slow, &spec, "12.2");
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
    closed(&mut sound, &spec, "10.6");
    assert_eq!(sound.state.trials[0].outcome, Some(TrialOutcome::Pass));
    let mut young = after(&earlier[..2]);
    closed(&mut young, &spec, "12.2");
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
    let slow = |name: &str| WorkerSummary {
        speed: Some(speed(12, None)),
        ..worker(name, 40, 128)
    };
    let mut record = sample("success", vec![slow("a"), slow("b")]);
    spend_the_latency_in_workers(&mut record);
    let pods = &pods()[..2];
    let evidence = Evidence {
        share: Share { gpus: 2, node_gpus: 8 },
        devices: &status.state.plan.device_ids,
        ..evidence(&record, pods)
    };
    let judged = judge(evidence, &spec());
    close_next(&spec(), &mut status, &judged);
    let mut percents = beside_earlier_runs(&status);
    percents.sort();
    assert_eq!(
        percents,
        [Some("100 ± 8.7 of 6".into()), Some("83.3 ± 7.2 of 6".to_owned())]
    );
    assert_eq!(status.state.trials[0].slow_gpus, ["GPU-a"]);
}
