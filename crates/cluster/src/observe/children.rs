//! Kinds of children, lists of them, and all that carry the object's label, of any run.

use futures::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta, Resource, ResourceExt as _};
use perfval_api::meta::{NAME_LABEL, RUN_LABEL};
use perfval_run::names::COMPONENT_LABEL;
use perfval_run::observed::{Child, ChildKind, ChildRef};
use perfval_run::{Run, build};

use super::dynamo::deployments_at;
use crate::Cluster;
use crate::call::{METADATA, Read, Unread, read};

/// The kinds that a run removes; the cache's volume claim and the results outlive it.
pub(super) const REMOVED: [ChildKind; 5] = [
    ChildKind::Job,
    ChildKind::Deployment,
    ChildKind::Service,
    ChildKind::ClaimTemplate,
    ChildKind::NetworkPolicy,
];

/// Hex digits of a SHA-256.
const DIGEST: usize = 64;

pub(super) struct ListScope<'a> {
    /// Their namespace; all without it.
    pub(super) namespace: Option<&'a str>,
    pub(super) params: ListParams,
    /// Name of their owners in errors.
    pub(super) owners: String,
    /// The apiVersion at which the deployment was recorded.
    pub(super) recorded: Option<&'a str>,
}

/// Selects what carries the object's name.
pub(super) fn list_params(run: &Run<'_>) -> ListParams {
    ListParams::default().labels(&format!("{NAME_LABEL}={}", run.name()))
}

impl Cluster {
    /// Resource of a kind; a deployment's at the oldest version that the operator supports.
    pub fn child_resource(kind: ChildKind) -> ApiResource {
        match kind {
            ChildKind::Job => ApiResource::erase::<Job>(&()),
            ChildKind::Deployment => deployments_at("v1alpha1"),
            ChildKind::Service => ApiResource::erase::<Service>(&()),
            ChildKind::ClaimTemplate => ApiResource::erase::<ResourceClaimTemplate>(&()),
            ChildKind::NetworkPolicy => ApiResource::erase::<NetworkPolicy>(&()),
            ChildKind::Results => ApiResource::erase::<ConfigMap>(&()),
        }
    }

    /// The objects of the kinds that a run removes, and the first failure of their lists.
    pub(super) async fn children(&self, run: &Run<'_>) -> (Vec<Child>, Read<()>) {
        let mut kinds = REMOVED.to_vec();
        // Without the flag there are no policies; the sweeper removes those of earlier runs.
        if run.settings.run_network_policy.is_none() {
            kinds.retain(|kind| *kind != ChildKind::NetworkPolicy);
        }
        let selection = select(run, list_params(run));
        self.list_each(&kinds, &selection, |kind, object| child(run, kind, &object))
            .await
    }

    /// The results of every run of the object, without their content.
    pub(super) async fn results_of_all_runs(&self, run: &Run<'_>) -> Read<Vec<Child>> {
        let all = self.results_with_digests(run).await?;
        Ok(all.into_iter().map(|(child, _)| child).collect())
    }

    /// The same, each with its digest.
    pub(super) async fn results_with_digests(&self, run: &Run<'_>) -> Read<Vec<(Child, Option<String>)>> {
        let labels = format!("{NAME_LABEL}={},{COMPONENT_LABEL}={}", run.name(), build::RESULTS);
        let selection = select(run, ListParams::default().labels(&labels));
        let form = |kind, object: PartialObjectMeta| (child(run, kind, &object), digest(&object));
        self.list_kind(ChildKind::Results, &selection, &form).await
    }

    /// All objects of these kinds, each in the caller's form as soon as its list is there. If a list fails, the objects of the other
    /// kinds and the first failure.
    pub(super) async fn list_each<T>(
        &self,
        kinds: &[ChildKind],
        selection: &ListScope<'_>,
        form: impl Fn(ChildKind, PartialObjectMeta) -> T,
    ) -> (Vec<T>, Read<()>) {
        let lists = kinds.iter().map(|kind| self.list_kind(*kind, selection, &form));
        let (mut all, mut failed) = (Vec::new(), Ok(()));
        for list in join_all(lists).await {
            match list {
                Ok(objects) => all.extend(objects),
                // There are none of a kind that is not served.
                Err(Unread::Absent) => {}
                Err(unknown) => failed = failed.and(Err(unknown)),
            }
        }
        (all, failed)
    }

    /// All objects of a kind. Deployments are found at any version: their metadata is the same at each.
    async fn list_kind<T>(
        &self,
        kind: ChildKind,
        selection: &ListScope<'_>,
        form: &impl Fn(ChildKind, PartialObjectMeta) -> T,
    ) -> Read<Vec<T>> {
        let call = format!(
            "list {} objects of {}",
            Self::child_resource(kind).kind,
            selection.owners
        );
        let mut versions = (kind == ChildKind::Deployment).then(|| self.versions_of_deployments(selection.recorded));
        loop {
            let resource = match &mut versions {
                Some(versions) => versions.next().await?,
                None => Self::child_resource(kind),
            };
            let api: Api<DynamicObject> = match selection.namespace {
                Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
                None => Api::all_with(self.client.clone(), &resource),
            };
            let params = selection.params.clone();
            let reduce = |(): &mut (), object| Some(form(kind, object));
            match self.list_as(METADATA, api.resource_url(), params, (), reduce).await {
                Err(failure) if versions.as_mut().is_some_and(|others| others.goes_on(&call, &failure)) => {}
                answer => return Ok(read(&call, answer)?.items),
            }
        }
    }
}

fn select<'a>(run: &Run<'a>, params: ListParams) -> ListScope<'a> {
    let deployment = run.status().state.deployment.as_ref();
    ListScope {
        namespace: Some(run.namespace()),
        params,
        owners: format!("{}/{}", run.namespace(), run.name()),
        recorded: deployment.map(|deployment| deployment.api_version.as_str()),
    }
}

fn child(run: &Run<'_>, kind: ChildKind, object: &impl Resource) -> Child {
    Child {
        id: ChildRef {
            kind,
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        },
        deleting: object.meta().deletion_timestamp.is_some(),
        run: object.labels().get(RUN_LABEL).cloned().unwrap_or_default(),
        ours: run.removes(object),
    }
}

/// Digest that a results `ConfigMap` carries. A longer text is of another client.
pub(super) fn digest(results: &impl Resource) -> Option<String> {
    let digest = results.annotations().get(build::SHA256);
    digest.filter(|digest| digest.len() == DIGEST).cloned()
}
