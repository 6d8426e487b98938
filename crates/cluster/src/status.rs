//! Write of a status, which is the same for every kind.

use kube::api::{Api, Patch, PatchParams};
use kube::core::{ObjectMeta, Resource};
use perfval_api::meta::FIELD_MANAGER;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{CallFailure, Cluster};

impl Cluster {
    /// Writes the status of an object of the kind `K` by server-side apply, and reads the answer as an `A`. The write fails if the
    /// object no longer has the resourceVersion of `seen`, if `seen` has one. For a custom resource the API server does not compare
    /// the uid of such a write.
    pub(crate) async fn write_status<K, A>(
        &self,
        api: &Api<A>,
        seen: &ObjectMeta,
        status: &impl Serialize,
    ) -> Result<A, CallFailure>
    where
        K: Resource<DynamicType = ()>,
        A: DeserializeOwned,
    {
        let metadata = ObjectMeta {
            name: seen.name.clone(),
            namespace: seen.namespace.clone(),
            uid: seen.uid.clone(),
            resource_version: seen.resource_version.clone(),
            ..ObjectMeta::default()
        };
        let body = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": metadata,
            "status": status,
        });
        let name = seen.name.as_deref().unwrap_or_default();
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.bounded(api.patch_status(name, &params, &Patch::Apply(body))).await
    }
}
