use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// Time-outs, as Go durations (`90s`, `1h5m`).
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("duration(self.endpointProbe) <= duration(self.endpointReady)")
    .message("one probe outlives the wait for the endpoint: write an endpointProbe of at most endpointReady"))]
pub struct Timeouts {
    /// Wait for an allowed namespace and Dynamo's API (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub prerequisites: String,
    /// Wait for free GPUs (Go duration, `0s`: fail at once), without the time in the queue.
    #[serde(default = "minutes::<10>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration_or_zero())]
    pub sizing: String,
    /// Wait for a filled model cache (Go duration).
    #[serde(default = "minutes::<13>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub model_cache: String,
    /// Wait for ready components (Go duration).
    #[serde(default = "minutes::<10>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub workload_ready: String,
    /// Wait for a completion of the endpoint (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub endpoint_ready: String,
    /// Wait for one probe request (Go duration).
    #[serde(default = "default_endpoint_probe")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub endpoint_probe: String,
    /// Wait for one trial (Go duration).
    #[serde(default = "minutes::<15>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub benchmark: String,
    /// Wait for the removal of all objects (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub cleanup: String,
    /// Time from the start of a run to its verdict (Go duration), including the queue. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub total: Option<String>,
}

fn minutes<const N: u8>() -> String {
    format!("{N}m")
}

/// Default time-out of a probe. A cold first token took 42 s on an RTX PRO 6000.
fn default_endpoint_probe() -> String {
    "120s".into()
}
