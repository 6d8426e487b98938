use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Environment of a run. Two runs can be compared only if their environments match.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    /// Model id.
    pub model: String,
    /// Commit of the weights; absent if the spec leaves it open.
    pub revision: Option<String>,
    /// Commit of the model's repository as AIPerf loaded it in the first trial that recorded it.
    pub commit: Option<String>,
    /// Workload image.
    pub image: String,
    /// Digest of the workload image, as the node resolved it.
    pub image_digest: Option<String>,
    /// Digest of the spec's load and workload settings: flags, router mode, concurrency, tokens (8 hex digits).
    pub settings: Option<String>,
    /// Product name of the GPUs.
    pub gpu_product: Option<String>,
    /// GPUs in use.
    pub gpus: Option<i64>,
    /// AIPerf version.
    pub aiperf: Option<String>,
    /// Version of the installed Dynamo operator.
    pub dynamo: Option<String>,
    /// Kubernetes version.
    pub kubernetes: Option<String>,
    /// GPU driver version.
    pub gpu_driver: Option<String>,
    /// Digest of all fields except `commit` and the Kubernetes version, set once the run is judged (12 hex digits).
    pub digest: Option<String>,
}
