//! Everything that carries the object's label, of any run.

use std::fmt::Debug;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
use kube::api::{Api, ListParams};
use kube::core::{Resource, ResourceExt as _};
use perfval_api::meta::{NAME_LABEL, RUN_LABEL};
use perfval_run::build::COMPONENT_LABEL;
use perfval_run::observed::{Child, ChildKind, ChildRef};
use perfval_run::{Run, build};
use serde::de::DeserializeOwned;

use crate::Cluster;
use crate::call::{Read, Unread, read};

/// Selects what carries the object's name.
pub(super) fn list_params(run: &Run<'_>) -> ListParams {
    ListParams::default().labels(&format!("{NAME_LABEL}={}", run.name()))
}

impl Cluster {
    /// The kinds that a run removes; the cache's volume claim and the results outlive it.
    pub(super) async fn children(&self, run: &Run<'_>) -> Read<Vec<Child>> {
        let client = || self.client.clone();
        let jobs: Api<Job> = Api::namespaced(client(), run.namespace());
        let services: Api<Service> = Api::namespaced(client(), run.namespace());
        let templates: Api<ResourceClaimTemplate> = Api::namespaced(client(), run.namespace());
        let policies: Api<NetworkPolicy> = Api::namespaced(client(), run.namespace());
        let policies = async {
            // Without the flag there are none; the sweeper removes those of earlier runs.
            match run.settings.run_network_policy {
                Some(_) => self.children_of(run, ChildKind::NetworkPolicy, &policies).await,
                None => Ok(Vec::new()),
            }
        };
        let (jobs, deployments, services, templates, policies) = futures::join!(
            self.children_of(run, ChildKind::Job, &jobs),
            self.child_deployments(run),
            self.children_of(run, ChildKind::Service, &services),
            self.children_of(run, ChildKind::ClaimTemplate, &templates),
            policies,
        );
        let mut all = Vec::new();
        for part in [jobs, deployments, services, templates, policies] {
            match part {
                Ok(mut children) => all.append(&mut children),
                // The kind is not served: there are none of it.
                Err(Unread::Absent) => {}
                Err(unknown) => return Err(unknown),
            }
        }
        Ok(all)
    }

    /// The results of every run of the object, without their content.
    pub(super) async fn results_of_all_runs(&self, run: &Run<'_>) -> Read<Vec<Child>> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), run.namespace());
        let params = ListParams::default().labels(&format!(
            "{NAME_LABEL}={},{COMPONENT_LABEL}={}",
            run.name(),
            build::RESULTS
        ));
        let kind = ChildKind::Results;
        let found = read(&listing(run, kind), self.bounded(api.list_metadata(&params)).await)?;
        Ok(found.items.iter().map(|results| child(run, kind, results)).collect())
    }

    /// Found at any version: their metadata is the same at each.
    async fn child_deployments(&self, run: &Run<'_>) -> Read<Vec<Child>> {
        let kind = ChildKind::Deployment;
        let call = listing(run, kind);
        let mut versions = self.deployment_versions(run);
        loop {
            let api = self.deployments_as(run, &versions.next().await?);
            match self.bounded(api.list_metadata(&list_params(run))).await {
                Err(failure) if versions.goes_on(&call, &failure) => {}
                answer => return read(&call, answer).map(|found| children(run, kind, &found.items)),
            }
        }
    }

    async fn children_of<K>(&self, run: &Run<'_>, kind: ChildKind, api: &Api<K>) -> Read<Vec<Child>>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let found = self.bounded(api.list_metadata(&list_params(run))).await;
        Ok(children(run, kind, &read(&listing(run, kind), found)?.items))
    }
}

fn listing(run: &Run<'_>, kind: ChildKind) -> String {
    format!("list {kind:?} objects of {}/{}", run.namespace(), run.name())
}

fn children(run: &Run<'_>, kind: ChildKind, found: &[impl Resource]) -> Vec<Child> {
    found.iter().map(|object| child(run, kind, object)).collect()
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
