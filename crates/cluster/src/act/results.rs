use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::core::ResourceExt as _;
use perfval_api::meta::FIELD_MANAGER;
use perfval_run::Run;
use perfval_run::build::SHA256;

use super::in_namespace;
use crate::{Cluster, Error, change};

impl Cluster {
    /// Applies the results: unlike everything else they may be written again with more in them.
    pub(super) async fn save_results(&self, run: &Run<'_>, results: &ConfigMap) -> Result<(), Error> {
        let name = results.name_any();
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), run.namespace());
        let named = format!("ConfigMap {}", in_namespace(run, &name));
        let failed = |failure| {
            let call = format!("apply {named} with the results");
            Error::failed(&change::SAVE_RESULTS, call, failure)
        };
        match self.bounded(api.get_metadata(&name)).await {
            Ok(found) if !run.owns(&found) => return Err(Error::owned_by_another(named)),
            Ok(_) => {}
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => return Err(failed(failure)),
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let applied = self.bounded(api.patch(&name, &params, &Patch::Apply(results))).await;
        applied.map_err(failed)?;
        if let Some(sha256) = results.annotations().get(SHA256) {
            let written = (run.object.resource_version(), sha256.clone());
            self.written.keep(run.uid().to_owned(), written);
        }
        Ok(())
    }
}
