use serde::{Deserialize, Serialize};

/// Environment of a run. Two runs can be compared only if their environments match.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    /// Model id.
    pub model: String,
    /// Commit of the weights; absent if the spec leaves it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Commit of the model's repository as AIPerf loaded it in the first trial that recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Workload image.
    pub image: String,
    /// Digest of the workload image, as the node resolved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    /// Digest of the spec's load and workload settings: flags, router mode, concurrency, tokens (8 hex digits).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Product name of the GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_product: Option<String>,
    /// GPUs in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i64>,
    /// AIPerf version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aiperf: Option<String>,
    /// Version of the installed Dynamo operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamo: Option<String>,
    /// Kubernetes version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    /// GPU driver version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_driver: Option<String>,
    /// Digest of all fields except `commit` and the Kubernetes version, set once the run is judged (12 hex digits).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}
