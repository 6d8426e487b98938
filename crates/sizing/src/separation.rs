//! Selectors that the workers' claims need apart from their class, so that the scheduler gives them the counted
//! devices and no others.

use std::collections::{BTreeMap, BTreeSet};

use super::devices::{NodeDevices, attribute};
use super::pools::DeviceId;
use super::report::NodeObstacle;
use super::taken::TakenBy;
use crate::inventory::Device;

/// Leaves out devices that many claims may hold at once. A device can only have the field if the API server has it,
/// and then expressions may use it.
const WHOLE: &str = "!device.allowMultipleAllocations";

/// The CEL expressions; empty if the class suffices.
pub fn selectors(devices: &NodeDevices<'_>) -> Result<Vec<String>, NodeObstacle> {
    if let Some(fault) = mixed(devices) {
        return Err(NodeObstacle::Inseparable { fault });
    }
    let shareable = devices.all().any(|(_, device)| device.shareable);
    let whole = shareable.then(|| WHOLE.to_owned());
    Ok(whole.into_iter().chain(without_twins(devices)?).collect())
}

/// A class of several kinds of devices: one worker would get a whole GPU, the next a partition of another.
fn mixed(devices: &NodeDevices<'_>) -> Option<String> {
    let kinds = || {
        let all = devices.all();
        all.filter_map(|(id, device)| attribute(&id, device, "type")?.string())
    };
    let first = kinds().next()?;
    kinds().any(|kind| kind != first).then(|| {
        let list = kinds().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        let list = list.join(", ");
        format!("the DeviceClass holds devices of several types ({list}): use one for whole GPUs")
    })
}

/// The scheduler does not know that a device is in use through another one of the same GPU, or through a device plugin.
fn without_twins(devices: &NodeDevices<'_>) -> Result<Vec<String>, NodeObstacle> {
    let mut excluded: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (id, device, by) in &devices.taken {
        if matches!(by, TakenBy::TwinInUse | TakenBy::InUseByPod { .. }) {
            let uuid = uuid(id, device).ok_or_else(|| untellable(id))?;
            excluded.entry(id.driver).or_default().insert(uuid);
        }
    }
    for (id, device) in devices.all().filter(|(id, _)| excluded.contains_key(id.driver)) {
        // Without the attribute the expression would fail for it, and with it the scheduling of every worker.
        uuid(&id, device).ok_or_else(|| untellable(&id))?;
    }
    let taken_along = devices.free.iter().find(|(id, device)| {
        uuid(id, device).is_some_and(|uuid| excluded.get(id.driver).is_some_and(|all| all.contains(uuid)))
    });
    if let Some((id, _)) = taken_along {
        return Err(untellable(id));
    }
    Ok(excluded
        .into_iter()
        .map(|(driver, uuids)| {
            let list = uuids
                .iter()
                .map(|uuid| format!("'{uuid}'"))
                .collect::<Vec<_>>()
                .join(", ");
            format!("device.driver != '{driver}' || !(device.attributes['{driver}'].uuid in [{list}])")
        })
        .collect())
}

/// A uuid that can stand between quotes.
fn uuid<'a>(id: &DeviceId<'_>, device: &'a Device) -> Option<&'a str> {
    let text = attribute(id, device, "uuid")?.string()?;
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:".contains(character);
    text.chars().all(plain).then_some(text)
}

fn untellable(id: &DeviceId<'_>) -> NodeObstacle {
    NodeObstacle::Inseparable {
        fault: format!(
            "{}/{} is in use through another device of the same GPU, and it has no uuid of its own to exclude it by",
            id.pool, id.device
        ),
    }
}
