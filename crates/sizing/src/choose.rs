//! The choice of a node.

use std::cmp::Reverse;

use perfval_api::{AllocationMode, ExpectedGpus, PerfValidationSpec, PlacementStatus, Reason};

use super::dra::Dra;
use super::examine::World;
use super::report::NodeReport;
use super::{Sizing, expected, generator, namespace, summary};
use crate::inventory::{Inventory, Node, PodUse};
use crate::{OtherRun, Seen};

/// Chooses the node with the most GPUs that a run of this spec could have now, and among equals the first by name. Nodes
/// of `busy` are another run's.
pub fn choose(inventory: &Inventory, spec: &PerfValidationSpec, busy: &[OtherRun]) -> Sizing {
    explain(inventory, spec, busy).1
}

/// What every node has for a run of this spec, by name, and the choice among them. There are no reports of a cluster
/// that could not be read.
pub fn explain(inventory: &Inventory, spec: &PerfValidationSpec, busy: &[OtherRun]) -> (Vec<NodeReport>, Sizing) {
    let (nodes, pods) = match read(inventory) {
        Ok(read) => read,
        Err(unread) => {
            let wait = Sizing::Wait {
                reason: Reason::InventoryUnreadable,
                message: format!("free GPUs cannot be counted: {unread}"),
            };
            return (Vec::new(), wait);
        }
    };
    let world = World::of(inventory, pods, spec, busy);
    let mut nodes: Vec<&Node> = nodes.iter().collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let reports: Vec<NodeReport> = nodes.iter().map(|node| world.report(node)).collect();
    let best = nodes
        .iter()
        .zip(&reports)
        .filter(|(_, report)| report.obstacle.is_none())
        .min_by_key(|(_, report)| (Reverse(report.usable), &report.node));
    let sizing = no_dra(inventory, &world.dra, spec)
        .or_else(|| namespace::refusal(inventory, spec))
        .or_else(|| {
            let (node, report) = best?;
            let plan = match generator::with_home(&world, world.plan(node, report, report.usable)?, &nodes) {
                Ok(gpus) => world.plan(node, report, gpus)?,
                Err(sizing) => return Some(sizing),
            };
            let expected = expected_by_anyone(&world, node, report, nodes.iter().copied().zip(&reports));
            Some(Sizing::Chosen(Box::new(PlacementStatus { expected, ..plan })))
        })
        .unwrap_or_else(|| summary::none_fits(&reports, spec));
    (reports, sizing)
}

/// What a node should have, where it has fewer healthy GPUs. Nothing overrules the spec.
fn expected_by_anyone<'n>(
    world: &World<'n>,
    node: &'n Node,
    report: &NodeReport,
    all: impl Iterator<Item = (&'n Node, &'n NodeReport)> + Clone,
) -> Option<ExpectedGpus> {
    if world.spec.placement.expect_gpus.is_some() {
        return report.expected;
    }
    let known = report.expected.map_or(report.total, |expected| expected.gpus);
    expected::by_peers(node, known, all, |of| world.product(of)).or(report.expected)
}

/// What one node has for a run of this spec; nothing of a cluster that could not be read.
pub fn examine(inventory: &Inventory, spec: &PerfValidationSpec, node: &str) -> Option<NodeReport> {
    let (nodes, pods) = read(inventory).ok()?;
    let node = nodes.iter().find(|known| *known.name == *node)?;
    Some(World::of(inventory, pods, spec, &[]).report(node))
}

/// Nodes and pods, once every part is known.
fn read(inventory: &Inventory) -> Result<(&[Node], &[PodUse]), String> {
    let Inventory {
        device_class,
        slices,
        taint_rules,
        nodes,
        pods,
        quotas,
        limit_ranges,
        cache_volume,
        promises,
        claims,
        naming: _,
    } = inventory;
    let unread = [
        ("device class", device_class.unknown()),
        ("resource slices", slices.unknown()),
        ("device taint rules", taint_rules.unknown()),
        ("nodes", nodes.unknown()),
        ("pods", pods.unknown()),
        ("resource quotas", quotas.unknown()),
        ("limit ranges", limit_ranges.unknown()),
        ("model cache", cache_volume.unknown()),
        ("bind requests", promises.unknown()),
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

/// A spec that asks for claims where there can be none. A class that is missing while devices are published is another
/// matter: an installation under way, which waiting may complete.
fn no_dra(inventory: &Inventory, dra: &Dra<'_>, spec: &PerfValidationSpec) -> Option<Sizing> {
    let class = &spec.placement.device_class_name;
    if spec.placement.allocation != AllocationMode::Dra {
        return None;
    }
    let message = if inventory.slices.is_absent() {
        "resource.k8s.io is not served in any known version: this cluster has no Dynamic Resource Allocation".to_owned()
    } else if inventory.device_class.is_absent() && !dra.has_gpu_drivers() {
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
