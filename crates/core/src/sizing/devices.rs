//! Which devices of a node a worker could get.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::DeviceToleration;
use serde_json::Value;

use super::busy_devices::BusyDevices;
use super::counters::Counters;
use super::pools::{DeviceId, Pool};
use super::report::{Taken, TakenBy};
use super::selector::{NotEvaluable, Selectors};
use super::taints::device_taint;
use crate::inventory::{Attribute, Device, Node};

/// The devices of a class on one node.
#[derive(Default)]
pub struct NodeDevices<'a> {
    /// Those that workers would get, in the order in which they would get them.
    pub free: Vec<(DeviceId<'a>, &'a Device)>,
    /// All others, and why.
    pub taken: Vec<(DeviceId<'a>, &'a Device, TakenBy)>,
}

impl<'a> NodeDevices<'a> {
    /// Devices of the class, free or not.
    pub fn all(&self) -> impl Iterator<Item = (DeviceId<'a>, &'a Device)> + '_ {
        let taken = self.taken.iter().map(|(id, device, _)| (*id, *device));
        self.free.iter().copied().chain(taken)
    }

    /// The devices that are not free, counted by what stands against them.
    pub fn tally(&self, busy: &BusyDevices<'_>) -> Vec<Taken> {
        let mut kinds: BTreeMap<&TakenBy, Vec<DeviceId<'_>>> = BTreeMap::new();
        for (id, _, by) in &self.taken {
            kinds.entry(by).or_default().push(*id);
        }
        let tally = |(by, ids): (&TakenBy, Vec<DeviceId<'_>>)| {
            let holders = ids.iter().flat_map(|id| busy.holders(id)).map(str::to_owned);
            Taken::by(by.clone(), count(ids.len()), holders)
        };
        kinds.into_iter().map(tally).collect()
    }
}

/// A number of devices, as the API writes it.
pub fn count(devices: usize) -> i64 {
    i64::try_from(devices).unwrap_or(i64::MAX)
}

/// What a worker's claim asks for, beside its class.
pub struct Request<'a> {
    pub selectors: &'a Selectors,
    pub tolerations: &'a [DeviceToleration],
}

/// Gives one device after the other to identical claims, as the scheduler does: first fit, nothing is moved afterwards,
/// pools with devices that are attached after binding come last. `pools` are those of the node that can be counted, by
/// driver and name.
pub fn first_fit<'a>(
    pools: &[&Pool<'a>],
    node: &Node,
    busy: &BusyDevices<'a>,
    rules: &[Value],
    request: &Request<'_>,
) -> Result<NodeDevices<'a>, NotEvaluable> {
    let mut held: Vec<PhysicalGpu<'a>> = pools
        .iter()
        .flat_map(|pool| pool.devices_of(node))
        .filter(|(id, _)| busy.contains(id))
        .map(|(id, device)| PhysicalGpu::of(&id, device))
        .collect();
    let mut pools = pools.to_vec();
    pools.sort_by_key(|pool| pool.binds_later(node));

    let mut found = NodeDevices::default();
    // Once a worker would wait for such a device, nobody can say what the next one gets.
    let mut behind_late_one = false;
    for pool in pools {
        let mut counters = Counters::of(pool);
        pool.devices()
            .filter(|(id, _)| busy.contains(id))
            .for_each(|(_, device)| counters.take(device));
        for (id, device, here) in pool.walked_for(node) {
            // The scheduler asks about a slice's devices of other nodes too, and gives up where that fails.
            if !request.selectors.match_device(id.driver, device)? || !here {
                continue;
            }
            let gpu = PhysicalGpu::of(&id, device);
            let taken_by = if busy.contains(&id) {
                Some(TakenBy::InUse)
            } else if device.shareable {
                Some(TakenBy::Shareable)
            } else if let Some(taint) = device_taint(&id, device, rules, request.tolerations) {
                Some(TakenBy::Tainted { taint })
            } else if !counters.suffice(device) {
                Some(TakenBy::CountersUsedUp)
            } else if held.iter().any(|other| other.excludes(&gpu)) {
                Some(TakenBy::TwinInUse)
            } else if behind_late_one || device.binds_later {
                behind_late_one = true;
                Some(TakenBy::BindsLater)
            } else {
                None
            };
            if let Some(by) = taken_by {
                found.taken.push((id, device, by));
            } else {
                counters.take(device);
                held.push(gpu);
                found.free.push((id, device));
            }
        }
    }
    Ok(found)
}

/// What ties devices to one card: a passthrough twin and a static MIG partition come without counters.
struct PhysicalGpu<'a> {
    marks: BTreeSet<&'a str>,
    partition: bool,
}

impl<'a> PhysicalGpu<'a> {
    fn of(id: &DeviceId<'a>, device: &'a Device) -> Self {
        let mark = |name: &str| attribute(id, device, name)?.string();
        Self {
            marks: ["uuid", "parentUUID", "resource.kubernetes.io/pciBusID"]
                .into_iter()
                .filter_map(mark)
                .collect(),
            partition: mark("parentUUID").is_some(),
        }
    }

    /// Two partitions of one card get along; their counters decide.
    fn excludes(&self, other: &Self) -> bool {
        let both_partitions = self.partition && other.partition;
        !both_partitions && !self.marks.is_disjoint(&other.marks)
    }
}

/// An attribute of a device; an unqualified name is also found under the driver's own domain.
pub fn attribute<'a>(id: &DeviceId<'_>, device: &'a Device, name: &str) -> Option<&'a Attribute> {
    device
        .attribute(name)
        .or_else(|| device.attribute(&format!("{}/{name}", id.driver)))
}
