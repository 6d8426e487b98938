//! The GPUs of a node, and the description of those that the workers will probably get.

use perfval_api::Allocation;

use super::devices::{NodeDevices, attribute, count, device_status};
use super::dra::Dra;
use super::naming::Naming;
use super::plan::{Plan, hold};
use super::plugin::PluginGpus;
use super::taken::Taken;
use crate::inventory::Attribute;

/// The GPUs of a node, as the one who gives them out counts them.
pub enum Gpus<'a> {
    ByClaims {
        devices: NodeDevices<'a>,
        /// CEL that the claims carry in addition to their class.
        selectors: Vec<String>,
    },
    ByPlugin(PluginGpus),
}

impl Gpus<'_> {
    /// Mechanism that gives out the GPUs.
    pub fn allocation(&self) -> Allocation {
        match self {
            Self::ByClaims { .. } => Allocation::Dra,
            Self::ByPlugin(_) => Allocation::DevicePlugin,
        }
    }

    pub fn total(&self) -> i64 {
        match self {
            Self::ByClaims { devices, .. } => count(devices.free.len() + devices.taken.len()),
            Self::ByPlugin(gpus) => gpus.total,
        }
    }

    /// Those that workers could get.
    pub fn free(&self) -> i64 {
        match self {
            Self::ByClaims { devices, .. } => count(devices.free.len()),
            Self::ByPlugin(gpus) => gpus.free,
        }
    }

    /// The others, by what rules them out.
    pub fn taken(&self, dra: &Dra<'_>, naming: &Naming) -> Vec<Taken> {
        match self {
            Self::ByClaims { devices, .. } => devices.tally(dra.busy(), naming),
            Self::ByPlugin(gpus) => gpus.taken.clone(),
        }
    }
}

/// Adds the attributes of the devices that the workers will probably get, as the slices contain them.
pub fn describe(plan: &mut Plan, devices: &NodeDevices<'_>) {
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
    plan.placement.product = distinct("productName");
    plan.placement.driver_version = distinct("driverVersion");
    let devices = chosen.iter().map(|(id, device)| device_status(id, device));
    hold(&mut plan.placement, &mut plan.details, devices.collect());
}
