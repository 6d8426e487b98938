use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::allocation::Allocation;

/// Node and GPUs of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// Node under test.
    pub node: String,
    /// Request: `DRA` or `DevicePlugin`.
    #[schemars(with = "String")]
    pub allocation: Allocation,
    /// GPUs of all workers.
    pub gpus: i64,
    /// GPUs of the node, free or in use.
    #[serde(rename = "nodeGPUs")]
    pub node_gpus: i64,
    /// Unhealthy or tainted GPUs of `nodeGPUs`, which runs cannot use.
    #[serde(default, rename = "faultyGPUs", skip_serializing_if = "is_zero")]
    pub faulty_gpus: i64,
    /// GPUs that the node should have, if fewer are healthy.
    #[serde(default, rename = "expectedGPUs", skip_serializing_if = "Option::is_none")]
    pub expected_gpus: Option<i64>,
    /// GPU product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// GPU driver version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Devices free at sizing, later those in use: UUIDs, or `pool/name` if the driver publishes none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

/// Deployment under test.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Name of the DynamoGraphDeployment.
    pub name: String,
    /// Ready workers, counted before each trial; 0 until all are ready.
    pub workers_ready: i64,
    /// URL of the DCGM exporter, or the reason for its absence. Absent with `telemetry.gpus: None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_metrics: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(super) fn is_zero(n: &i64) -> bool {
    *n == 0
}
