//! The choice of a node.

use std::cmp::Reverse;

use perfval_api::{AllocationMode, PerfValidationSpec, Reason};

use super::Sizing;
use super::dra::Dra;
use super::examine::World;
use super::pods::PodsByNode;
use crate::Seen;
use crate::inventory::{Inventory, Node, PodUse};
use crate::observed::OtherRun;

/// Nodes that a message names.
const NAMED_NODES: usize = 10;
/// Characters of a message per node.
const NODE_TEXT: usize = 240;

/// Chooses the node with the most GPUs that a run of this spec could have now, and among equals the first by name. Nodes
/// of `busy` are another run's.
pub fn choose(inventory: &Inventory, spec: &PerfValidationSpec, busy: &[OtherRun]) -> Sizing {
    let (nodes, pods) = match read(inventory) {
        Ok(read) => read,
        Err(unread) => {
            return Sizing::Wait {
                reason: Reason::InventoryUnreadable,
                message: format!("free GPUs cannot be counted: {unread}"),
            };
        }
    };
    let class = &spec.placement.device_class_name;
    if let Some(refusal) = no_dra(inventory, spec) {
        return refusal;
    }
    let world = World {
        dra: Dra::read(inventory, class),
        pods: PodsByNode::of(pods),
        spec,
        busy,
    };

    let mut candidates = Vec::new();
    let mut excluded = Vec::new();
    for node in nodes {
        match world.examine(node) {
            Ok(Some(candidate)) => candidates.push(candidate),
            Ok(None) => {}
            Err((reason, why)) => excluded.push((reason, node.name.to_string(), why)),
        }
    }
    candidates.sort_by(|a, b| (Reverse(a.usable), &a.plan.node).cmp(&(Reverse(b.usable), &b.plan.node)));
    match candidates.into_iter().next() {
        Some(candidate) => Sizing::Chosen(candidate.plan),
        None => none_fits(excluded, nodes.len(), spec),
    }
}

/// Nodes and pods, once every part is known.
fn read(inventory: &Inventory) -> Result<(&[Node], &[PodUse]), String> {
    let Inventory {
        device_class,
        slices,
        taint_rules,
        nodes,
        pods,
        claims,
    } = inventory;
    let unread = [
        ("device class", device_class.unknown()),
        ("resource slices", slices.unknown()),
        ("device taint rules", taint_rules.unknown()),
        ("nodes", nodes.unknown()),
        ("pods", pods.unknown()),
        ("resource claims", claims.unknown()),
    ];
    if let Some((what, why)) = unread.iter().find_map(|(what, unread)| Some((what, (*unread)?))) {
        return Err(format!("{what}: {why}"));
    }
    if slices.present().is_some() && claims.is_absent() {
        return Err("resource slices are served, but resource claims are not".to_owned());
    }
    match (nodes, pods) {
        (Seen::Present(nodes), Seen::Present(pods)) => Ok((nodes, pods)),
        _ => Err("the API server serves no nodes or no pods".to_owned()),
    }
}

/// A spec that asks for claims where there can be none. A class that is missing beside published devices is another
/// matter: an installation under way, which waiting may complete.
fn no_dra(inventory: &Inventory, spec: &PerfValidationSpec) -> Option<Sizing> {
    let class = &spec.placement.device_class_name;
    if spec.placement.allocation != AllocationMode::Dra {
        return None;
    }
    let message = if inventory.slices.is_absent() {
        "resource.k8s.io/v1 is not served: this cluster has no Dynamic Resource Allocation".to_owned()
    } else if inventory.device_class.is_absent() && !Dra::read(inventory, class).has_gpu_drivers() {
        format!(
            "neither the DeviceClass {class} nor any GPU in a ResourceSlice exists: no GPU driver for DRA is installed"
        )
    } else {
        return None;
    };
    Some(Sizing::Refuse {
        reason: Reason::DeviceClassMissing,
        message,
    })
}

/// Reasons against a node from the one that time heals soonest to those that it does not heal.
const BY_HOPE: [Reason; 8] = [
    Reason::NodeBusy,
    Reason::PoolUnsettled,
    Reason::Saturated,
    Reason::DeviceClassMissing,
    Reason::NoDevicesPublished,
    Reason::NoCandidateNode,
    Reason::MixedAllocation,
    Reason::SelectorNotEvaluable,
];
const HOPELESS: [Reason; 2] = [Reason::MixedAllocation, Reason::SelectorNotEvaluable];

/// The most hopeful reason decides: while one node may still come free, waiting may help.
fn none_fits(mut excluded: Vec<(Reason, String, String)>, nodes: usize, spec: &PerfValidationSpec) -> Sizing {
    let hope = |reason: Reason| BY_HOPE.iter().position(|known| *known == reason);
    excluded.sort_by(|a, b| (hope(a.0), &a.1).cmp(&(hope(b.0), &b.1)));
    let Some(&(reason, ..)) = excluded.first() else {
        return Sizing::Wait {
            reason: Reason::NoCandidateNode,
            message: format!("none of {nodes} nodes has a GPU"),
        };
    };
    let mut texts: Vec<String> = excluded
        .iter()
        .take(NAMED_NODES)
        .map(|(_, node, why)| format!("{node}: {}", why.chars().take(NODE_TEXT).collect::<String>()))
        .collect();
    if excluded.len() > NAMED_NODES {
        texts.push(format!("and {} more", excluded.len() - NAMED_NODES));
    }
    let message = format!(
        "no node for {} GPUs or more: {}",
        spec.placement.min_gpus,
        texts.join("; ")
    );
    if HOPELESS.contains(&reason) {
        Sizing::Refuse { reason, message }
    } else {
        Sizing::Wait { reason, message }
    }
}
