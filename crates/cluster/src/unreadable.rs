//! Status of an object that this version cannot parse.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::{Request, Resource};
use perfval_api::PerfValidation;
use perfval_api::meta::FIELD_MANAGER;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::page::Json;
use crate::{Class, Cluster, Error};

/// The parts of an object that are read at any version.
#[derive(Clone, Debug, Deserialize)]
struct Raw {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Value,
}

impl Cluster {
    /// Edits the status of an object and leaves every field as it is that the edit leaves. Nothing is written where the edit
    /// changes nothing, and where the object is gone or has changed since.
    pub async fn edit_status(&self, object: &ObjectMeta, edit: impl FnOnce(&mut Value)) -> Result<(), Error> {
        let (namespace, name) = (
            object.namespace.as_deref().unwrap_or_default(),
            object.name.as_deref().unwrap_or_default(),
        );
        let refused = |failure| Error::RecordStatus {
            name: format!("{namespace}/{name}"),
            failure,
        };
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), namespace);
        // A list needs no right beyond those of a watch.
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = self.list_reduced(Json, api.resource_url(), params, Some::<Raw>);
        let found = found.await.map_err(refused)?.pop();
        let Some(raw) = found.filter(|raw| raw.metadata.uid == object.uid) else {
            return Ok(());
        };
        let mut status = raw.status.clone();
        edit(&mut status);
        if status == raw.status {
            return Ok(());
        }
        let body = json!({
            "apiVersion": PerfValidation::api_version(&()),
            "kind": PerfValidation::kind(&()),
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": raw.metadata.uid,
                "resourceVersion": raw.metadata.resource_version,
            },
            "status": status,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let request = Request::new(api.resource_url())
            .patch_subresource("status", name, &params, &Patch::Apply(body))
            .map_err(|error| refused(crate::CallFailure::Call(kube::Error::BuildRequest(error))))?;
        match self.bounded(self.client.request::<Raw>(request)).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is_not_found() || failure.class() == Class::Conflict => Ok(()),
            Err(failure) => Err(refused(failure)),
        }
    }
}
