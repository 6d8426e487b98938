//! Source of the GPUs' metrics: the address in the spec, or an exporter on the node.

use perfval_api::{GpuMetrics, GpuTelemetry, text};
use perfval_sizing::Seen;

use crate::observed::Need;
use crate::run::Run;

/// Longest reason (bytes) why there is no exporter: the status has a limit.
const REASON: usize = 300;

/// Read that is needed before the next trial is opened: the exporter may have moved since the last one.
pub(crate) fn need(run: &Run<'_>) -> Option<Need> {
    let telemetry = &run.spec().telemetry;
    (telemetry.gpus == GpuTelemetry::Auto && telemetry.endpoint.is_none()).then_some(Need::GpuExporter)
}

/// Source for the next trial. An exporter that is missing or unknown keeps no trial from running.
pub(crate) fn next_source(run: &Run<'_>, exporter: &Seen<String>) -> Option<GpuMetrics> {
    let telemetry = &run.spec().telemetry;
    if telemetry.gpus == GpuTelemetry::None {
        return None;
    }
    if let Some(endpoint) = &telemetry.endpoint {
        return Some(GpuMetrics::Endpoint(endpoint.clone()));
    }
    let node = run.placement().map_or("the node", |plan| plan.node.as_str());
    match exporter {
        Seen::Present(endpoint) => Some(GpuMetrics::Endpoint(endpoint.clone())),
        Seen::Absent => {
            let namespaces = run.settings.dcgm_exporter_namespaces.join(" or ");
            Some(GpuMetrics::Missing(text::cut(
                &format!(
                    "no DCGM exporter runs on {node} (label app=nvidia-dcgm-exporter or app.kubernetes.io/name=dcgm-exporter) \
                     in namespace {namespaces}; for another namespace set the operator's --dcgm-exporter-namespaces"
                ),
                REASON,
            )))
        }
        Seen::Unknown(why) => Some(GpuMetrics::Missing(format!(
            "whether a DCGM exporter runs on {node} is not known: {}",
            text::cut(why, REASON)
        ))),
        Seen::NotAsked => None,
    }
}
