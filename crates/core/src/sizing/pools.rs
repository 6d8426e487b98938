//! Pools of devices: which slices of a driver are in force.

use std::collections::{BTreeMap, BTreeSet};

use super::node_selector;
use crate::inventory::{Device, Node, Slice, Target};

/// A device of any driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId<'a> {
    pub driver: &'a str,
    pub pool: &'a str,
    pub device: &'a str,
}

/// The slices of one driver and pool name.
pub struct Pool<'a> {
    pub driver: &'a str,
    pub name: &'a str,
    /// Slices of the highest generation, by name: the order in which the scheduler walks them.
    newest: Vec<&'a Slice>,
    /// Slices of earlier generations, which a driver has not removed yet.
    outdated: Vec<&'a Slice>,
}

/// Whether the devices of a pool can be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolState {
    /// All slices are there.
    Complete,
    /// The driver is still publishing.
    Incomplete { present: usize, announced: i64 },
    /// No scheduler would use it, and why.
    Invalid(String),
}

/// All pools, by driver and name.
pub fn pools(slices: &[Slice]) -> Vec<Pool<'_>> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Slice>> = BTreeMap::new();
    for slice in slices {
        groups.entry((&slice.driver, &slice.pool)).or_default().push(slice);
    }
    groups
        .into_iter()
        .map(|((driver, name), slices)| pool(driver, name, slices))
        .collect()
}

fn pool<'a>(driver: &'a str, name: &'a str, mut slices: Vec<&'a Slice>) -> Pool<'a> {
    slices.sort_by(|a, b| a.name.cmp(&b.name));
    let generation = slices.iter().map(|slice| slice.generation).max();
    let (newest, outdated) = slices
        .into_iter()
        .partition(|slice| Some(slice.generation) == generation);
    Pool {
        driver,
        name,
        newest,
        outdated,
    }
}

impl<'a> Pool<'a> {
    /// Whether the pool can be counted. Completeness is that of the whole pool, also of slices for other nodes.
    pub fn state(&self) -> PoolState {
        let announced: BTreeSet<i64> = self.newest.iter().map(|slice| slice.slice_count).collect();
        let present = self.newest.len();
        let count = announced.last().copied().unwrap_or_default();
        if announced.len() != 1 || i64::try_from(present) != Ok(count) {
            return PoolState::Incomplete {
                present,
                announced: count,
            };
        }
        self.fault().map_or(PoolState::Complete, PoolState::Invalid)
    }

    /// Whether the pool has, or had a moment ago, anything to do with a node. A node that only outdated slices name
    /// still waits for the new ones.
    pub fn concerns(&self, node: &Node) -> bool {
        let unsettled = matches!(self.state(), PoolState::Incomplete { .. });
        let outdated = self.outdated.iter().filter(|_| unsettled);
        self.newest.iter().chain(outdated).any(|slice| targets(slice, node))
    }

    /// The devices in force, wherever they are.
    pub fn devices(&self) -> impl Iterator<Item = (DeviceId<'a>, &'a Device)> {
        self.slices_and_devices().map(|(id, _, device)| (id, device))
    }

    /// The devices in force that a node can use, in the order in which the scheduler walks them.
    pub fn devices_of(&self, node: &Node) -> impl Iterator<Item = (DeviceId<'a>, &'a Device)> {
        self.slices_and_devices()
            .filter(|(_, slice, device)| device_targets(slice, device, node))
            .map(|(id, _, device)| (id, device))
    }

    /// The slices in force.
    pub fn slices(&self) -> impl Iterator<Item = &'a Slice> {
        self.newest.iter().copied()
    }

    fn slices_and_devices(&self) -> impl Iterator<Item = (DeviceId<'a>, &'a Slice, &'a Device)> {
        let (driver, pool) = (self.driver, self.name);
        self.newest.iter().flat_map(move |slice| {
            slice.devices.iter().map(move |device| {
                let id = DeviceId {
                    driver,
                    pool,
                    device: &device.name,
                };
                (id, *slice, device)
            })
        })
    }

    /// What makes the scheduler leave a complete pool alone.
    fn fault(&self) -> Option<String> {
        let mut names = BTreeSet::new();
        if let Some((id, _)) = self.devices().find(|(id, _)| !names.insert(id.device)) {
            return Some(format!("two devices are called {}", id.device));
        }
        super::counters::fault(self)
    }
}

fn targets(slice: &Slice, node: &Node) -> bool {
    if slice.target_per_device {
        let mut devices = slice.devices.iter();
        return devices.any(|device| device_targets(slice, device, node));
    }
    reaches(&slice.target, node)
}

fn device_targets(slice: &Slice, device: &Device, node: &Node) -> bool {
    if slice.target_per_device {
        device.target.as_ref().is_some_and(|target| reaches(target, node))
    } else {
        reaches(&slice.target, node)
    }
}

/// Exactly one of the three is set; with none (a newer kind of target) the scheduler looks away, and so do we.
fn reaches(target: &Target, node: &Node) -> bool {
    let Target {
        all_nodes,
        node_name,
        node_selector,
    } = target;
    *all_nodes
        || node_name.as_ref().is_some_and(|name| *name == node.name)
        || node_selector
            .as_ref()
            .is_some_and(|selector| node_selector::matches(selector, node))
}
