//! Which devices of a node a worker could get.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::busy_devices::BusyDevices;
use super::counters::Counters;
use super::pools::{DeviceId, Pool};
use super::selector::{NotEvaluable, Selectors};
use super::taints::device_taint;
use crate::inventory::{Attribute, Device, Node};

/// The devices of a class on one node.
#[derive(Default)]
pub struct NodeDevices<'a> {
    /// Those that workers would get, in the order in which they would get them.
    pub free: Vec<(DeviceId<'a>, &'a Device)>,
    /// All others.
    pub rejected: Vec<(DeviceId<'a>, Rejection)>,
}

/// Why a worker cannot get a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// A claim holds it.
    InUse,
    /// The driver gives it to many claims at once, and a worker needs a whole GPU.
    Shareable,
    /// It is tainted; the taint's key or the rule's name.
    Tainted(String),
    /// It would only be attached after the pod is bound.
    BindsLater,
    /// Another device of the same physical GPU is in use.
    TwinInUse,
    /// The counters it consumes are used up, such as by a MIG partition of it.
    CountersUsedUp,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("in use"),
            Self::Shareable => f.write_str("given out in shares (allowMultipleAllocations, a setting of the driver)"),
            Self::Tainted(by) => write!(f, "tainted ({by})"),
            Self::BindsLater => f.write_str("attached only after binding (bindingConditions)"),
            Self::TwinInUse => f.write_str("in use through another device of the same GPU"),
            Self::CountersUsedUp => f.write_str("used up by partitions"),
        }
    }
}

impl NodeDevices<'_> {
    /// Devices of the class, free or not.
    pub fn total(&self) -> usize {
        self.free.len() + self.rejected.len()
    }

    /// Devices that no waiting makes a worker's.
    pub fn never_free(&self) -> usize {
        let never = |rejection: &Rejection| matches!(rejection, Rejection::Shareable | Rejection::BindsLater);
        self.rejected.iter().filter(|(_, rejection)| never(rejection)).count()
    }

    /// `6 in use, 1 tainted (gpu.nvidia.com/xid)`.
    pub fn rejections(&self) -> String {
        let mut counts: BTreeMap<&Rejection, usize> = BTreeMap::new();
        for (_, rejection) in &self.rejected {
            *counts.entry(rejection).or_default() += 1;
        }
        let texts: Vec<String> = counts
            .into_iter()
            .map(|(rejection, count)| format!("{count} {rejection}"))
            .collect();
        texts.join(", ")
    }
}

/// Gives one device after the other to identical claims of the class, as the scheduler does: first fit, nothing is moved
/// afterwards. `pools` are those that can be counted.
pub fn first_fit<'a>(
    pools: &[&Pool<'a>],
    node: &Node,
    busy: &BusyDevices<'a>,
    rules: &[Value],
    selectors: &Selectors,
) -> Result<NodeDevices<'a>, NotEvaluable> {
    let on_node = || pools.iter().flat_map(|pool| pool.devices_of(node));
    let mut held: Vec<PhysicalGpu<'a>> = on_node()
        .filter(|(id, _)| busy.contains(id))
        .map(|(id, device)| PhysicalGpu::of(&id, device))
        .collect();

    let mut found = NodeDevices::default();
    for pool in pools {
        let mut counters = Counters::of(pool);
        pool.devices()
            .filter(|(id, _)| busy.contains(id))
            .for_each(|(_, device)| counters.take(device));
        for (id, device) in pool.devices_of(node) {
            if !selectors.match_device(id.driver, device)? {
                continue;
            }
            let gpu = PhysicalGpu::of(&id, device);
            let rejection = if busy.contains(&id) {
                Some(Rejection::InUse)
            } else if device.shareable {
                Some(Rejection::Shareable)
            } else if let Some(taint) = device_taint(&id, device, rules) {
                Some(Rejection::Tainted(taint))
            } else if device.binds_later {
                Some(Rejection::BindsLater)
            } else if held.iter().any(|other| other.excludes(&gpu)) {
                Some(Rejection::TwinInUse)
            } else if !counters.suffice(device) {
                Some(Rejection::CountersUsedUp)
            } else {
                None
            };
            if let Some(rejection) = rejection {
                found.rejected.push((id, rejection));
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
