//! NVIDIA's DRA driver: whether it publishes GPUs.

use std::collections::BTreeSet;

use perfval_sizing::Seen;
use perfval_sizing::inventory::Inventory;
use rust_decimal::Decimal;

use super::asked::Asked;
use super::check::Check;
use crate::preset::DRIVER;

const INSTALL: &str = "install NVIDIA's DRA driver (docs/compatibility.md lists the tested versions)";

/// Checks if NVIDIA's DRA driver publishes GPUs. A run does without it if a device plugin gives them out. Without
/// both, the line about the GPUs reports it, so the absence of the driver alone is no failure.
pub fn check(asked: &Asked<'_>, inventory: &Inventory) -> Check {
    let class = asked.object.spec.placement.device_class_name.as_str();
    let unread =
        |why: &str, resource: &str| Check::unknown(format!("the DRA driver: {why}"), format!("kubectl get {resource}"));
    if let Seen::Unknown(why) = &inventory.device_class {
        return unread(why, &format!("deviceclass {class}"));
    }
    let slices = match &inventory.slices {
        Seen::Present(slices) => &slices[..],
        Seen::Absent => &[],
        Seen::NotAsked => return unread("ResourceSlices were not read", "resourceslices"),
        Seen::Unknown(why) => return unread(why, "resourceslices"),
    };
    let has_class = inventory.device_class.present().is_some();
    let pools: BTreeSet<&str> = slices
        .iter()
        .filter(|slice| &*slice.driver == DRIVER)
        .map(|slice| &*slice.pool)
        .collect();
    let found = match (has_class, pools.len()) {
        (true, 1) => return Check::good(format!("the DRA driver {DRIVER} publishes one pool of devices")),
        (true, pools @ 2..) => {
            return Check::good(format!("the DRA driver {DRIVER} publishes {pools} pools of devices"));
        }
        (true, 0) => format!("DeviceClass {class} is there, and no ResourceSlice of {DRIVER}"),
        (false, 0) => format!("there is neither DeviceClass {class} nor a ResourceSlice of {DRIVER}"),
        (false, _) => format!("there are ResourceSlices of {DRIVER}, and no DeviceClass {class}"),
    };
    let resource = asked.object.spec.placement.resource_name.as_str();
    let mut nodes = inventory.nodes.present().into_iter().flatten();
    if nodes.any(|node| node.allocatable.get(resource) > Decimal::ZERO) {
        return Check::worse(
            format!(
                "no DRA driver publishes GPUs; a device plugin gives {resource} out, but no pod's GPU is known ({found})"
            ),
            "docs/sizing.md (a run goes without)",
        );
    }
    let next = match (has_class, pools.is_empty()) {
        (true, _) => "kubectl get pods -A -o wide | grep dra   (its pods on the nodes with GPUs)",
        (false, false) => "kubectl get deviceclasses, and name one in spec.placement.deviceClassName",
        (false, true) => INSTALL,
    };
    Check::worse(format!("no DRA driver publishes GPUs: {found}"), next)
}
