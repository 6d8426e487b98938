use std::fmt::Debug;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
use kube::api::{Api, DeleteParams, Preconditions};
use perfval_api::PerfValidation;
use perfval_core::Run;
use perfval_core::observed::{ChildKind, ChildRef};

use serde::de::DeserializeOwned;

use super::in_namespace;
use crate::{Class, Cluster, Error, Failure};

impl Cluster {
    pub(super) async fn delete_child(&self, run: &Run<'_>, child: &ChildRef) -> Result<(), Error> {
        let (client, namespace) = (self.client.clone(), run.namespace());
        match child.kind {
            ChildKind::Job => {
                let api: Api<Job> = Api::namespaced(client, namespace);
                self.delete(run, &api, "Job", child).await
            }
            ChildKind::Service => {
                let api: Api<Service> = Api::namespaced(client, namespace);
                self.delete(run, &api, "Service", child).await
            }
            ChildKind::ClaimTemplate => {
                let api: Api<ResourceClaimTemplate> = Api::namespaced(client, namespace);
                self.delete(run, &api, "ResourceClaimTemplate", child).await
            }
            ChildKind::Deployment => match self.deployments(run).await {
                Ok(api) => self.delete(run, &api, "DynamoGraphDeployment", child).await,
                // Not served, or unread: nothing is deleted now, and the next look at the children says what is left.
                Err(_) => Ok(()),
            },
        }
    }

    pub(super) async fn delete_self(&self, run: &Run<'_>) -> Result<(), Error> {
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), run.namespace());
        self.delete_by(run, &api, "PerfValidation", run.name(), run.uid()).await
    }

    async fn delete<K>(&self, run: &Run<'_>, api: &Api<K>, kind: &str, child: &ChildRef) -> Result<(), Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        self.delete_by(run, api, kind, &child.name, &child.uid).await
    }

    /// Background propagation: a foreground delete of a deployment waits on children that its operator makes anew.
    async fn delete_by<K>(&self, run: &Run<'_>, api: &Api<K>, kind: &str, name: &str, uid: &str) -> Result<(), Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        });
        match self.bounded(api.delete(name, &params)).await {
            Ok(_) => Ok(()),
            Err(failure) if is_gone(&failure) => Ok(()),
            Err(failure) => Err(Error::Delete {
                kind: kind.to_owned(),
                name: in_namespace(run, name),
                failure,
            }),
        }
    }
}

/// Nothing of that name, or a namesake with another uid: either way ours is gone.
fn is_gone(failure: &Failure) -> bool {
    failure.is_not_found() || failure.class() == Class::Conflict
}
