//! Which Dynamo is there: without it a run ends as the user asked, and goes on by itself when one comes, even an older one.

use std::time::Duration;

use perfval_api::{Phase, Verdict};
use perfval_e2e::{Lab, Validation, eventually, quick};
use serde_json::json;

use crate::ready;

const CRD: &str = "crd/dynamographdeployments.nvidia.com";

/// Installs the stand-in's API in these versions; a running stand-in follows.
pub async fn install(lab: &Lab, versions: &str) {
    lab.run(&[
        "exec",
        "--",
        "lab",
        "dynamo-operator",
        "--install-only",
        "--served",
        versions,
    ])
    .await;
}

/// Returns true if deployments are served in both versions.
pub async fn serves_both(lab: &Lab) -> bool {
    for version in ["nvidia.com/v1alpha1", "nvidia.com/v1beta1"] {
        let served = lab.client.list_api_group_resources(version).await;
        if !served.is_ok_and(|kinds| kinds.resources.iter().any(|kind| kind.name == "dynamographdeployments")) {
            return false;
        }
    }
    true
}

/// Installs the API in these versions and waits until it is served.
async fn serve(lab: &Lab, versions: &str) {
    install(lab, versions).await;
    let version = if versions == "both" { "v1beta1" } else { versions };
    eventually("the API is served", Duration::from_mins(1), || async {
        // Past kubectl's cache, which is refreshed by this: later calls would still ask for the old version.
        let served = lab
            .try_kubectl(&["api-resources", "--api-group=nvidia.com", "--cached=false"])
            .await?;
        let is_served = |line: &str| line.contains("dynamographdeployments") && line.contains(version);
        if served.lines().any(is_served) {
            Ok(())
        } else {
            Err(served)
        }
    })
    .await;
}

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
