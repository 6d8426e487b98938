use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::part;
use crate::rules;

/// Time-outs, as Go durations (`90s`, `1h5m`).
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("duration(self.endpointProbe) <= duration(self.endpointReady)")
    .message("one probe outlives the wait for the endpoint: write an endpointProbe of at most endpointReady"))]
pub struct Timeouts {
    /// Time-out until the namespace is allowed and Dynamo's API is served (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub prerequisites: String,
    /// Time-out for free GPUs (Go duration), without the time in the queue. `0s`: the run fails at once if too few GPUs
    /// are free.
    #[serde(default = "minutes::<10>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration_or_zero())]
    pub sizing: String,
    /// Time-out for filling the model cache (Go duration).
    #[serde(default = "minutes::<13>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub model_cache: String,
    /// Time-out until every component is ready (Go duration).
    #[serde(default = "minutes::<10>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub workload_ready: String,
    /// Time-out until the endpoint returns a real completion (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub endpoint_ready: String,
    /// Time-out of one probe request (Go duration). A cold first token took 42 s.
    #[serde(default = "default_endpoint_probe")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub endpoint_probe: String,
    /// Time-out of one trial (Go duration).
    #[serde(default = "minutes::<15>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub benchmark: String,
    /// Time-out until all objects are gone, including pods and claims (Go duration).
    #[serde(default = "minutes::<5>")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub cleanup: String,
    /// Time-out from the start of a run to its verdict (Go duration), including the time in the queue and all other
    /// waits. Absent: each wait has its own time-out, and the run as a whole has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::duration())]
    pub total: Option<String>,
}

impl Default for Timeouts {
    fn default() -> Self {
        part()
    }
}

fn minutes<const N: u8>() -> String {
    format!("{N}m")
}

/// Default time-out of a probe. A cold first token took 42 s on an RTX PRO 6000.
fn default_endpoint_probe() -> String {
    "120s".into()
}
