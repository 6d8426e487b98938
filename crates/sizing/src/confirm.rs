//! The check after allocation: each worker was given a device that sizing counts, and no other pod has it. A
//! scheduler's decision is invisible until it is written, so only this check confirms a plan.

use perfval_api::DeviceStatus;

use super::busy_devices::{BusyDevices, names};
use super::devices::{PhysicalGpu, device_status};
use super::naming::Holder;
use super::pools::{DeviceId, PoolState, Pools};
use super::seen::first_unread;
use crate::inventory::Inventory;

/// A device that a worker's claim was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldByWorker<'a> {
    /// Name of the worker's pod.
    pub worker: String,
    /// The claim, as `namespace/name`.
    pub claim: String,
    /// Driver of the device.
    pub driver: &'a str,
    /// Pool of the device.
    pub pool: &'a str,
    /// Name of the device in its pool.
    pub device: &'a str,
}

/// Reason why a placement is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unconfirmed {
    /// The placement is unknown as yet, for this reason.
    Unknown(String),
    /// The placement differs from the plan, as this text describes.
    Wrong(String),
}

/// The given devices with their uuids, in order, once each is known to be a whole GPU of `node` that one worker alone
/// has.
///
/// # Errors
/// If a placement is wrong or unknown.
pub fn confirm(
    inventory: &Inventory,
    node: &str,
    given: &[HeldByWorker<'_>],
) -> Result<Vec<DeviceStatus>, Unconfirmed> {
    first_unread([
        ("resource slices", inventory.slices.unknown()),
        ("nodes", inventory.nodes.unknown()),
        ("resource claims", inventory.claims.unknown()),
    ])
    .map_err(Unconfirmed::Unknown)?;
    let slices = inventory.slices.present().map_or(&[][..], Vec::as_slice);
    let claims = inventory.claims.present().map_or(&[][..], Vec::as_slice);
    let mut nodes = inventory.nodes.present().into_iter().flatten();
    let Some(node) = nodes.find(|known| *known.name == *node) else {
        return Err(Unconfirmed::Wrong(format!("the node {node} is gone")));
    };
    let (pools, busy) = (Pools::new(slices), BusyDevices::held_by(claims));
    // A network driver that publishes its devices again has no part in it.
    let is_theirs = |pool: &&super::pools::Pool<'_>| given.iter().any(|held| held.driver == pool.driver);
    let mut theirs = pools.concerning(node).filter(is_theirs);
    if let Some(pool) = theirs.find(|pool| pool.state != PoolState::Complete) {
        let (driver, name) = (pool.driver, pool.name);
        return Err(Unconfirmed::Unknown(format!("pool {name} of {driver} is unsettled")));
    }
    let here: Vec<_> = pools.concerning(node).flat_map(|pool| pool.devices_of(node)).collect();

    let confirm_one = |given: &HeldByWorker<'_>| {
        let HeldByWorker { worker, device, .. } = given;
        let wrong = |what: String| {
            let why = format!("GPU {device}, which worker {worker} holds, {what}");
            Err(Unconfirmed::Wrong(why))
        };
        let wanted = DeviceId {
            driver: given.driver,
            pool: given.pool,
            device,
        };
        let Some((id, device)) = here.iter().find(|(id, _)| *id == wanted) else {
            return wrong(format!("is in no ResourceSlice of {}", node.name));
        };
        if device.shareable {
            return wrong("is given out in shares".to_owned());
        }
        let mut others = names(busy.holders(id));
        let holders = others.len();
        others.retain(|claim| *claim != given.claim);
        // A watch that shows our allocation shows all earlier ones.
        if others.len() == holders {
            return Err(Unconfirmed::Unknown(format!(
                "the claim {} is not yet among those that hold GPUs",
                given.claim
            )));
        }
        if !others.is_empty() {
            return wrong(format!(
                "is held by {} too",
                inventory.naming.all(Holder::Claim, others)
            ));
        }
        let gpu = PhysicalGpu::new(id, device);
        let twin = here
            .iter()
            .filter(|(other, _)| other != id && !busy.holders(other).is_empty())
            .find(|(other, device)| gpu.excludes(&PhysicalGpu::new(other, device)));
        if let Some((twin, _)) = twin {
            let holders = inventory.naming.all(Holder::Claim, names(busy.holders(twin)));
            return wrong(format!("is one card with {}, held by {holders}", twin.device));
        }
        Ok(device_status(id, device))
    };
    let mut devices = given.iter().map(confirm_one).collect::<Result<Vec<_>, _>>()?;
    devices.sort();
    Ok(devices)
}
