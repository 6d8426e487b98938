//! The versions in which the stand-in serves Dynamo's API.

use std::time::Duration;

use crate::lab::{Lab, eventually};

/// Plural of Dynamo's deployments.
const PLURAL: &str = "dynamographdeployments";

/// Installs the API in these versions (`both`, `v1beta1`, `v1alpha1`) and waits until it is served. A running stand-in
/// follows.
///
/// # Panics
/// If it is not served.
pub async fn serve(lab: &Lab, versions: &str) {
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
    until_served(lab, if versions == "both" { "v1beta1" } else { versions }).await;
}

/// Waits until this is the newest version in which deployments are served.
///
/// # Panics
/// If it does not become so.
pub async fn until_served(lab: &Lab, version: &str) {
    let version = format!("nvidia.com/{version}");
    eventually("the API is served", Duration::from_mins(1), || async {
        // Past kubectl's cache, which is refreshed by this: later calls would still ask for the old version.
        let served = lab
            .try_kubectl(&["api-resources", "--api-group=nvidia.com", "--cached=false"])
            .await?;
        let is_served = |line: &str| line.contains(PLURAL) && line.split_whitespace().any(|word| word == version);
        if served.lines().any(is_served) {
            Ok(())
        } else {
            Err(served)
        }
    })
    .await;
}

/// Returns true if deployments are served in both versions.
pub(crate) async fn serves_both(lab: &Lab) -> bool {
    for version in ["nvidia.com/v1alpha1", "nvidia.com/v1beta1"] {
        let served = lab.client.list_api_group_resources(version).await;
        if !served.is_ok_and(|kinds| kinds.resources.iter().any(|kind| kind.name == PLURAL)) {
            return false;
        }
    }
    true
}
