//! The operator's own configuration, as far as decisions depend on it.

/// Flags of the operator that shape what it creates.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Image that holds `perfval-runner` (the operator's own image); its init container copies the runner.
    pub runner_image: String,
    /// AIPerf image where `benchmark.image` is empty.
    pub aiperf_image: Option<String>,
    /// DNS suffix of the cluster, for the endpoint's URL.
    pub cluster_domain: String,
    /// Version of this operator, for labels.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runner_image: concat!("localhost/perfvalidation-operator:", env!("CARGO_PKG_VERSION")).into(),
            aiperf_image: None,
            cluster_domain: "cluster.local".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}
