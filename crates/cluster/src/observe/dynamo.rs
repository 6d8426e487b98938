//! Dynamo's API as the cluster serves it, the deployment of a run, and the API server's answer to a trial creation of
//! it.

mod definition;
mod served;
mod versions;

use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Request, ResourceExt as _};
use kube::discovery::pinned_kind;
use kube::error::DiscoveryError;
use perfval_run::dynamo::deployment;
pub use perfval_run::names::dynamo::{GROUP, KIND};
use perfval_run::observed::DryRunResult;
use perfval_run::readiness::Pods;
use perfval_run::{Run, names};
use perfval_sizing::Seen;

use crate::call::{Read, Unread, creation, read, seen};
use crate::copies::RunCopies;
use crate::{CallFailure, Cluster};

/// Plural of the deployments, as in URLs.
pub const PLURAL: &str = "dynamographdeployments";
/// Name of their CRD.
pub const CRD: &str = "dynamographdeployments.nvidia.com";
/// Stamped on the CRD by Dynamo's installation; absent where CRDs were applied by hand.
const OPERATOR_VERSION: &str = "dynamo.nvidia.com/operator-version";
/// Supported versions, the newest first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// The resource at an apiVersion that a run has recorded.
pub(crate) fn deployments_at(api_version: &str) -> ApiResource {
    let version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, version, KIND), PLURAL)
}

impl Cluster {
    /// The newest served version of the deployments that the operator supports, or all served versions if it supports none.
    pub async fn served_dynamo(&self) -> Seen<Result<ApiResource, Vec<String>>> {
        seen(match self.newest_served().await {
            Err(Unread::Absent) => self.unsupported().await.map(Err),
            newest => newest.map(Ok),
        })
    }

    /// All versions that the CRD serves, if the operator supports none of them. Discovery may lag behind the CRD.
    async fn unsupported(&self) -> Read<Vec<String>> {
        let served: Vec<String> = self.definition().await?.served().collect();
        if served.iter().any(|version| VERSIONS.contains(&version.as_str())) {
            return Err(Unread::Absent);
        }
        Ok(served)
    }

    async fn newest_served(&self) -> Read<ApiResource> {
        for version in VERSIONS {
            let kind = GroupVersionKind::gvk(GROUP, version, KIND);
            let found = match self.bounded(pinned_kind(&self.client, &kind)).await {
                Err(CallFailure::Call(kube::Error::Discovery(DiscoveryError::MissingKind(_)))) => continue,
                answer => answer,
            };
            match read(&format!("discover {GROUP}/{version}"), found) {
                Ok((resource, _)) => return Ok(resource),
                Err(Unread::Absent) => {}
                Err(unknown) => return Err(unknown),
            }
        }
        Err(Unread::Absent)
    }

    /// Deployments in the run's namespace, at a version.
    pub(crate) fn deployments_as(&self, run: &Run<'_>, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), run.namespace(), resource)
    }

    /// The deployment of this run, at a version that the operator supports.
    pub(super) async fn deployment(&self, run: &Run<'_>, copies: &RunCopies) -> Read<DynamicObject> {
        let name = names::deployment(&run.id());
        // Its status changes with each pod, and decides once all are ready.
        let copy = if are_pods_ready(run, copies) == Some(false) {
            copies.recent(&name)
        } else {
            copies.get(&name)
        };
        if let Some(copy) = copy {
            return Ok(copy);
        }
        let found = self.read_deployment(run, &name).await?;
        self.copies
            .keep(run, &found.resource_version().unwrap_or_default(), [&found]);
        Ok(found)
    }

    async fn read_deployment(&self, run: &Run<'_>, name: &str) -> Read<DynamicObject> {
        let call = format!("get {KIND} {}/{name}", run.namespace());
        let mut versions = self.deployment_versions(run);
        loop {
            let resource = versions.next().await?;
            if !VERSIONS.contains(&resource.version.as_str()) {
                let version = &resource.version;
                let foreign =
                    || format!("{call}: it is served as {version} only, which this operator does not support");
                // A supported version may be served and broken.
                return Err(Unread::Unknown(versions.failed.take().unwrap_or_else(foreign)));
            }
            match self.bounded(self.deployments_as(run, &resource).get(name)).await {
                Err(failure) if versions.goes_on(&call, &failure) => {}
                answer => return read(&call, answer),
            }
        }
    }

    /// Sends the deployment as a dry run: schema with unknown fields refused, webhooks, quota.
    pub(super) async fn dry_run(&self, run: &Run<'_>) -> Read<DryRunResult> {
        let body = deployment(run);
        let call = format!("dry run of {KIND} {}/{}", run.namespace(), body.name_any());
        let unknown = |why: String| Unread::Unknown(format!("{call}: {why}"));
        let api_version = body.types.as_ref().map_or("", |types| types.api_version.as_str());
        let api = self.deployments_as(run, &deployments_at(api_version));
        let request = strict_dry_run(&api, &body).map_err(unknown)?;
        match self.bounded(self.client.request::<DynamicObject>(request)).await {
            Ok(_) => Ok(DryRunResult::Accepted),
            Err(failure) => judge(&failure).ok_or_else(|| unknown(failure.to_string())),
        }
    }
}

/// Returns true if frontend and workers are there and ready, as copies show; `None` without copies.
fn are_pods_ready(run: &Run<'_>, copies: &RunCopies) -> Option<bool> {
    let pods = copies.list::<Pod>()?;
    let pods = Pods::new(&pods, &run.id());
    Some(pods.ready_workers() >= run.workers() && pods.frontend_ready())
}

/// kube's own create has no `fieldValidation`.
fn strict_dry_run(api: &Api<DynamicObject>, body: &DynamicObject) -> Result<http::Request<Vec<u8>>, String> {
    let bytes = serde_json::to_vec(body).map_err(|error| error.to_string())?;
    let mut request = Request::new(api.resource_url())
        .create(&creation(true), bytes)
        .map_err(|error| error.to_string())?;
    let strict = format!("{}&fieldValidation=Strict", request.uri());
    *request.uri_mut() = strict.parse().map_err(|error| format!("{strict}: {error}"))?;
    Ok(request)
}

/// A refusal of the object is an answer; a refusal of the caller, a kind that is not served and a server in trouble are none.
fn judge(failure: &CallFailure) -> Option<DryRunResult> {
    let status = failure.refusal()?;
    match status.code {
        409 if status.is_already_exists() => Some(DryRunResult::Accepted),
        // Quota and policy answer 403 too; RBAC alone uses these words.
        403 if status.message.contains("cannot create resource") => None,
        // A quota that was just created has no numbers yet.
        403 if status.message.contains("status unknown for quota") => None,
        400 | 403 | 413 | 422 => Some(DryRunResult::Rejected(status.message.clone())),
        _ => None,
    }
}
