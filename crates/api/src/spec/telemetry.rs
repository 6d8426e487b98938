use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Readings of the node during a trial, as evidence for the behavior of the workers.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.endpoint) || self.gpus != 'None'")
    .message("telemetry.gpus None reads no endpoint: leave endpoint out, or write gpus Auto"))]
pub struct Telemetry {
    /// Source of the GPU metrics, for the diagnosis only. `Auto`: the node's DCGM exporter. `None`: no GPU metrics.
    #[serde(default)]
    pub gpus: GpuTelemetry,
    /// URL of the node's exporter, such as `http://10.0.0.7:9400/metrics`. None: the exporter pod on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new(r"self.matches('^http://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$')")
        .message("write the exporter's page as http://HOST:PORT/PATH, such as http://10.0.0.7:9400/metrics, or leave the field out"))]
    pub endpoint: Option<String>,
}

/// Source of the GPU metrics.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuTelemetry {
    /// `endpoint` if set, otherwise the pod on the node with the label `app=nvidia-dcgm-exporter` (GPU Operator) or
    /// `app.kubernetes.io/name=dcgm-exporter`, if there is one.
    #[default]
    Auto,
    /// No GPU metrics. (The value is not `Off`, because YAML 1.1 reads that as `false`.)
    None,
}
