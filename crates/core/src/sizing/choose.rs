//! The choice of a node.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::{Node, Pod};
use perfval_api::{AllocationMode, DeviceStatus, PerfValidationSpec, PlacementStatus, Reason};

use super::devices::{NodeDevices, attribute};
use super::dra::{Dra, Obstacle};
use super::node::{ineligible, label, says_it_has_gpus, tolerations};
use super::room::room;
use super::{DEVICE_PLUGIN, DRA, Sizing, plugin};
use crate::Seen;
use crate::observed::{Inventory, OtherRun};

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
        pods,
        spec,
        busy,
    };

    let mut candidates = Vec::new();
    let mut excluded = Vec::new();
    for node in nodes {
        match world.examine(node) {
            Ok(Some(candidate)) => candidates.push(candidate),
            Ok(None) => {}
            Err((reason, why)) => excluded.push((reason, name(node).to_owned(), why)),
        }
    }
    candidates.sort_by(|a, b| (Reverse(a.usable), &a.plan.node).cmp(&(Reverse(b.usable), &b.plan.node)));
    match candidates.into_iter().next() {
        Some(candidate) => Sizing::Chosen(candidate.plan),
        None => none_fits(excluded, nodes.len(), spec),
    }
}

/// Nodes and pods, once every part is known.
fn read(inventory: &Inventory) -> Result<(&[Node], &[Pod]), String> {
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

struct World<'a> {
    dra: Dra<'a>,
    pods: &'a [Pod],
    spec: &'a PerfValidationSpec,
    busy: &'a [OtherRun],
}

struct Candidate {
    /// GPUs that a run could have, before `maxGPUs`.
    usable: i64,
    plan: PlacementStatus,
}

/// Who gives out the GPUs of a node.
enum Ledger {
    Claims,
    Plugin(plugin::PluginGpus),
}

impl World<'_> {
    /// A plan for a node, the reason against it, or nothing for a node that has no GPUs at all.
    fn examine(&self, node: &Node) -> Result<Option<Candidate>, Obstacle> {
        let plugin = plugin::count(node, &self.spec.placement.resource_name, self.pods);
        let unsettled = self.dra.unsettled(node);
        let has_devices = self.dra.has_gpus(node);
        if !has_devices && plugin.is_none() && unsettled.is_none() && !says_it_has_gpus(node) {
            return Ok(None);
        }
        if let Some(why) = ineligible(node, self.spec) {
            return Err((Reason::NoCandidateNode, why));
        }
        if let Some(other) = self
            .busy
            .iter()
            .filter(|other| other.node == name(node))
            .map(|other| &other.name)
            .min()
        {
            return Err((Reason::NodeBusy, format!("is held by the run of {other}")));
        }
        if let Some(unsettled) = unsettled {
            return Err(unsettled);
        }
        let candidate = match self.ledger(has_devices, plugin)? {
            Ledger::Claims => self.by_claims(node)?,
            Ledger::Plugin(gpus) => self.by_plugin(node, gpus)?,
        };
        Ok(Some(candidate))
    }

    /// Two ledgers over the same GPUs do not see each other, so a node with both is nobody's.
    fn ledger(&self, has_devices: bool, plugin: Option<plugin::PluginGpus>) -> Result<Ledger, Obstacle> {
        let resource = &self.spec.placement.resource_name;
        match (has_devices, plugin, self.spec.placement.allocation) {
            (true, Some(_), _) => Err((
                Reason::MixedAllocation,
                format!("gives its GPUs out by ResourceSlices and as {resource} at once: turn one of them off"),
            )),
            (true, None, AllocationMode::Auto | AllocationMode::Dra) => Ok(Ledger::Claims),
            (true, None, AllocationMode::DevicePlugin) => {
                Err((Reason::NoCandidateNode, format!("gives its GPUs out by DRA only, and {resource} was asked for")))
            }
            (false, Some(gpus), AllocationMode::Auto | AllocationMode::DevicePlugin) => Ok(Ledger::Plugin(gpus)),
            (false, Some(_), AllocationMode::Dra) => {
                Err((Reason::NoCandidateNode, format!("gives its GPUs out as {resource} only, and DRA was asked for")))
            }
            (false, None, _) => Err((
                Reason::NoDevicesPublished,
                "is labelled as having GPUs, but its driver published none: if its DRA plugin started before the driver, \
                 restart the plugin's pod"
                    .to_owned(),
            )),
        }
    }

    fn by_claims(&self, node: &Node) -> Result<Candidate, Obstacle> {
        let devices = self.dra.devices(node)?;
        let class = &self.spec.placement.device_class_name;
        if devices.total() == 0 {
            return Err((
                Reason::NoCandidateNode,
                format!("none of its devices is of the class {class}"),
            ));
        }
        let candidate = self.candidate(
            node,
            DRA,
            count(devices.total()),
            count(devices.free.len()),
            &devices.rejections(),
        )?;
        let plan = described(candidate.plan, &devices);
        Ok(Candidate { plan, ..candidate })
    }

    fn by_plugin(&self, node: &Node, gpus: plugin::PluginGpus) -> Result<Candidate, Obstacle> {
        let used = format!("{} in use or unhealthy", gpus.total - gpus.free);
        let candidate = self.candidate(node, DEVICE_PLUGIN, gpus.total, gpus.free, &used)?;
        let plan = PlacementStatus {
            product: label(node, "nvidia.com/gpu.product").map(str::to_owned),
            driver_version: label(node, "nvidia.com/cuda.driver-version.full").map(str::to_owned),
            ..candidate.plan
        };
        Ok(Candidate { plan, ..candidate })
    }

    /// A plan for the free GPUs of a node as far as its other resources go, or why they are too few.
    fn candidate(
        &self,
        node: &Node,
        allocation: &str,
        total: i64,
        free: i64,
        used: &str,
    ) -> Result<Candidate, Obstacle> {
        let min = i64::from(self.spec.placement.min_gpus);
        if total < min {
            return Err((Reason::NoCandidateNode, format!("has {total} GPUs in all")));
        }
        if free < min {
            return Err((Reason::Saturated, format!("{free} of {total} GPUs free ({used})")));
        }
        let room = room(node, self.pods, self.spec);
        let usable = free.min(room.workers);
        if usable < min {
            let why = format!(
                "{free} of {total} GPUs free, but {} for only {} workers",
                room.short_of, room.workers
            );
            return Err((Reason::Saturated, why));
        }
        let gpus = self
            .spec
            .placement
            .max_gpus
            .map_or(usable, |max| usable.min(i64::from(max)));
        Ok(Candidate {
            usable,
            plan: PlacementStatus {
                node: name(node).to_owned(),
                allocation: allocation.to_owned(),
                gpus,
                node_gpus: total,
                tolerations: tolerations(node, self.spec),
                ..PlacementStatus::default()
            },
        })
    }
}

/// Adds what the slices tell about the devices that the workers will probably get.
fn described(plan: PlacementStatus, devices: &NodeDevices<'_>) -> PlacementStatus {
    let chosen = &devices.free[..usize::try_from(plan.gpus).unwrap_or_default().min(devices.free.len())];
    let distinct = |name: &str| {
        let mut values: Vec<&str> = chosen
            .iter()
            .filter_map(|(id, device)| attribute(id, device, name))
            .filter_map(|attribute| attribute.string.as_deref().or(attribute.version.as_deref()))
            .collect();
        values.sort_unstable();
        values.dedup();
        (!values.is_empty()).then(|| values.join(", "))
    };
    PlacementStatus {
        product: distinct("productName"),
        driver_version: distinct("driverVersion"),
        devices: chosen
            .iter()
            .map(|(id, device)| DeviceStatus {
                pool: id.pool.to_owned(),
                name: id.device.to_owned(),
                uuid: attribute(id, device, "uuid").and_then(|uuid| uuid.string.clone()),
            })
            .collect(),
        ..plan
    }
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

fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

fn count(devices: usize) -> i64 {
    i64::try_from(devices).unwrap_or(i64::MAX)
}
