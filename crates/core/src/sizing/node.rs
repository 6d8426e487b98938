//! Whether our pods may run on a node.

use k8s_openapi::api::core::v1::Toleration;
use perfval_api::PerfValidationSpec;

use super::taints::{strict, tolerated, toleration};
use crate::inventory::Node;

/// Taints that the cluster itself puts on a node in trouble; they are never tolerated on a node's behalf.
const TROUBLE: &str = "node.kubernetes.io/";
/// Label of NVIDIA's node feature discovery.
const GPU_PRESENT: &str = "nvidia.com/gpu.present";

/// Why none of our pods may run on a node, if so.
pub fn ineligible(node: &Node, spec: &PerfValidationSpec) -> Option<String> {
    if node.deleting {
        return Some("is being deleted".to_owned());
    }
    if !node.ready {
        return Some("is not Ready".to_owned());
    }
    if node.unschedulable {
        return Some("is cordoned".to_owned());
    }
    let missing = spec
        .placement
        .node_selector
        .iter()
        .find(|(key, value)| node.label(key) != Some(value.as_str()));
    if let Some((key, value)) = missing {
        return Some(format!("does not carry {key}={value}"));
    }
    let tolerations = tolerations(node, spec);
    let taint = strict(&node.taints).find(|taint| !tolerated(taint, &tolerations))?;
    Some(format!(
        "has the taint {}:{}, which is not tolerated",
        taint.key, taint.effect
    ))
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
