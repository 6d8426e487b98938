//! GPUs that claims allocate: the devices in `ResourceSlice`s.

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::{DeviceClass, DeviceToleration};
use perfval_api::PlacementSpec;
use serde_json::Value;

use super::busy_devices::{BusyDevices, Odd, odd};
use super::devices::{NodeDevices, first_fit};
use super::pools::{DeviceId, Pool, PoolState, Pools};
use super::report::NodeObstacle;
use super::selector::{NotEvaluable, Selectors};
use crate::Seen;
use crate::inventory::{ClaimUse, Device, Inventory, Node};

/// All devices of the cluster, and who holds them: the same for every run.
pub struct Devices<'a> {
    pools: Pools<'a>,
    busy: BusyDevices<'a>,
    claims: &'a [ClaimUse],
    rules: Vec<Value>,
}

/// Devices as one class selects them.
pub struct SelectedClass<'a> {
    selectors: Result<Selectors, NodeObstacle>,
    /// Drivers of devices of the class, or of its name.
    gpu_drivers: BTreeSet<&'a str>,
}

/// The devices as a run sees them.
#[derive(Clone, Copy)]
pub struct Dra<'a> {
    all: &'a Devices<'a>,
    class: &'a SelectedClass<'a>,
    tolerations: &'a [DeviceToleration],
    /// Domain of the device plugin's resource.
    vendor: &'a str,
}

impl<'a> Devices<'a> {
    /// Reads the devices and claims; parts that are absent are empty.
    pub fn read(inventory: &'a Inventory) -> Self {
        let mut rules = inventory.taint_rules.present().cloned().unwrap_or_default();
        rules.sort_by_key(|rule| rule.pointer("/metadata/name").map(Value::to_string));
        Self {
            pools: Pools::new(inventory.slices.present().map(Vec::as_slice).unwrap_or_default()),
            busy: BusyDevices::new(inventory),
            claims: inventory.claims.present().map(Vec::as_slice).unwrap_or_default(),
            rules,
        }
    }

    /// Reads the class of a name.
    pub fn class(&self, class: &Seen<DeviceClass>, name: &str) -> SelectedClass<'a> {
        let selectors = selectors(class, name);
        SelectedClass {
            gpu_drivers: gpu_drivers(&self.pools, name, selectors.as_ref().ok()),
            selectors,
        }
    }

    /// Suspicious allocations; none if no slices are served. Promises are left out, because promise and claim hold a device
    /// together for a moment.
    pub fn odd(&self) -> Vec<Odd<'a>> {
        odd(&self.pools, &BusyDevices::held_by(self.claims))
    }

    /// The devices of a class, as a run with this placement sees them.
    pub fn select<'d>(&'d self, class: &'d SelectedClass<'d>, placement: &'d PlacementSpec) -> Dra<'d> {
        Dra {
            all: self,
            class,
            tolerations: &placement.device_tolerations,
            vendor: placement.resource_name.split('/').next().unwrap_or_default(),
        }
    }
}

impl<'a> Dra<'a> {
    /// Returns true if claims could give out GPUs of a node, used ones included.
    pub fn has_gpus(&self, node: &Node) -> bool {
        self.gpus_of(node).next().is_some()
    }

    /// All devices of a node that are GPUs or parts of them, of any class.
    pub fn gpus_of(&self, node: &Node) -> impl Iterator<Item = (DeviceId<'a>, &'a Device)> {
        self.gpu_pools(node).flat_map(|pool| pool.devices_of(node))
    }

    /// Returns true if any driver of GPUs publishes devices on any node.
    pub fn has_gpu_drivers(&self) -> bool {
        self.all.pools.iter().any(|pool| self.is_of_gpus(pool))
    }

    /// A claim that holds a GPU of a node, if any does.
    pub fn holder_on(&self, node: &Node) -> Option<&'a str> {
        self.gpus_of(node)
            .find_map(|(id, _)| self.busy().holders(&id).first().map(|holder| holder.claim))
    }

    /// Devices that claims hold.
    pub fn busy(&self) -> &'a BusyDevices<'a> {
        &self.all.busy
    }

    /// Obstacle if a node's pools cannot be counted at the moment.
    pub fn unsettled(&self, node: &Node) -> Option<NodeObstacle> {
        self.gpu_pools(node).find_map(|pool| {
            let (driver, name) = (pool.driver.to_owned(), pool.name.to_owned());
            match &pool.state {
                PoolState::Complete => None,
                PoolState::Incomplete { present, announced } => Some(NodeObstacle::PoolIncomplete {
                    driver,
                    pool: name,
                    slices: *present,
                    announced: *announced,
                }),
                PoolState::Invalid(fault) => Some(NodeObstacle::PoolInvalid {
                    driver,
                    pool: name,
                    fault: fault.clone(),
                }),
            }
        })
    }

    /// The devices of the class on a node whose pools are settled.
    pub fn devices(&self, node: &Node) -> Result<NodeDevices<'a>, NodeObstacle> {
        let selectors = self.class.selectors.as_ref().map_err(Clone::clone)?;
        let pools = self.all.pools.concerning(node);
        let countable: Vec<&Pool<'a>> = pools.filter(|pool| pool.state == PoolState::Complete).collect();
        let (busy, rules) = (self.busy(), &self.all.rules);
        first_fit(&countable, node, busy, rules, selectors, self.tolerations).map_err(not_evaluable)
    }

    fn gpu_pools(&self, node: &Node) -> impl Iterator<Item = &Pool<'a>> {
        let pools = self.all.pools.concerning(node);
        pools.filter(|pool| self.is_of_gpus(pool))
    }

    /// Returns true if a pool's devices are GPUs, or may be.
    fn is_of_gpus(&self, pool: &Pool<'_>) -> bool {
        self.class.gpu_drivers.contains(pool.driver) || names_gpus(pool.driver, self.vendor)
    }
}

fn selectors(class: &Seen<DeviceClass>, name: &str) -> Result<Selectors, NodeObstacle> {
    let Some(class) = class.present() else {
        return Err(NodeObstacle::ClassMissing { class: name.to_owned() });
    };
    Selectors::compile(class).map_err(not_evaluable)
}

fn not_evaluable(NotEvaluable(fault): NotEvaluable) -> NodeObstacle {
    NodeObstacle::NotEvaluable { fault }
}

/// Drivers that publish a device of the class, and the driver of the class's name, such as `gpu.nvidia.com` of
/// `mig.gpu.nvidia.com`.
fn gpu_drivers<'a>(pools: &Pools<'a>, class_name: &str, selectors: Option<&Selectors>) -> BTreeSet<&'a str> {
    let by_name = |pool: &Pool<'_>| is_in(class_name, pool.driver);
    let by_class = |pool: &Pool<'_>| {
        let of_class = |selectors: &Selectors| {
            pool.devices()
                .any(|(id, device)| selectors.match_device(id.driver, device) == Ok(true))
        };
        selectors.is_some_and(of_class)
    };
    pools
        .iter()
        .filter(|pool| by_name(pool) || by_class(pool))
        .map(|pool| pool.driver)
        .collect()
}

/// Returns true if a driver's name means GPUs of the device plugin's vendor: it may give out the same GPUs as the
/// plugin. Drivers of network cards, of compute domains and of other vendors do not.
fn names_gpus(driver: &str, vendor: &str) -> bool {
    is_in(driver, vendor) && driver.split(['.', '-']).any(|word| word == "gpu")
}

fn is_in(name: &str, domain: &str) -> bool {
    let rest = name.strip_suffix(domain);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
