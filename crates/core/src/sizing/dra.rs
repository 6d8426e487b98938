//! GPUs that claims give out: the ledger of `ResourceSlice`s.

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::DeviceClass;
use perfval_api::Reason;
use serde_json::Value;

use super::busy_devices::BusyDevices;
use super::devices::{NodeDevices, first_fit};
use super::pools::{Pool, PoolState, pools};
use super::selector::{NotEvaluable, Selectors};
use crate::Seen;
use crate::inventory::{Inventory, Node};

/// Why the devices of a node cannot be counted.
pub type Obstacle = (Reason, String);

/// All devices of the cluster, and who holds them.
pub struct Dra<'a> {
    pools: Vec<Pool<'a>>,
    busy: BusyDevices<'a>,
    rules: Vec<Value>,
    selectors: Result<Selectors, Obstacle>,
    /// Drivers whose devices are GPUs, or may be.
    gpu_drivers: BTreeSet<&'a str>,
}

impl<'a> Dra<'a> {
    /// Reads the ledger; parts that are absent are empty.
    pub fn read(inventory: &'a Inventory, class_name: &str) -> Self {
        let pools = pools(inventory.slices.present().map(Vec::as_slice).unwrap_or_default());
        let selectors = selectors(&inventory.device_class, class_name);
        let mut rules = inventory.taint_rules.present().cloned().unwrap_or_default();
        rules.sort_by_key(|rule| rule.pointer("/metadata/name").map(Value::to_string));
        Self {
            gpu_drivers: gpu_drivers(&pools, class_name, selectors.as_ref().ok()),
            busy: BusyDevices::of(inventory.claims.present().map(Vec::as_slice).unwrap_or_default()),
            pools,
            rules,
            selectors,
        }
    }

    /// Whether claims could give out GPUs of a node, used ones included.
    pub fn has_gpus(&self, node: &Node) -> bool {
        self.gpu_pools(node).any(|pool| pool.devices_of(node).next().is_some())
    }

    /// Whether any driver of GPUs publishes anything, anywhere.
    pub fn has_gpu_drivers(&self) -> bool {
        !self.gpu_drivers.is_empty()
    }

    /// Why a node's pools are not to be counted yet, if so.
    pub fn unsettled(&self, node: &Node) -> Option<Obstacle> {
        self.gpu_pools(node).find_map(|pool| {
            let (driver, name) = (pool.driver, pool.name);
            let why = match pool.state() {
                PoolState::Complete => return None,
                PoolState::Incomplete { present, announced } => {
                    format!("{driver} is still publishing: pool {name} has {present} of {announced} slices")
                }
                PoolState::Invalid(why) => format!("pool {name} of {driver} is invalid: {why}"),
            };
            Some((Reason::PoolUnsettled, why))
        })
    }

    /// The devices of the class on a node whose pools are settled.
    pub fn devices(&self, node: &Node) -> Result<NodeDevices<'a>, Obstacle> {
        let selectors = self.selectors.as_ref().map_err(Clone::clone)?;
        let countable: Vec<&Pool<'a>> = self
            .pools
            .iter()
            .filter(|pool| pool.state() == PoolState::Complete)
            .collect();
        first_fit(&countable, node, &self.busy, &self.rules, selectors).map_err(not_evaluable)
    }

    fn gpu_pools(&self, node: &Node) -> impl Iterator<Item = &Pool<'a>> {
        self.pools
            .iter()
            .filter(move |pool| self.gpu_drivers.contains(pool.driver) && pool.concerns(node))
    }
}

fn selectors(class: &Seen<DeviceClass>, name: &str) -> Result<Selectors, Obstacle> {
    let Some(class) = class.present() else {
        let why = format!("devices are published, but the DeviceClass {name} is missing: the driver is half installed");
        return Err((Reason::DeviceClassMissing, why));
    };
    Selectors::compile(class).map_err(not_evaluable)
}

fn not_evaluable(NotEvaluable(why): NotEvaluable) -> Obstacle {
    (
        Reason::SelectorNotEvaluable,
        format!("the class's selector cannot be evaluated: {why}"),
    )
}

/// By name, as others tell GPUs from network cards and compute domains; and whoever has a device of the class.
fn gpu_drivers<'a>(pools: &[Pool<'a>], class_name: &str, selectors: Option<&Selectors>) -> BTreeSet<&'a str> {
    let by_name = |pool: &Pool<'_>| pool.driver == class_name || pool.driver.contains("gpu");
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
