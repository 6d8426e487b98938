use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is read of the node during a trial, as evidence for what the workers show.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.endpoint) || self.gpus != 'None'")
    .message("an endpoint is read or it is not: leave endpoint out, or write telemetry.gpus Auto"))]
pub struct Telemetry {
    /// Whether the metrics of the GPUs (clocks, throttle reasons, temperature, errors, links) are read from the node's DCGM
    /// exporter. A run without them is no worse; a GPU that is at fault is then named by its worker only.
    #[serde(default)]
    pub gpus: GpuTelemetry,
    /// The exporter's page, such as `http://10.0.0.7:9400/metrics`: it must be that of the node under test. None: that of
    /// the node's exporter pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new(r"self.matches('^http://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$')")
        .message("write the exporter's page as http://HOST:PORT/PATH, such as http://10.0.0.7:9400/metrics, or leave the field out"))]
    pub endpoint: Option<String>,
}

/// Whether the metrics of the GPUs are read.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuTelemetry {
    /// From `endpoint`, else from the pod on the node with the label `app=nvidia-dcgm-exporter` (GPU Operator) or
    /// `app.kubernetes.io/name=dcgm-exporter`, if there is one.
    #[default]
    Auto,
    /// Not at all. (`Off` is no word for it: YAML 1.1 reads it as `false`.)
    None,
}
