use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, ObjectMeta, Resource, ResourceExt as _};
use perfval_api::{PerfValidation, PerfValidationStatus};
use perfval_run::Run;
use serde::Deserialize;
use serde_json::Value;

use crate::call::FIRST;
use crate::error::unless_late;
use crate::{CallFailure, Cluster, Error};

/// Outcome of recording a status.
#[derive(Clone, Debug)]
pub enum StatusWrite {
    /// The new status equals the current one.
    Unchanged,
    /// It is written; the object as it is now.
    Written(Box<PerfValidation>),
    /// The object moved on or is gone: the decision was made on an old copy and counts for nothing.
    Conflict,
}

/// Parts of an object that an edit of its status reads. Sixteen edits at once hold them, and 1.4 MB of short finalizers take 8 MB.
#[derive(Deserialize)]
struct EditedObject {
    metadata: EditedMetadata,
    #[serde(default)]
    status: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EditedMetadata {
    uid: Option<String>,
    generation: Option<i64>,
    resource_version: Option<String>,
}

impl Cluster {
    /// The object as it is now; `None` if it is gone, or another one has its name.
    pub async fn whole(&self, run: &Run<'_>) -> Result<Option<PerfValidation>, CallFailure> {
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), run.namespace());
        let found = self.list(&api, named(run.name())).await?.pop();
        Ok(found.filter(|object| object.uid().as_deref() == Some(run.uid())))
    }

    /// Writes the status, which is the commit of a pass. It carries the resourceVersion of the object the decision was made
    /// on, so that a decision on an old copy fails instead of turning the phase back.
    pub async fn record(&self, run: &Run<'_>, status: &PerfValidationStatus) -> Result<StatusWrite, Error> {
        if run.object.status.as_ref() == Some(status) {
            return Ok(StatusWrite::Unchanged);
        }
        let meta = &run.object.metadata;
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), run.namespace());
        match self.write_status::<PerfValidation, _>(&api, meta, status).await {
            // All that is new was dropped: a CRD from before an upgrade prunes fields it does not know. No watch event
            // will come of it.
            Ok(same) if same.metadata.resource_version == meta.resource_version => Ok(StatusWrite::Unchanged),
            Ok(written) => Ok(StatusWrite::Written(Box::new(written))),
            Err(failure) if failure.is_too_late() => Ok(StatusWrite::Conflict),
            Err(failure) => {
                let object = format!("PerfValidation {}/{}", run.namespace(), run.name());
                Err(Error::unwritten_status(&object, failure))
            }
        }
    }

    /// Changes the status of an object of the kind `K` that this version cannot parse. Other fields stay. Writes nothing if the edit
    /// changes nothing, or if the object is gone or has changed since.
    pub async fn edit_status<K>(&self, object: &ObjectMeta, edit: impl FnOnce(&mut Value)) -> Result<(), Error>
    where
        K: Resource<DynamicType = ()>,
    {
        let name = object.name.as_deref().unwrap_or_default();
        let (client, resource) = (self.client.clone(), ApiResource::erase::<K>(&()));
        let (api, place): (Api<DynamicObject>, String) = match &object.namespace {
            Some(namespace) => (
                Api::namespaced_with(client, namespace, &resource),
                format!("{namespace}/{name}"),
            ),
            None => (Api::all_with(client, &resource), name.to_owned()),
        };
        let refused = |failure| Error::unwritten_status(&format!("{} {place}", resource.kind), failure);
        let whole = |(): &mut (), object: EditedObject| Some(object);
        let listed = self.list_as(FIRST, api.resource_url(), named(name), (), whole);
        let found = listed.await.map_err(refused)?.items.pop();
        let is_same = |found: &EditedMetadata| found.uid == object.uid && found.generation == object.generation;
        let Some(EditedObject { metadata, status }) = found.filter(|found| is_same(&found.metadata)) else {
            return Ok(());
        };
        let mut edited = status.clone();
        edit(&mut edited);
        if edited == status {
            return Ok(());
        }
        let seen = ObjectMeta {
            resource_version: metadata.resource_version,
            ..object.clone()
        };
        let written = self.write_status::<K, _>(&api, &seen, &edited).await;
        unless_late(written).map(|_| ()).map_err(refused)
    }
}

/// Selects one object. A list needs no right beyond those of a watch.
fn named(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}
