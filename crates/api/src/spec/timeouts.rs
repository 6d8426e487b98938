use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// Deadlines, as Go durations (`90s`, `1h5m`).
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("duration(self.endpointProbe) <= duration(self.endpointReady)")
    .message("one probe outlives the wait for the endpoint: write an endpointProbe of at most endpointReady"))]
pub struct Timeouts {
    /// Waiting for the DynamoGraphDeployment API (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub prerequisites: String,
    /// Waiting for free GPUs (Go duration), without the time in the queue; `0s`: fail at once when saturated.
    #[serde(default = "minutes::<10>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration_or_zero())]
    pub sizing: String,
    /// Filling the model cache (Go duration).
    #[serde(default = "minutes::<13>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub model_cache: String,
    /// Until every component is ready (Go duration).
    #[serde(default = "minutes::<10>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub workload_ready: String,
    /// Until a real completion came back (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub endpoint_ready: String,
    /// One probe request (Go duration); a cold first token took 42 s, and 30 s cancelled it.
    #[serde(default = "default_endpoint_probe")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub endpoint_probe: String,
    /// One trial (Go duration).
    #[serde(default = "minutes::<15>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub benchmark: String,
    /// Until everything is gone, pods and claims included (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub cleanup: String,
    /// From the beginning of a run to its verdict (Go duration), the time in the queue and every other wait included; absent:
    /// each wait has its own limit, and the whole has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub total: Option<String>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            prerequisites: minutes::<5>(),
            sizing: minutes::<10>(),
            model_cache: minutes::<13>(),
            workload_ready: minutes::<10>(),
            endpoint_ready: minutes::<5>(),
            endpoint_probe: default_endpoint_probe(),
            benchmark: minutes::<15>(),
            cleanup: minutes::<5>(),
            total: None,
        }
    }
}

fn minutes<const N: u8>() -> String {
    format!("{N}m")
}

/// A cold first token took 42 s on an RTX PRO 6000.
fn default_endpoint_probe() -> String {
    "120s".into()
}
