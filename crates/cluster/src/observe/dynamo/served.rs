//! Discovery of Dynamo, and of the version at which it serves its deployments.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::core::ResourceExt as _;
use perfval_run::observed::DynamoApi;
use tokio::time::Instant;

use super::{CRD, KIND, OPERATOR_VERSION, VERSIONS};
use crate::Cluster;
use crate::call::{Read, Unread, read};

/// Time for which one answer serves all runs. A thousand new objects caused a thousand requests, and each answer took
/// the API server 15 to 60 ms: the CRD has 1.6 MB.
const FRESH: Duration = Duration::from_secs(5);

impl Cluster {
    /// Dynamo's API as the cluster serves it, if it does.
    pub(in crate::observe) async fn dynamo(&self) -> Read<DynamoApi> {
        let mut last = self.installed.lock().await;
        if let Some((at, installed)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(installed.clone());
        }
        *last = None;
        // "Absent" and "unknown" are not kept: an installation is noticed at once.
        let installed = self.ask_installed().await?;
        *last = Some((Instant::now(), installed.clone()));
        Ok(installed)
    }

    /// The CRD shows whether Dynamo is installed, discovery which version is served. The group alone shows neither.
    async fn ask_installed(&self) -> Read<DynamoApi> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        // Metadata only: the CRD itself has 1.6 MB.
        let crd = self.bounded(crds.get_metadata(CRD)).await;
        let crd = read(&format!("get CustomResourceDefinition {CRD}"), crd)?;
        match self.newest_served().await {
            Ok(resource) => Ok(DynamoApi {
                resource,
                operator_version: crd.annotations().get(OPERATOR_VERSION).cloned(),
            }),
            // Discovery may lag behind a new CRD by some seconds.
            Err(Unread::Absent) => Err(Unread::Unknown(format!(
                "{CRD} exists, but {KIND} is not served as {}",
                VERSIONS.join(" or ")
            ))),
            Err(unknown) => Err(unknown),
        }
    }
}
