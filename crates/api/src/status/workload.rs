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
    /// GPUs in use by all workers.
    pub gpus: i64,
    /// GPUs of the node, free or in use.
    #[serde(rename = "nodeGPUs")]
    pub node_gpus: i64,
    /// GPUs of `nodeGPUs` that are unhealthy or tainted, so that runs cannot use them.
    #[serde(default, rename = "faultyGPUs", skip_serializing_if = "is_zero")]
    pub faulty_gpus: i64,
    /// Number of GPUs that the node should have, if it has fewer healthy ones.
    #[serde(default, rename = "expectedGPUs", skip_serializing_if = "Option::is_none")]
    pub expected_gpus: Option<i64>,
    /// Product name of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Driver version of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Devices that were free at sizing: the UUID of each, or `pool/name` if the driver publishes none. The devices in
    /// use replace them once the workers hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

/// Deployment under test.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Name of the DynamoGraphDeployment.
    pub name: String,
    /// Number of ready workers: 0 until all of them are ready, and counted again before each trial.
    pub workers_ready: i64,
    /// URL of the node's DCGM exporter that each trial reads, or the reason for its absence. Absent if GPU metrics are
    /// switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_metrics: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) fn is_zero(n: &i64) -> bool {
    *n == 0
}
