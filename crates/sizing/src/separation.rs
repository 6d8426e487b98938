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
    check_alike(devices.all(), "type", "types", "whole GPUs")?;
    let excluded = &excluded_uuids(devices)?;
    // The workers do not get a tainted device.
    let untainted = devices
        .taken
        .iter()
        .filter(|(.., by)| !matches!(by, TakenBy::Tainted { .. }));
    let untainted: Vec<_> = untainted.map(|(id, device, _)| (*id, *device)).collect();
    let possible = || {
        let all = devices.free.iter().chain(&untainted).copied();
        all.filter(move |(id, device)| !device.shareable && !is_among(excluded, id, device))
    };
    check_alike(possible(), "productName", "products", "a single product")?;
    check_alike(possible(), "profile", "profiles", "a single profile")?;
    let shareable = devices.all().any(|(_, device)| device.shareable);
    let whole = shareable.then(|| WHOLE.to_owned());
    let without_twins = excluded.iter().map(|(driver, uuids)| {
        let list = uuids
            .iter()
            .map(|uuid| format!("'{uuid}'"))
            .collect::<Vec<_>>()
            .join(", ");
        format!("device.driver != '{driver}' || !(device.attributes['{driver}'].uuid in [{list}])")
    });
    Ok(whole.into_iter().chain(without_twins).collect())
}

/// Fails if devices differ in an attribute. All claims are identical, so one worker would get a whole GPU and the next a
/// partition, or a worker on the weaker product would count as slow.
fn check_alike<'a>(
    devices: impl Iterator<Item = (DeviceId<'a>, &'a Device)>,
    name: &str,
    plural: &str,
    remedy: &str,
) -> Result<(), NodeObstacle> {
    let mut values = devices.filter_map(|(id, device)| attribute(&id, device, name)?.text());
    let Some(first) = values.next() else {
        return Ok(());
    };
    let mut all: BTreeSet<&str> = values.filter(|value| *value != first).collect();
    if all.is_empty() {
        return Ok(());
    }
    all.insert(first);
    let list = all.into_iter().collect::<Vec<_>>().join(", ");
    let fault = format!("the DeviceClass holds devices of several {plural} ({list}): use one for {remedy}");
    Err(NodeObstacle::Inseparable { fault })
}

/// The uuids of devices that claims must not get, by driver. The scheduler does not know that a device is in use through
/// another one of the same GPU, or through a device plugin.
fn excluded_uuids<'a>(devices: &NodeDevices<'a>) -> Result<BTreeMap<&'a str, BTreeSet<&'a str>>, NodeObstacle> {
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
    let mut free = devices.free.iter();
    match free.find(|(id, device)| is_among(&excluded, id, device)) {
        Some((id, _)) => Err(untellable(id)),
        None => Ok(excluded),
    }
}

fn is_among(excluded: &BTreeMap<&str, BTreeSet<&str>>, id: &DeviceId<'_>, device: &Device) -> bool {
    let uuids = excluded.get(id.driver);
    uuids.is_some_and(|uuids| uuid(id, device).is_some_and(|uuid| uuids.contains(uuid)))
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
            "{}/{} looks like a GPU in use: it has no UUID by which it can be excluded",
            id.pool, id.device
        ),
    }
}
