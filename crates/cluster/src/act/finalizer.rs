use kube::api::{Api, Patch, PatchParams};
use kube::core::ObjectMeta;
use perfval_api::PerfValidation;
use perfval_api::meta::FINALIZER;
use perfval_run::Run;
use serde_json::{Value, json};

use super::in_namespace;
use crate::{CallFailure, Cluster, Error, FIELD_MANAGER, change};

impl Cluster {
    pub(super) async fn ensure_finalizer(&self, run: &Run<'_>) -> Result<Option<ObjectMeta>, Error> {
        if run.has_finalizer() {
            return Ok(None);
        }
        // Each operation holds only on the list that was seen: others add and remove finalizers too.
        let operations = match run.object.metadata.finalizers.as_deref() {
            None | Some([]) => json!([
                {"op": "test", "path": "/metadata/finalizers", "value": null},
                {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]},
            ]),
            Some(seen) => json!([
                {"op": "test", "path": "/metadata/finalizers", "value": seen},
                {"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER},
            ]),
        };
        let patched = self.patch_finalizers(run, operations).await;
        patched.map(Some).map_err(|failure| failed(run, failure))
    }

    pub(super) async fn release_finalizer(&self, run: &Run<'_>) -> Result<Option<ObjectMeta>, Error> {
        let seen = run.object.metadata.finalizers.as_deref().unwrap_or_default();
        let Some(at) = seen.iter().position(|finalizer| finalizer == FINALIZER) else {
            return Ok(None);
        };
        let path = format!("/metadata/finalizers/{at}");
        let operations = json!([
            {"op": "test", "path": path, "value": FINALIZER},
            {"op": "remove", "path": path},
        ]);
        match self.patch_finalizers(run, operations).await {
            Err(failure) if !failure.is_not_found() => Err(failed(run, failure)),
            Ok(metadata) => Ok(Some(metadata)),
            // A missing object is a released one.
            Err(_) => Ok(None),
        }
    }

    async fn patch_finalizers(&self, run: &Run<'_>, mut operations: Value) -> Result<ObjectMeta, CallFailure> {
        if let Some(all) = operations.as_array_mut() {
            all.insert(0, json!({"op": "test", "path": "/metadata/uid", "value": run.uid()}));
        }
        let patch =
            serde_json::from_value(operations).map_err(|error| CallFailure::Call(kube::Error::SerdeError(error)))?;
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        let api: Api<PerfValidation> = Api::namespaced(self.client.clone(), run.namespace());
        let patch: Patch<()> = Patch::Json(patch);
        let patched = self.bounded(api.patch_metadata(run.name(), &params, &patch)).await?;
        Ok(patched.metadata)
    }
}

fn failed(run: &Run<'_>, failure: CallFailure) -> Error {
    let name = in_namespace(run, run.name());
    let call = format!("patch the finalizers of PerfValidation {name}");
    Error::failed(&change::FINALIZER, call, failure)
}
