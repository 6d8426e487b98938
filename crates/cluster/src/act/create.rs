use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::Api;
use kube::core::{DynamicObject, Resource, ResourceExt as _};
use perfval_run::{Run, build};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::in_namespace;
use crate::call::creation;
use crate::observe::deployments_at;
use crate::{Cluster, Error, change};

impl Cluster {
    /// Creates an object of a built-in kind.
    pub(super) async fn create<K>(&self, run: &Run<'_>, object: &K) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), run.namespace());
        self.create_in(run, &api, &K::kind(&()), object).await.map(|_| ())
    }

    /// Creates the volume claim of the model cache. One of an earlier run is used again if it fits the spec of this run.
    pub(super) async fn create_cache_claim(&self, run: &Run<'_>, claim: &PersistentVolumeClaim) -> Result<(), Error> {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), run.namespace());
        let (kind, name) = (PersistentVolumeClaim::kind(&()), claim.name_any());
        if self.create_in(run, &api, &kind, claim).await?.is_some() {
            return Ok(());
        }
        let object = format!("{kind} {}", in_namespace(run, &name));
        let found = match self.bounded(api.get(&name)).await {
            Ok(found) => found,
            // The next pass creates it.
            Err(gone) if gone.is_not_found() => return Ok(()),
            Err(failure) => return Err(Error::failed(&change::CREATE, format!("get {object}"), failure)),
        };
        match build::cache_claim_fault(claim, &found) {
            None => Ok(()),
            Some(fault) => Err(Error::NameTaken {
                object,
                fault: format!("{fault}; delete it, and the run goes on"),
            }),
        }
    }

    /// Creates the Job of a trial. The answer of the API server is its first copy.
    pub(super) async fn create_trial_job(&self, run: &Run<'_>, job: &Job) -> Result<(), Error> {
        let api: Api<Job> = Api::namespaced(self.client.clone(), run.namespace());
        if let Some(created) = self.create_in(run, &api, &Job::kind(&()), job).await? {
            let version = created.resource_version().unwrap_or_default();
            self.copies.keep(run, &version, [&created]);
        }
        Ok(())
    }

    /// Creates the DynamoGraphDeployment, at the version in which its body is written.
    pub(super) async fn create_deployment(&self, run: &Run<'_>, object: &DynamicObject) -> Result<(), Error> {
        let resource = deployments_at(object.types.as_ref().map_or("", |types| types.api_version.as_str()));
        let api = self.deployments_as(run, &resource);
        self.create_in(run, &api, &resource.kind, object).await.map(|_| ())
    }

    /// Creates, never applies: an apply would silently take over another's object. If the object exists and belongs
    /// to the run, an earlier pass created it. Returns the object if it is new.
    async fn create_in<K>(&self, run: &Run<'_>, api: &Api<K>, kind: &str, object: &K) -> Result<Option<K>, Error>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        let failure = match self.bounded(api.create(&creation(false), object)).await {
            Ok(created) => return Ok(Some(created)),
            Err(failure) => failure,
        };
        let name = object.name_any();
        let named = format!("{kind} {}", in_namespace(run, &name));
        let failed = |failure| Error::failed(&change::CREATE, format!("create {named}"), failure);
        if !failure.is_already_exists() {
            return Err(failed(failure));
        }
        let found = match self.bounded(api.get_metadata(&name)).await {
            Ok(found) => found,
            // It went away in between.
            Err(gone) if gone.is_not_found() => return Err(failed(failure)),
            Err(unread) => return Err(failed(unread)),
        };
        if run.owns(&found) {
            return Ok(None);
        }
        Err(Error::owned_by_another(named))
    }
}
