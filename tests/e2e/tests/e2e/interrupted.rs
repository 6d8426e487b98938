//! A run that the user stops ends at once, frees its GPUs, and says nothing it does not know.

use perfval_api::{PerfValidationStatus, Phase, Verdict};
use perfval_e2e::{Gpus, Validation, quick};
use serde_json::json;

use crate::ready;

/// Whether this run was planned and deploys: what follows is like in any other.
fn placed_in(number: i64, status: &PerfValidationStatus) -> bool {
    let run = status.run.as_ref().map(|run| run.number);
    run == Some(number) && status.placement.is_some() && status.phase >= Some(Phase::Deploying)
}

/// Number and verdict of the run before.
fn run_before(status: &PerfValidationStatus) -> Option<(i64, Option<Verdict>)> {
    let before = status.state.history.first();
    before.map(|run| (run.run, run.verdict))
}

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn a_suspended_run_frees_its_gpus_and_a_resumed_one_starts_again() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-suspend").await;
    let run = Validation::create(&lab, quick("pause", &namespace)).await;
    // Not before: a pod that still starts takes its whole grace to end.
    run.phase(Phase::Benchmarking).await;
    run.patch(json!({"spec": {"suspend": true}})).await;
    let status = run.phase(Phase::Suspended).await;
    assert_eq!(status.verdict, None);
    run.left_nothing().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);

    run.patch(json!({"spec": {"suspend": false}})).await;
    let status = run.until("run 2 has its GPUs", |status| placed_in(2, status)).await;
    assert_eq!(run_before(&status), Some((1, None)));
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn a_changed_spec_ends_the_run_and_starts_a_new_one() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-change").await;
    let run = Validation::create(&lab, quick("change", &namespace)).await;
    run.phase(Phase::Sizing).await;
    run.patch(json!({"spec": {"placement": {"maxGPUs": 1}}})).await;
    let status = run.until("run 2 has its GPU", |status| placed_in(2, status)).await;
    assert_eq!(status.placement.as_ref().map(|plan| plan.gpus), Some(1));
    assert_eq!(run_before(&status), Some((1, None)));
    run.delete().await;
}
