use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Details of the deployment under test.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentState {
    /// apiVersion of the DynamoGraphDeployment.
    pub api_version: String,
    /// Router mode in force, as its flag.
    pub router_mode: String,
    /// URL to which the load generator sends requests.
    pub endpoint: Option<String>,
    /// Source of the GPU metrics. Absent if GPU metrics are switched off.
    pub gpu_metrics: Option<GpuMetrics>,
}

/// Source of the GPU metrics.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum GpuMetrics {
    /// URL of the node's DCGM exporter that each trial reads.
    Endpoint(String),
    /// Reason for the absence of GPU metrics.
    Missing(String),
}

impl GpuMetrics {
    /// The URL of the source, or the reason for its absence.
    pub fn label(&self) -> &str {
        let (Self::Endpoint(label) | Self::Missing(label)) = self;
        label
    }
}
