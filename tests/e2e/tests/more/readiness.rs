//! A deployment that becomes ready late, or never.

use perfval_api::Verdict;
use perfval_e2e::{Validation, quick};
use serde_json::json;

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_deployment_that_heals_from_failed_still_passes() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-heals").await;
    lab.run(&["fault", "dgd", &format!("failed-then-heals=20@{namespace}")])
        .await;
    let run = Validation::create(&lab, quick("heals", &namespace)).await;
    run.ends(Verdict::Passed).await;
    lab.run(&["fault", "clear"]).await;
    run.delete().await;
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_deployment_that_never_gets_ready_ends_at_its_limit() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-never").await;
    lab.run(&["fault", "dgd", &format!("never-ready@{namespace}")]).await;
    let mut manifest = quick("never", &namespace);
    manifest["spec"]["timeouts"]["workloadReady"] = json!("25s");
    let run = Validation::create(&lab, manifest).await;
    let status = run.ends(Verdict::Error).await;
    assert_eq!(
        status.reason.as_deref(),
        Some("WorkloadNotReady"),
        "{:?}",
        status.message
    );
    lab.run(&["fault", "clear"]).await;
    run.delete().await;
}
