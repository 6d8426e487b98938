//! Whether our pods may run on a node.

use k8s_openapi::api::core::v1::Toleration;
use perfval_api::PerfValidationSpec;

use super::report::Obstacle;
use super::taints::{strict, tolerated, toleration};
use crate::inventory::Node;

/// Taints that the cluster itself puts on a node in trouble; they are never tolerated on a node's behalf.
const TROUBLE: &str = "node.kubernetes.io/";
/// Label of NVIDIA's node feature discovery.
const GPU_PRESENT: &str = "nvidia.com/gpu.present";

/// Why none of our pods may run on a node, if so.
pub fn ineligible(node: &Node, spec: &PerfValidationSpec) -> Option<Obstacle> {
    if node.deleting {
        return Some(Obstacle::BeingDeleted);
    }
    if !node.ready {
        return Some(Obstacle::NotReady);
    }
    if node.unschedulable {
        return Some(Obstacle::Cordoned);
    }
    let mut labels = spec.placement.node_selector.iter();
    if let Some((key, value)) = labels.find(|(key, value)| node.label(key) != Some(value.as_str())) {
        let label = format!("{key}={value}");
        return Some(Obstacle::LabelMissing { label });
    }
    let tolerations = tolerations(node, spec);
    let taint = strict(&node.taints).find(|taint| !tolerated(taint, &tolerations))?;
    let taint = format!("{}:{}", taint.key, taint.effect);
    Some(Obstacle::NotTolerated { taint })
}

/// The tolerations that our pods will carry: those of the spec, or else exactly the node's own taints.
pub fn tolerations(node: &Node, spec: &PerfValidationSpec) -> Vec<Toleration> {
    if !spec.placement.tolerations.is_empty() {
        return spec.placement.tolerations.clone();
    }
    strict(&node.taints)
        .filter(|taint| !taint.key.starts_with(TROUBLE))
        .map(toleration)
        .collect()
}

/// Whether the node claims to have GPUs.
pub fn says_it_has_gpus(node: &Node) -> bool {
    node.label(GPU_PRESENT) == Some("true")
}
