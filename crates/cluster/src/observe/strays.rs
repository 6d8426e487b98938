//! Everything that carries the operator's label, of any object and run.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{NamespaceResourceScope, Resource, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::meta::{NAME_LABEL, RUN_LABEL};
use perfval_run::observed::{ChildKind, ChildRef};
use perfval_run::strays::Labelled;
use perfval_run::time;
use perfval_sizing::Seen;
use serde::de::DeserializeOwned;

use crate::Cluster;
use crate::call::{Read, Unread, read, seen};

/// Objects in a page of owners.
const PAGE: u32 = 100;

fn labelled_by_us() -> ListParams {
    ListParams::default().labels(RUN_LABEL)
}

impl Cluster {
    /// All objects of the kinds that a run removes, in a namespace or in all of them.
    pub async fn labelled(&self, namespace: Option<&str>) -> Seen<Vec<Labelled>> {
        // On the heap: five lists at once.
        seen(Box::pin(self.all_labelled(namespace)).await)
    }

    async fn all_labelled(&self, namespace: Option<&str>) -> Read<Vec<Labelled>> {
        let (jobs, deployments, services, templates, policies) = futures::join!(
            self.labelled_of::<Job>(ChildKind::Job, namespace),
            self.labelled_deployments(namespace),
            self.labelled_of::<Service>(ChildKind::Service, namespace),
            self.labelled_of::<ResourceClaimTemplate>(ChildKind::ClaimTemplate, namespace),
            self.labelled_of::<NetworkPolicy>(ChildKind::NetworkPolicy, namespace),
        );
        let mut all = Vec::new();
        for part in [jobs, deployments, services, templates, policies] {
            match part {
                Ok(mut found) => all.append(&mut found),
                // The kind is not served: there are none of it.
                Err(Unread::Absent) => {}
                Err(unknown) => return Err(unknown),
            }
        }
        Ok(all)
    }

    /// Uids of all `PerfValidation`s.
    pub async fn owners(&self) -> Seen<BTreeSet<String>> {
        seen(self.all_owners().await)
    }

    /// In pages: annotations of others may have 256 KiB in each object.
    async fn all_owners(&self) -> Read<BTreeSet<String>> {
        let api: Api<PerfValidation> = Api::all(self.client.clone());
        let (mut params, mut uids) = (ListParams::default().limit(PAGE), BTreeSet::new());
        loop {
            let page = self.bounded(api.list_metadata(&params)).await;
            let page = read("list PerfValidations", page)?;
            uids.extend(page.items.iter().filter_map(kube::ResourceExt::uid));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(uids),
            }
        }
    }

    async fn labelled_of<K>(&self, kind: ChildKind, namespace: Option<&str>) -> Read<Vec<Labelled>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let found = self.bounded(api.list_metadata(&labelled_by_us())).await;
        Ok(all_of(kind, &read(&listing(kind), found)?.items))
    }

    /// Found at any version: their metadata is the same at each.
    async fn labelled_deployments(&self, namespace: Option<&str>) -> Read<Vec<Labelled>> {
        let kind = ChildKind::Deployment;
        let call = listing(kind);
        let mut versions = self.versions_of_deployments(None);
        loop {
            let resource = versions.next().await?;
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
                None => Api::all_with(self.client.clone(), &resource),
            };
            match self.bounded(api.list_metadata(&labelled_by_us())).await {
                Err(failure) if versions.goes_on(&call, &failure) => {}
                answer => return read(&call, answer).map(|found| all_of(kind, &found.items)),
            }
        }
    }
}

fn listing(kind: ChildKind) -> String {
    format!("list {kind:?} objects of all runs")
}

fn all_of(kind: ChildKind, found: &[impl Resource]) -> Vec<Labelled> {
    found.iter().map(|object| labelled(kind, object)).collect()
}

fn labelled(kind: ChildKind, object: &impl Resource) -> Labelled {
    let label = |key: &str| object.labels().get(key).cloned().unwrap_or_default();
    let owners = object.meta().owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true) && owner.kind == "PerfValidation");
    Labelled {
        id: ChildRef {
            kind,
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        },
        namespace: object.namespace().unwrap_or_default(),
        object: label(NAME_LABEL),
        run: label(RUN_LABEL),
        owner: controllers.next().map(|owner| owner.uid.clone()),
        created: object.creation_timestamp().as_ref().map(time::from_kubernetes),
        deleting: object.meta().deletion_timestamp.is_some(),
    }
}
