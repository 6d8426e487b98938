use k8s_openapi::api::core::v1::ConfigMap;

/// Reason why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // each text shows what the fields are
pub enum Error {
    /// The results ConfigMap cannot be read.
    #[error(
        "ConfigMap {name}: {why}; give the ConfigMap in status.resultsRef, unchanged (kubectl get configmap -o json)"
    )]
    Results { name: String, why: String },
    /// The results ConfigMap is of another run than the status.
    #[error(
        "ConfigMap {name} is of run {saved}, and the object is at run {current}: report on the ConfigMap alone, or give the ConfigMap in status.resultsRef"
    )]
    AnotherRun { name: String, saved: i64, current: i64 },
    /// The object has not run yet.
    #[error("PerfValidation {name} has no run yet: wait until status.run is there (kubectl get perfvalidations -w)")]
    NoRun { name: String },
    /// The statement of a report cannot be read.
    #[error("the statement cannot be used: {0}")]
    Statement(String),
}

impl Error {
    pub(crate) fn results(results: &ConfigMap, why: impl Into<String>) -> Self {
        Self::Results {
            name: Self::name_of(results),
            why: why.into(),
        }
    }

    pub(crate) fn name_of(results: &ConfigMap) -> String {
        let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "?".to_owned());
        format!("{}/{}", part(&results.metadata.namespace), part(&results.metadata.name))
    }
}
