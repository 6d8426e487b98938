//! A node whose GPUs both claims and a device plugin allocate. Neither sees the other, so a run takes such a node
//! only if the spec chooses one of them, and as long as no pod gets a GPU of it the other way.

use perfval_api::{Allocation, PerfValidationSpec, PlacementStatus};
use rust_decimal::Decimal;

use super::devices::{NodeDevices, attribute};
use super::dra::Devices;
use super::naming::{Holder, Naming, is_token_of};
use super::seen::first_unread;
use super::taken::TakenBy;
use crate::inventory::{Attribute, Inventory, Node, PodUse};

/// The devices without those that pods have from the device plugin. Fails if these are unknown: only the kubelet has
/// the list of a pod's GPUs.
pub fn without_devices_in_use<'a>(
    mut devices: NodeDevices<'a>,
    users: &[&PodUse],
    resource: &str,
    naming: &Naming,
) -> Result<NodeDevices<'a>, String> {
    for pod in users {
        let ids: Vec<&str> = pod.devices_of(resource).collect();
        if Decimal::from(ids.len()) != pod.requests.get(resource) {
            let pod = naming.one(Holder::Pod, &pod.name);
            return Err(format!("{pod} has {resource}, and it is not known which GPUs"));
        }
        for uuid in ids {
            let found = devices
                .free
                .iter()
                .position(|(id, device)| attribute(id, device, "uuid").and_then(Attribute::string) == Some(uuid));
            let Some(index) = found else {
                let pod = naming.one(Holder::Pod, &pod.name);
                return Err(format!(
                    "{pod} has {uuid} of {resource}, which is no free device of a ResourceSlice"
                ));
            };
            let (id, device) = devices.free.remove(index);
            let pod = if naming.shows(&pod.name) {
                pod.name.to_string()
            } else {
                "pods of other namespaces".to_owned()
            };
            let by = TakenBy::InUseByPod { pod };
            devices.taken.push((id, device, by));
        }
    }
    Ok(devices)
}

/// Pod or claim that got a GPU of the planned node the other way since the plan was made.
pub fn intruder(
    inventory: &Inventory,
    spec: &PerfValidationSpec,
    plan: &PlacementStatus,
    neighbours: Option<&[String]>,
) -> Result<Option<String>, String> {
    let Some(neighbours) = neighbours else {
        return Ok(None);
    };
    let unread = |what: &str, why: Option<&str>| format!("{what}: {}", why.unwrap_or("not served"));
    if plan.allocation == Allocation::Dra {
        let pods = inventory
            .pods
            .present()
            .ok_or_else(|| unread("pods", inventory.pods.unknown()))?;
        let resource = &spec.placement.resource_name;
        // A known pod that was created again may have another GPU than before.
        let is_ours = |id: &str| plan.devices.iter().any(|ours| ours == id);
        let new = pods.iter().find(|pod| {
            *pod.node == *plan.node
                && pod.requests.get(resource) > Decimal::ZERO
                && (pod.devices_of(resource).any(is_ours)
                    || !neighbours.iter().any(|known| is_token_of(known, &pod.name)))
        });
        return Ok(new.map(|pod| {
            let pod = inventory.naming.one(Holder::Pod, &pod.name);
            format!("{pod} got {resource}")
        }));
    }
    let nodes = inventory
        .nodes
        .present()
        .ok_or_else(|| unread("nodes", inventory.nodes.unknown()))?;
    first_unread([
        ("resource slices", inventory.slices.unknown()),
        ("resource claims", inventory.claims.unknown()),
        ("bind requests", inventory.promises.unknown()),
    ])?;
    let devices = Devices::read(inventory);
    let class = devices.class(&inventory.device_class, &spec.placement.device_class_name);
    let dra = devices.select(&class, &spec.placement);
    let node: Option<&Node> = nodes.iter().find(|node| *node.name == *plan.node);
    let holder = node.and_then(|node| dra.holder_on(node));
    Ok(holder.map(|claim| format!("{} got a GPU", inventory.naming.one(Holder::Claim, claim))))
}
