//! The cluster's memory ends in the middle of a run.

use perfval_api::{Phase, Verdict};
use perfval_e2e::{Validation, quick};
use serde_json::json;

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just failures"]
async fn an_etcd_that_is_killed_in_three_phases_changes_no_verdict() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("fail-etcd").await;
    let mut manifest = quick("etcd", &namespace);
    manifest["spec"]["benchmark"]["minRequests"] = json!(500);
    let run = Validation::create(&lab, manifest).await;
    for phase in [Phase::WaitingForReady, Phase::Benchmarking, Phase::CleaningUp] {
        run.phase(phase).await;
        lab.run(&["fault", "restart-etcd"]).await;
    }
    let status = run.ends(Verdict::Passed).await;
    assert_eq!(status.run.map(|run| run.number), Some(1), "the same run goes on");
    assert_eq!(
        status.state.trials.len(),
        1,
        "no trial is repeated: {:?}",
        status.state.trials
    );
    run.left_nothing().await;
    run.delete().await;
}
