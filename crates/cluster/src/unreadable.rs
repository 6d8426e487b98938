//! Status of an object that this version cannot parse.

use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use perfval_api::PerfValidation;
use serde_json::Value;

use crate::error::unless_late;
use crate::{Cluster, Error};

impl Cluster {
    /// Edits the status of an object and leaves every field as it is that the edit leaves. Nothing is written where the edit
    /// changes nothing, and where the object is gone or has changed since.
    pub async fn edit_status(&self, object: &ObjectMeta, edit: impl FnOnce(&mut Value)) -> Result<(), Error> {
        let (namespace, name) = (
            object.namespace.as_deref().unwrap_or_default(),
            object.name.as_deref().unwrap_or_default(),
        );
        let refused = |failure| Error::unwritten_status(namespace, name, failure);
        let resource = ApiResource::erase::<PerfValidation>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        // A list needs no right beyond those of a watch.
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = self.list(&api, params).await.map_err(refused)?.pop();
        let Some(found) = found.filter(|found| found.metadata.uid == object.uid) else {
            return Ok(());
        };
        let mut status = found.data["status"].clone();
        edit(&mut status);
        if status == found.data["status"] {
            return Ok(());
        }
        let seen = &found.metadata;
        let written = self.write_status::<PerfValidation, _>(&api, seen, &status).await;
        unless_late(written).map(|_| ()).map_err(refused)
    }
}
