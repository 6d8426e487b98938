//! A finished run whose spec is edited: nothing is measured twice, and nothing is claimed that was not measured.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use perfval_api::{PerfValidationStatus, Phase, Trigger, Verdict, condition};
use perfval_e2e::{Lab, Validation, quick};
use serde_json::json;

use crate::ready;

/// A run that passed.
async fn passed(lab: &Lab, name: &str, namespace: &str) -> (Validation, PerfValidationStatus) {
    let run = Validation::create(lab, quick(name, namespace)).await;
    let status = run.ends(Verdict::Passed).await;
    (run, status)
}

/// Value, reason and generation of a condition.
fn shown_condition<'a>(status: &'a PerfValidationStatus, name: &str) -> (&'a str, &'a str, i64) {
    let found = condition::find(status, name).expect("the condition");
    let generation = found.observed_generation.expect("a generation");
    (found.status.as_str(), found.reason.as_str(), generation)
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_changed_ttl_or_limit_measures_nothing_again() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-edit-ttl").await;
    let (run, measured) = passed(&lab, "ttl", &namespace).await;
    run.patch(json!({"spec": {"ttlSecondsAfterFinished": 86_400, "timeouts": {"workloadReady": "11m"}}}))
        .await;
    let status = run
        .until("the edit was looked at", |status| status.observed_generation == 2)
        .await;
    assert_eq!(status.phase, Some(Phase::Completed));
    assert_eq!(
        status.run.as_ref().map(|run| (run.number, run.generation)),
        Some((1, 2))
    );
    assert_eq!(status.state.trials, measured.state.trials);
    assert_eq!(shown_condition(&status, condition::READY), ("True", "GatesMet", 2));
    assert_eq!(shown_condition(&status, condition::CLEANED_UP), ("True", "RunOver", 2));
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn changed_gates_judge_the_saved_trials_without_a_pod() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-edit-gates").await;
    let (run, measured) = passed(&lab, "gates", &namespace).await;
    let gate = |threshold: &str| {
        json!({"spec": {"gates": [
            {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": threshold},
        ]}})
    };
    // No node of the lab comes near it.
    run.patch(gate("1000000000")).await;
    let status = run
        .until("a verdict by the new gates", |status| judged(2, status))
        .await;
    assert_eq!(status.verdict, Some(Verdict::Failed));
    let judging = status.run.expect("a run");
    assert_eq!(
        (judging.trigger, status.state.judged_run),
        (Trigger::GatesChanged, Some(1))
    );
    assert_eq!(status.state.metrics, measured.state.metrics);
    assert_eq!(status.results_ref, measured.results_ref);
    let pods: Api<Pod> = Api::namespaced(lab.client.clone(), &namespace);
    let pods = pods.list(&ListParams::default()).await.expect("list pods");
    assert_eq!(pods.items.len(), 0, "judging saved trials needs no pod");

    run.patch(gate("5")).await;
    let status = run
        .until("a verdict by the old gates", |status| judged(3, status))
        .await;
    assert_eq!(status.verdict, Some(Verdict::Passed));
    assert_eq!(status.state.judged_run, Some(1));

    // Without the saved trials there is nothing to judge: the next run measures.
    let results = status.results_ref.expect("results").name;
    lab.kubectl(&["delete", "configmap", "-n", &namespace, &results]).await;
    run.patch(gate("6")).await;
    let status = run.until("a verdict on new trials", |status| judged(5, status)).await;
    assert_eq!(status.verdict, Some(Verdict::Passed));
    let measuring = status.run.expect("a run");
    assert_eq!(
        (measuring.trigger, status.state.judged_run),
        (Trigger::SpecChanged, None)
    );
    run.delete().await;
}

/// Whether this run is over.
fn judged(number: i64, status: &PerfValidationStatus) -> bool {
    status.phase == Some(Phase::Completed) && status.run.as_ref().map(|run| run.number) == Some(number)
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_suspended_edit_is_not_ready() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-edit-suspended").await;
    let (run, _) = passed(&lab, "suspended", &namespace).await;
    run.patch(json!({"spec": {"suspend": true, "placement": {"maxGPUs": 1}}}))
        .await;
    let status = run
        .until("the edit was looked at", |status| status.observed_generation == 2)
        .await;
    assert_eq!(shown_condition(&status, condition::READY), ("False", "Suspended", 2));
    assert_eq!(shown_condition(&status, condition::PASSED), ("Unknown", "Suspended", 2));
    assert_eq!(shown_condition(&status, condition::COMPLETE), ("False", "Suspended", 2));
    assert_eq!(shown_condition(&status, condition::CLEANED_UP), ("True", "RunOver", 1));
    assert_eq!(status.run.map(|run| (run.number, run.generation)), Some((1, 1)));

    run.patch(json!({"spec": {"suspend": false}})).await;
    let status = run.until("run 2 is over", |status| judged(2, status)).await;
    assert_eq!(
        (status.verdict, status.placement.as_ref().map(|plan| plan.gpus)),
        (Some(Verdict::Passed), Some(1))
    );
    assert_eq!(shown_condition(&status, condition::READY), ("True", "GatesMet", 3));
    run.delete().await;
}
