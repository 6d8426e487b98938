use kube::api::{Api, DeleteParams, Preconditions};
use kube::core::{DynamicObject, ObjectMeta};
use perfval_api::PerfValidation;
use perfval_run::observed::{ChildKind, ChildRef};
use perfval_run::strays::Labelled;
use perfval_run::{Run, Settings, teardown};

use super::in_namespace;
use crate::error::unless_late;
use crate::observe::dynamo;
use crate::{CallFailure, Cluster, Error, change};

impl Cluster {
    pub(super) async fn delete_child(&self, run: &Run<'_>, child: &ChildRef) -> Result<(), Error> {
        if child.kind == ChildKind::Deployment {
            return self.delete_deployment(run, child).await;
        }
        let resource = Self::child_resource(child.kind);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), run.namespace(), &resource);
        let answer = self.try_delete(&api, &child.name, &child.uid).await;
        deleted(run, &resource.kind, &child.name, answer)
    }

    /// Deletes what should not be there any more.
    pub async fn remove_stray(&self, stray: &Labelled, settings: &Settings) -> Result<(), Error> {
        let of = ObjectMeta {
            namespace: Some(stray.namespace.clone()),
            name: Some(stray.object.clone()),
            uid: stray.owner.clone(),
            ..ObjectMeta::default()
        };
        let owner = teardown::leaving(&of).map_err(|error| {
            let call = format!("delete {:?} {}/{}", stray.id.kind, stray.namespace, stray.id.name);
            let failure = CallFailure::Call(kube::Error::SerdeError(error));
            Error::failed(&change::DELETE, call, failure)
        })?;
        self.delete_child(&Run::new(&owner, settings), &stray.id).await
    }

    async fn delete_deployment(&self, run: &Run<'_>, child: &ChildRef) -> Result<(), Error> {
        let call = format!("delete {}", dynamo::KIND);
        let mut versions = self.deployment_versions(run);
        let mut refused = Ok(());
        // Not served, or unread: no deletion now. The next look at the children shows what remains.
        while let Ok(resource) = versions.next().await {
            let api = self.deployments_as(run, &resource);
            match self.try_delete(&api, &child.name, &child.uid).await {
                Err(failure) if versions.goes_on(&call, &failure) => {
                    if refused.is_ok() && !failure.is_not_served() {
                        refused = Err(failure);
                    }
                }
                answer => return deleted(run, dynamo::KIND, &child.name, answer),
            }
        }
        deleted(run, dynamo::KIND, &child.name, refused)
    }

    /// Deletes the object in the version on which the pass decided. A client that changed it meanwhile may want it to
    /// stay, so a conflict is an error, and the next pass decides again.
    pub(super) async fn delete_self(&self, run: &Run<'_>) -> Result<(), Error> {
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), run.namespace());
        let params = delete_params(run.uid(), run.object.metadata.resource_version.clone());
        match self.bounded(api.delete(run.name(), &params)).await {
            Err(failure) if !failure.is_not_found() => Err(refused(run, "PerfValidation", run.name(), failure)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn try_delete(&self, api: &Api<DynamicObject>, name: &str, uid: &str) -> Result<(), CallFailure> {
        let params = delete_params(uid, None);
        self.bounded(api.delete(name, &params)).await.map(|_| ())
    }
}

/// Background propagation: a foreground delete of a deployment waits on children that its operator creates again.
pub(crate) fn delete_params(uid: &str, resource_version: Option<String>) -> DeleteParams {
    DeleteParams::background().preconditions(Preconditions {
        uid: Some(uid.to_owned()),
        resource_version,
    })
}

fn deleted(run: &Run<'_>, kind: &str, name: &str, answer: Result<(), CallFailure>) -> Result<(), Error> {
    unless_late(answer)
        .map(|_| ())
        .map_err(|failure| refused(run, kind, name, failure))
}

fn refused(run: &Run<'_>, kind: &str, name: &str, failure: CallFailure) -> Error {
    let call = format!("delete {kind} {}", in_namespace(run, name));
    Error::failed(&change::DELETE, call, failure)
}
