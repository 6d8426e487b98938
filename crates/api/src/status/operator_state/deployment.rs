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
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GpuMetrics {
    /// URL of the node's DCGM exporter that each trial reads.
    pub endpoint: Option<String>,
    /// Reason for the absence of GPU metrics.
    pub missing: Option<String>,
}

impl GpuMetrics {
    /// The URL of the source, or the reason for its absence.
    pub fn label(&self) -> Option<&String> {
        self.endpoint.as_ref().or(self.missing.as_ref())
    }

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
