//! GPUs that are in use are waited for, never shared.

use perfval_api::{Phase, TimelineEntry, Verdict};
use perfval_e2e::{Holder, Validation, quick};
use perfval_verdict::diagnosis::cause::Cause;
use serde_json::{Value, json};

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn a_saturated_node_is_waited_for_and_then_reported() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-saturated").await;
    let holder = Holder::by_claim(&lab, &namespace, "holder", 8).await.holding().await;

    let mut at_once = quick("at-once", &namespace);
    at_once["spec"]["timeouts"]["sizing"] = json!("0s");
    let refused = Validation::create(&lab, at_once).await;
    let status = refused.ends(Verdict::Error).await;
    assert_eq!(status.reason.as_deref(), Some("Saturated"));
    let message = status.message.clone().unwrap_or_default();
    assert!(message.contains("gpu-node-1"), "the node's reason is named: {message}");

    let run = Validation::create(&lab, quick("waits", &namespace)).await;
    run.until("waiting for GPUs", |status| {
        status.phase == Some(Phase::Sizing) && status.reason.as_deref() == Some("Saturated")
    })
    .await;
    holder.leave().await;
    // The operator looks for free GPUs at once when an object goes, and otherwise every 30 to 36 s.
    refused.delete().await;
    run.until("it has its GPUs", |status| status.placement.is_some()).await;
    run.delete().await;
}

/// A run whose gate nothing can meet.
fn impossible(name: &str, namespace: &str) -> Value {
    let mut manifest = quick(name, namespace);
    // On a busy machine a trial of seconds may not show that two workers are alike, and then it does not miss by half.
    manifest["spec"]["placement"]["maxGPUs"] = json!(1);
    manifest["spec"]["trials"] = json!({"rule": "Sequential", "max": 8});
    manifest["spec"]["gates"] = json!([
        {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "100M"},
    ]);
    manifest
}

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn two_runs_at_once_never_share_a_gpu_and_each_has_its_own_verdict() {
    let (lab, _operator) = ready().await;
    let first = lab.namespace("e2e-two-a").await;
    let second = lab.namespace("e2e-two-b").await;
    let one = Validation::create(&lab, quick("one", &first)).await;
    let two = Validation::create(&lab, impossible("two", &second)).await;
    let (one_status, two_status) = tokio::join!(one.ends(Verdict::Passed), two.ends(Verdict::Failed));
    assert_eq!(two_status.reason.as_deref(), Some("GatesMissed"));
    // A trial in which the load generator lacked CPU is repeated.
    let trials = &two_status.state.trials;
    let far: Vec<bool> = trials.iter().map(|trial| trial.far).collect();
    assert!(
        far.ends_with(&[true]) && far.iter().filter(|far| **far).count() == 2,
        "the second trial that misses by half is the last one: {trials:?}"
    );
    assert!(
        two_status
            .diagnosis
            .iter()
            .any(|finding| Cause::from_finding(finding) == Some(Cause::FarBelowGate)),
        "{:?}",
        two_status.diagnosis
    );

    let held = |timeline: &[TimelineEntry]| {
        let deploying = timeline
            .iter()
            .find(|entry| entry.phase == Phase::Deploying)
            .expect("deployed");
        let cleaning = timeline
            .iter()
            .find(|entry| entry.phase == Phase::CleaningUp)
            .expect("cleaned up");
        (deploying.started_at, cleaning.completed_at.expect("over"))
    };
    let (a, b) = (held(&one_status.state.timeline), held(&two_status.state.timeline));
    assert!(a.1 <= b.0 || b.1 <= a.0, "both held the node at once: {a:?} and {b:?}");
    one.delete().await;
    two.delete().await;
}
