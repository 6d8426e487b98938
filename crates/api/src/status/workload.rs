use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::allocation::Allocation;

/// Node and GPUs of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// Node under test.
    pub node: String,
    /// Method by which the run requests GPUs: `DRA` or `DevicePlugin`.
    #[schemars(with = "String")]
    pub allocation: Allocation,
    /// GPUs in use, one worker each.
    pub gpus: i64,
    /// GPUs of the node, free or in use.
    #[serde(rename = "nodeGPUs")]
    pub node_gpus: i64,
    /// GPUs of `nodeGPUs` that are unhealthy or tainted, so that runs cannot use them.
    #[serde(default, rename = "faultyGPUs", skip_serializing_if = "is_zero")]
    pub faulty_gpus: i64,
    /// Expected number of GPUs, if the node has fewer healthy ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedGpus>,
    /// Product name of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Driver version of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Devices that were free at sizing. The devices in use replace them once the workers hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceStatus>,
}

/// Number of GPUs that a node should have.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedGpus {
    /// Number of GPUs.
    pub gpus: i64,
    /// Source of the number.
    pub by: ExpectedBy,
}

/// Source of the number of GPUs that a node should have.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedBy {
    /// `placement.expectGPUs`.
    Spec,
    /// The node itself: its capacity, or its ResourceSlices.
    Node,
    /// The node's label `nvidia.com/gpu.count`.
    Label,
    /// Most other nodes of the same product and machine type.
    Peers,
}

impl ExpectedBy {
    /// Description of the source, for messages.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Spec => "placement.expectGPUs",
            Self::Node => "the node itself",
            Self::Label => "its label nvidia.com/gpu.count",
            Self::Peers => "most nodes like it",
        }
    }
}

/// GPU of a node.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct DeviceStatus {
    /// Pool of the driver.
    pub pool: String,
    /// Name in the ResourceSlice.
    pub name: String,
    /// UUID, if the driver publishes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

/// Deployment under test.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Name of the DynamoGraphDeployment.
    pub name: String,
    /// apiVersion of the DynamoGraphDeployment.
    pub api_version: String,
    /// Router mode in force.
    pub router_mode: String,
    /// Number of ready workers.
    pub workers_ready: i64,
    /// Seconds from ready components to the first completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_completion_seconds: Option<i64>,
    /// URL to which the load generator sends requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Source of the GPU metrics, or the reason for their absence. Absent if GPU metrics are switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_metrics: Option<GpuMetrics>,
}

/// Source of the GPU metrics.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GpuMetrics {
    /// URL of the node's DCGM exporter that each trial reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Reason for the absence of GPU metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl GpuMetrics {
    /// Creates a source with this URL.
    pub fn at(endpoint: &str) -> Self {
        Self {
            endpoint: Some(endpoint.to_owned()),
            missing: None,
        }
    }

    /// Creates an absent source with this reason.
    pub fn missing(why: String) -> Self {
        Self {
            endpoint: None,
            missing: Some(why),
        }
    }
}

/// Environment of a run. Two runs can be compared only if their environments match.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    /// Model id.
    pub model: String,
    /// Commit of the weights; absent if the spec leaves it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
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
    /// Digest of all fields except the Kubernetes version, set once the run is judged (12 hex digits).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) fn is_zero(n: &i64) -> bool {
    *n == 0
}
