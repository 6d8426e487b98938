//! Devices that claims hold, whoever reserved them and whether or not they are being deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::pools::{DeviceId, pools};
use crate::inventory::{ClaimUse, Inventory};

/// Devices in use, with the claims that hold them.
#[derive(Default)]
pub struct BusyDevices<'a> {
    /// Given to one claim as a whole.
    whole: BTreeMap<DeviceId<'a>, Vec<&'a str>>,
    /// Given to any number of claims in shares.
    shared: BTreeSet<DeviceId<'a>>,
}

impl<'a> BusyDevices<'a> {
    /// Devices of every claim.
    pub fn of(claims: &'a [ClaimUse]) -> Self {
        let mut busy = Self::default();
        for claim in claims {
            for held in &claim.devices {
                let id = DeviceId {
                    driver: &held.driver,
                    pool: &held.pool,
                    device: &held.device,
                };
                if held.shared {
                    busy.shared.insert(id);
                } else {
                    busy.whole.entry(id).or_default().push(&claim.name);
                }
            }
        }
        busy
    }

    /// Whether any claim holds a device or a share of it.
    pub fn contains(&self, id: &DeviceId<'_>) -> bool {
        self.whole.contains_key(id) || self.shared.contains(id)
    }
}

/// What is wrong with the allocations, for people; none of it changes the count: devices that are held but no longer
/// published, and devices that two claims hold.
pub fn warnings(inventory: &Inventory) -> Vec<String> {
    let (Some(slices), Some(claims)) = (inventory.slices.present(), inventory.claims.present()) else {
        return Vec::new();
    };
    let pools = pools(slices);
    let published: BTreeSet<DeviceId<'_>> = pools.iter().flat_map(|pool| pool.devices().map(|(id, _)| id)).collect();
    let mut warnings = Vec::new();
    for (id, mut holders) in BusyDevices::of(claims).whole {
        holders.sort_unstable();
        let device = format!("{}/{}/{}", id.driver, id.pool, id.device);
        if !published.contains(&id) {
            warnings.push(format!(
                "{device} is held by {}, but no ResourceSlice has it",
                holders.join(", ")
            ));
        }
        if holders.len() > 1 {
            warnings.push(format!("{device} is held twice: by {}", holders.join(", ")));
        }
    }
    warnings
}
