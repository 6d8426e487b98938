//! Devices of a node that a worker could get.

use k8s_openapi::api::resource::v1::DeviceToleration;
use perfval_api::DeviceStatus;
use serde_json::Value;

use super::busy_devices::BusyDevices;
use super::counters::PoolCounters;
use super::naming::{Holder, Naming};
use super::pools::{DeviceId, Pool};
use super::selector::{NotEvaluable, Selectors};
use super::taints::device_taint;
use super::taken::{Taken, TakenBy};
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

    /// The devices that are not free, counted by what rules them out.
    pub fn tally(&self, busy: &BusyDevices<'_>, naming: &Naming) -> Vec<Taken> {
        let mut by_kind: Vec<(&TakenBy, &DeviceId<'_>)> = self.taken.iter().map(|(id, _, by)| (by, id)).collect();
        by_kind.sort_by_key(|(by, _)| *by);
        let tally = |of_kind: &[(&TakenBy, &DeviceId<'_>)]| {
            let by_pool = of_kind.chunk_by(|(_, a), (_, b)| (a.driver, a.pool) == (b.driver, b.pool));
            let holders = by_pool.flat_map(|ids| {
                let here = busy.in_pool(ids[0].1.driver, ids[0].1.pool);
                ids.iter().flat_map(move |(_, id)| here.holders(id.device))
            });
            Taken::by(
                of_kind[0].0.clone(),
                count(of_kind.len()),
                (Holder::Claim, holders.map(|holder| holder.claim)),
                naming,
            )
        };
        by_kind.chunk_by(|(a, _), (b, _)| a == b).map(tally).collect()
    }
}

/// A number of devices, as the API writes it.
pub fn count(devices: usize) -> i64 {
    i64::try_from(devices).unwrap_or(i64::MAX)
}

/// Gives one device after the other to identical claims, as the scheduler does: first fit, nothing is moved afterwards,
/// pools with devices that are attached after binding come last. `pools` are those of the node that can be counted, by
/// driver and name.
pub fn first_fit<'a>(
    pools: &[&Pool<'a>],
    node: &Node,
    busy: &BusyDevices<'a>,
    rules: &[Value],
    selectors: &Selectors,
    tolerations: &[DeviceToleration],
) -> Result<NodeDevices<'a>, NotEvaluable> {
    let in_use = || -> Vec<PhysicalGpu<'a>> {
        let here = pools.iter().flat_map(|pool| pool.devices_of(node));
        here.filter(|(id, _)| !busy.holders(id).is_empty())
            .map(|(id, device)| PhysicalGpu::new(&id, device))
            .collect()
    };
    // Read only once a device seems free: on most nodes of a busy cluster none does.
    let mut held = None;
    let mut pools = pools.to_vec();
    pools.sort_by_key(|pool| pool.binds_later(node));

    let mut found = NodeDevices::default();
    // Once a worker would wait for such a device, the next worker's device is unknown.
    let mut behind_late_one = false;
    for pool in pools {
        let mut counters = PoolCounters::new(pool.slices());
        let busy_here = busy.in_pool(pool.driver, pool.name);
        pool.devices()
            .filter(|(id, device)| !device.consumes.is_empty() && !busy_here.holders(id.device).is_empty())
            .for_each(|(_, device)| counters.take(device));
        for (id, device, here) in pool.walked_for(node) {
            let is_of_class = match selectors.match_device(id.driver, device) {
                // The scheduler never evaluates a device that is in use: without an answer it is none of the class.
                Err(_) if busy_here.contains_whole(id.device) => false,
                // The scheduler evaluates a slice's devices of other nodes too, and gives up if that fails.
                answer => answer?,
            };
            if !is_of_class || !here {
                continue;
            }
            let taken_by = if !busy_here.holders(id.device).is_empty() {
                Some(TakenBy::InUse)
            } else if device.shareable {
                Some(TakenBy::Shareable)
            } else if let Some(taint) = device_taint(&id, device, rules, tolerations) {
                Some(TakenBy::Tainted { taint })
            } else if !counters.suffice(device) {
                Some(TakenBy::CountersUsedUp)
            } else if twin_in_use(&id, device, held.get_or_insert_with(in_use)) {
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
                held.get_or_insert_with(in_use).push(PhysicalGpu::new(&id, device));
                found.free.push((id, device));
            }
        }
    }
    Ok(found)
}

fn twin_in_use(id: &DeviceId<'_>, device: &Device, held: &[PhysicalGpu<'_>]) -> bool {
    let gpu = PhysicalGpu::new(id, device);
    held.iter().any(|other| other.excludes(&gpu))
}

/// Attributes that tie devices to one card: a passthrough twin and a static MIG partition come without counters. Only a
/// partition has the second one.
pub struct PhysicalGpu<'a>([Option<&'a str>; 3]);

impl<'a> PhysicalGpu<'a> {
    pub fn new(id: &DeviceId<'a>, device: &'a Device) -> Self {
        let mark = |name: &str| attribute(id, device, name)?.string();
        Self(["uuid", "parentUUID", "resource.kubernetes.io/pciBusID"].map(mark))
    }

    /// Two partitions of one card get along; their counters decide.
    pub fn excludes(&self, Self(other): &Self) -> bool {
        let Self(own) = self;
        let both_partitions = own[1].is_some() && other[1].is_some();
        !both_partitions && own.iter().flatten().any(|mark| other.contains(&Some(mark)))
    }
}

/// A device as a status shows it.
pub fn device_status(id: &DeviceId<'_>, device: &Device) -> DeviceStatus {
    let uuid = attribute(id, device, "uuid").and_then(Attribute::string);
    DeviceStatus {
        pool: id.pool.to_owned(),
        name: id.device.to_owned(),
        uuid: uuid.map(str::to_owned),
    }
}

/// An attribute of a device; an unqualified name is also found under the driver's own domain.
pub fn attribute<'a>(id: &DeviceId<'_>, device: &'a Device, name: &str) -> Option<&'a Attribute> {
    device.attribute(name).or_else(|| device.attribute_of(id.driver, name))
}
