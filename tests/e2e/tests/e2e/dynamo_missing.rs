//! Which Dynamo is there: without it a run ends as the user asked, and goes on by itself when one comes, even an older one.

use perfval_api::{Phase, Verdict};
use perfval_e2e::dynamo::serve;
use perfval_e2e::{Validation, quick};
use serde_json::json;

use crate::ready;

const CRD: &str = "crd/dynamographdeployments.nvidia.com";

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn a_missing_dynamo_fails_skips_or_is_waited_for_and_an_older_one_is_spoken_to() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-no-dynamo").await;
    lab.kubectl(&["delete", CRD, "--timeout=60s"]).await;
    let with = |name: &str, on_missing: &str, limit: &str| {
        let mut manifest = quick(name, &namespace);
        manifest["spec"]["workload"]["dynamo"]["onMissing"] = json!(on_missing);
        manifest["spec"]["timeouts"]["prerequisites"] = json!(limit);
        manifest
    };
    let fails = Validation::create(&lab, with("fails", "Fail", "3s")).await;
    let skips = Validation::create(&lab, with("skips", "Skip", "3s")).await;
    let waits = Validation::create(&lab, with("waits", "Fail", "5m")).await;
    assert_eq!(
        fails.ends(Verdict::Error).await.reason.as_deref(),
        Some("DynamoNotInstalled")
    );
    assert_eq!(
        skips.ends(Verdict::Skipped).await.reason.as_deref(),
        Some("DynamoNotInstalled")
    );
    fails.delete().await;
    skips.delete().await;
    waits
        .until("waiting for Dynamo", |status| {
            status.phase == Some(Phase::Pending) && status.reason.as_deref() == Some("DynamoNotInstalled")
        })
        .await;

    // The operator is not restarted: it has to notice the new API by itself, and to speak the only version there is.
    serve(&lab, "v1alpha1").await;
    let status = waits.ends(Verdict::Passed).await;
    assert_eq!(
        status
            .state
            .deployment
            .map(|deployment| deployment.api_version)
            .as_deref(),
        Some("nvidia.com/v1alpha1")
    );
    waits.delete().await;
    serve(&lab, "both").await;
}
