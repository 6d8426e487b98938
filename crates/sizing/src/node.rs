//! Rules for our pods on a node.

use k8s_openapi::api::core::v1::{Taint, Toleration};
use perfval_api::PerfValidationSpec;
use rust_decimal::Decimal;

use super::node_selector;
use super::report::NodeObstacle;
use super::taints::{as_yaml, strict, tolerated, toleration};
use crate::inventory::{CacheVolume, Node};

/// Taints by which the cluster takes a node out of service or will remove it. No message advises tolerating them.
const OUT_OF_SERVICE: [&str; 9] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "karpenter.sh/unregistered",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
];
/// Taints that keep pods without a GPU off nodes with GPUs, by key and value: a convention of NVIDIA's GPU operator, GKE
/// and EKS, and of AKS. `placement.resourceName` is another one: `ExtendedResourceToleration` tolerates it as well.
const MARKS_GPUS: [(&str, Option<&str>); 2] = [("nvidia.com/gpu", None), ("sku", Some("gpu"))];
/// The taint of a cordoned node, which its controller may not have added yet.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Label by which a run selects one node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Label of nodes with GPUs, by NVIDIA's GPU feature discovery.
pub const GPU_PRESENT: &str = "nvidia.com/gpu.present";

/// Obstacle that keeps all our pods from a node.
pub fn ineligible(node: &Node, spec: &PerfValidationSpec, cache: Option<&CacheVolume>) -> Option<NodeObstacle> {
    let mut labels = spec.placement.node_selector.iter();
    if let Some((key, value)) = labels.find(|(key, value)| node.label(key) != Some(value.as_str())) {
        let label = format!("{key}={value}");
        return Some(NodeObstacle::LabelMissing { label });
    }
    if node.deleting {
        return Some(NodeObstacle::BeingDeleted);
    }
    if !node.ready {
        return Some(NodeObstacle::NotReady);
    }
    // A repaired node is validated before it is uncordoned, but only if the spec selects it by name.
    if node.unschedulable && !spec.placement.node_selector.contains_key(HOSTNAME) {
        return Some(NodeObstacle::Cordoned);
    }
    not_tolerated(node, spec).or_else(|| out_of_reach(node, cache))
}

/// The taint of a cordoned node, whether or not its controller has added it yet.
pub fn cordon(node: &Node) -> Option<Taint> {
    node.unschedulable.then(|| Taint {
        key: UNSCHEDULABLE.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    })
}

/// The taints that our pods do not tolerate. All at once, so that the second one is not found only in the next run.
fn not_tolerated(node: &Node, spec: &PerfValidationSpec) -> Option<NodeObstacle> {
    let tolerations = tolerations(node, spec);
    let cordon = cordon(node);
    let own = strict(&node.taints).filter(|taint| taint.key != UNSCHEDULABLE);
    let missing: Vec<&Taint> = own
        .chain(&cordon)
        .filter(|taint| !tolerated(taint, &tolerations))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let fatal = |taint: &&&Taint| taint.key != UNSCHEDULABLE && is_out_of_service(taint);
    if let Some(taint) = missing.iter().find(fatal) {
        return Some(NodeObstacle::OutOfService { taint: in_words(taint) });
    }
    Some(NodeObstacle::NotTolerated {
        taints: missing.iter().map(|taint| in_words(taint)).collect(),
        tolerations: missing.iter().map(|taint| as_yaml(&toleration(taint))).collect(),
    })
}

fn is_out_of_service(taint: &Taint) -> bool {
    let is = |known: &&str| taint.key == *known || known.ends_with('/') && taint.key.starts_with(known);
    OUT_OF_SERVICE.iter().any(is)
}

/// `dedicated=ml:NoSchedule`.
fn in_words(taint: &Taint) -> String {
    let value = taint.value.as_deref().filter(|value| !value.is_empty());
    let value = value.map(|value| format!("={value}")).unwrap_or_default();
    format!("{}{value}:{}", taint.key, taint.effect)
}

fn out_of_reach(node: &Node, cache: Option<&CacheVolume>) -> Option<NodeObstacle> {
    let cache = cache.filter(|cache| !node_selector::matches(&cache.nodes, node))?;
    Some(NodeObstacle::VolumeElsewhere {
        claim: cache.claim.clone(),
        nodes: node_selector::in_words(&cache.nodes),
    })
}

/// The tolerations that our pods will carry: those of the spec, and those of the node's taints that only mark its GPUs.
pub fn tolerations(node: &Node, spec: &PerfValidationSpec) -> Vec<Toleration> {
    let mut tolerations = spec.placement.tolerations.clone();
    let marks = strict(&node.taints).filter(|taint| marks_gpus(taint, spec));
    for taint in marks {
        if !tolerated(taint, &tolerations) {
            tolerations.push(toleration(taint));
        }
    }
    tolerations
}

fn marks_gpus(taint: &Taint, spec: &PerfValidationSpec) -> bool {
    let known = |(key, value): &(&str, Option<&str>)| {
        taint.key == *key && value.is_none_or(|value| taint.value.as_deref() == Some(value))
    };
    taint.key == spec.placement.resource_name || MARKS_GPUS.iter().any(known)
}

/// Returns true if the node claims to have GPUs: by a label, or by a capacity without any allocatable GPU.
pub fn claims_gpus(node: &Node, resource: &str) -> bool {
    node.label(GPU_PRESENT) == Some("true") || node.capacity.get(resource) > Decimal::ZERO
}
