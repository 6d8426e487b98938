use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::Api;
use kube::core::{DynamicObject, Resource, ResourceExt as _, Status};
use perfval_run::Run;
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
        self.create_in(run, &api, &K::kind(&()), object).await
    }

    /// Creates the DynamoGraphDeployment, at the version in which its body is written.
    pub(super) async fn create_deployment(&self, run: &Run<'_>, object: &DynamicObject) -> Result<(), Error> {
        let resource = deployments_at(object.types.as_ref().map_or("", |types| types.api_version.as_str()));
        let api = self.deployments_as(run, &resource);
        self.create_in(run, &api, &resource.kind, object).await
    }

    /// Creates, never applies: an apply would silently take over another's object. If the object exists and belongs
    /// to the run, an earlier pass created it.
    async fn create_in<K>(&self, run: &Run<'_>, api: &Api<K>, kind: &str, object: &K) -> Result<(), Error>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        let Err(failure) = self.bounded(api.create(&creation(false), object)).await else {
            return Ok(());
        };
        let name = object.name_any();
        let named = format!("{kind} {}", in_namespace(run, &name));
        let failed = |failure| Error::failed(&change::CREATE, format!("create {named}"), failure);
        if !failure.refusal().is_some_and(Status::is_already_exists) {
            return Err(failed(failure));
        }
        let found = match self.bounded(api.get_metadata(&name)).await {
            Ok(found) => found,
            // It went away in between.
            Err(gone) if gone.is_not_found() => return Err(failed(failure)),
            Err(unread) => return Err(failed(unread)),
        };
        if run.owns(&found) {
            return Ok(());
        }
        Err(Error::NameTaken { object: named })
    }
}
