use std::path::Path;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource};
use perfval_api::PerfValidation;
use perfval_api::text::quoted;
use serde::de::DeserializeOwned;

use super::check::Check;
use crate::args::OPERATOR_NAMESPACE;
use crate::error::Error;
use crate::session::Session;

/// Subject of the checks.
pub struct Asked<'a> {
    pub session: &'a Session,
    /// Validation that is to be run.
    pub object: &'a PerfValidation,
    /// The user's file with its manifest; without one, every choice has its default.
    pub filename: Option<&'a Path>,
    pub operator_namespace: &'a str,
}

impl Asked<'_> {
    /// Returns true if the validation is a manifest of the user's.
    pub fn given(&self) -> bool {
        self.filename.is_some()
    }

    /// A command to type about the same validation, in the same namespace.
    pub fn command(&self, verb: &str) -> String {
        let namespace = self.object.metadata.namespace.as_deref().unwrap_or_default();
        let file = self.filename.map(|path| quoted(&path.display().to_string()));
        let file = file.map_or_else(String::new, |file| format!(" -f {file}"));
        format!("kubectl perfval {verb} -n {namespace}{file}{}", self.session.flags)
    }

    /// Command that makes the same checks, of the operator in a namespace.
    pub fn doctor(&self, operator_namespace: &str) -> String {
        let flag = match operator_namespace {
            OPERATOR_NAMESPACE => String::new(),
            other => format!(" --operator-namespace {other}"),
        };
        self.command("doctor") + &flag
    }

    /// Checks if an object that the manifest names exists in its namespace; only its metadata is read. `next` is a step
    /// without the namespace.
    pub async fn exists<K>(&self, name: &str, next: &str) -> Check
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let namespace = self.object.metadata.namespace.as_deref().unwrap_or_default();
        let kind = K::kind(&());
        let api: Api<K> = Api::namespaced(self.session.client.clone(), namespace);
        match api.get_metadata_opt(name).await {
            Ok(Some(_)) => Check::good(format!("{kind} {name} is there")),
            Ok(None) => Check::missing(
                format!("the manifest uses {kind} {name}, which is not in {namespace}"),
                format!("{next} -n {namespace}"),
            ),
            Err(error) => Check::unknown(
                format!("{kind} {name}: {}", Error::from_call(&format!("read {kind}s"), error)),
                format!("kubectl get {} {name} -n {namespace}", kind.to_lowercase()),
            ),
        }
    }
}
