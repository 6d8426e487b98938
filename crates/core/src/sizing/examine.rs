//! One node: the plan for it, or the reason against it.

use perfval_api::{AllocationMode, DeviceStatus, PerfValidationSpec, PlacementStatus, Reason};

use super::devices::{NodeDevices, attribute};
use super::dra::{Dra, Obstacle};
use super::node::{ineligible, says_it_has_gpus, tolerations};
use super::pods::PodsByNode;
use super::room::room;
use super::{DEVICE_PLUGIN, DRA, plugin};
use crate::inventory::{Attribute, Node};
use crate::observed::OtherRun;

/// Everything that a node is judged by.
pub struct World<'a> {
    pub dra: Dra<'a>,
    pub pods: PodsByNode<'a>,
    pub spec: &'a PerfValidationSpec,
    pub busy: &'a [OtherRun],
}

/// A node that will do.
pub struct Candidate {
    /// GPUs that a run could have, before `maxGPUs`.
    pub usable: i64,
    pub plan: PlacementStatus,
}

/// Who gives out the GPUs of a node.
enum Ledger {
    Claims,
    Plugin(plugin::PluginGpus),
}

impl World<'_> {
    /// A plan for a node, the reason against it, or nothing for a node that has no GPUs at all.
    pub fn examine(&self, node: &Node) -> Result<Option<Candidate>, Obstacle> {
        let plugin = plugin::count(node, &self.spec.placement.resource_name, self.pods.on(node));
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
            .filter(|other| *other.node == *node.name)
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
            (true, None, AllocationMode::DevicePlugin) => Err((
                Reason::NoCandidateNode,
                format!("gives its GPUs out by DRA only, and {resource} was asked for"),
            )),
            (false, Some(gpus), AllocationMode::Auto | AllocationMode::DevicePlugin) => Ok(Ledger::Plugin(gpus)),
            (false, Some(_), AllocationMode::Dra) => Err((
                Reason::NoCandidateNode,
                format!("gives its GPUs out as {resource} only, and DRA was asked for"),
            )),
            (false, None, _) => Err((
                Reason::NoDevicesPublished,
                format!(
                    "is labelled as having GPUs, but neither ResourceSlices nor {resource} offer any: if the DRA plugin \
                     started before the driver, restart the plugin's pod"
                ),
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
        let in_reach = count(devices.total() - devices.never_free());
        if devices.never_free() > 0 && in_reach < i64::from(self.spec.placement.min_gpus) {
            let why = format!(
                "only {in_reach} of {} GPUs can be had whole ({})",
                devices.total(),
                devices.rejections()
            );
            return Err((Reason::NoCandidateNode, why));
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
            product: node.label("nvidia.com/gpu.product").map(str::to_owned),
            driver_version: node.label("nvidia.com/cuda.driver-version.full").map(str::to_owned),
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
        let room = room(node, self.pods.on(node), self.spec);
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
                node: node.name.to_string(),
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
            .filter_map(Attribute::text)
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
                uuid: attribute(id, device, "uuid")
                    .and_then(Attribute::string)
                    .map(str::to_owned),
            })
            .collect(),
        ..plan
    }
}

fn count(devices: usize) -> i64 {
    i64::try_from(devices).unwrap_or(i64::MAX)
}
