//! Devices that claims hold, whoever reserved them and whether or not they are being deleted.

use std::collections::{BTreeSet, HashMap};

use super::pools::{DeviceId, Pools};
use crate::Seen;
use crate::inventory::Inventory;

/// Devices in use, with the claims that hold them: wholes and shares alike.
#[derive(Default)]
pub struct BusyDevices<'a> {
    holders: HashMap<DeviceId<'a>, Vec<Holder<'a>>>,
}

/// A claim that holds a device.
struct Holder<'a> {
    claim: &'a str,
    /// Only a share of it, so that other claims may hold it too.
    share: bool,
}

impl<'a> BusyDevices<'a> {
    /// Devices of every claim, and those that are promised to one.
    pub fn of(inventory: &'a Inventory) -> Self {
        let lists = [&inventory.claims, &inventory.promises];
        let claims = lists.into_iter().filter_map(Seen::present).flatten();
        let mut busy = Self::default();
        for claim in claims {
            for held in &claim.devices {
                let id = DeviceId {
                    driver: &held.driver,
                    pool: &held.pool,
                    device: &held.device,
                };
                busy.holders.entry(id).or_default().push(Holder {
                    claim: &claim.name,
                    share: held.shared,
                });
            }
        }
        busy
    }

    /// Whether any claim holds a device or a share of it.
    pub fn contains(&self, id: &DeviceId<'_>) -> bool {
        self.holders.contains_key(id)
    }

    /// The claims that hold a device, by name.
    pub fn holders(&self, id: &DeviceId<'_>) -> Vec<&'a str> {
        let holders = self.holders.get(id).into_iter().flatten();
        let mut names: Vec<&str> = holders.map(|holder| holder.claim).collect();
        names.sort_unstable();
        names
    }
}

/// What is wrong with the allocations, for people; none of it changes the count: devices that are held but no longer
/// published, and devices that two claims hold.
pub fn warnings(inventory: &Inventory) -> Vec<String> {
    let Some(slices) = inventory.slices.present() else {
        return Vec::new();
    };
    let pools = Pools::of(slices);
    let published: BTreeSet<DeviceId<'_>> = pools.iter().flat_map(|pool| pool.devices().map(|(id, _)| id)).collect();
    let busy = BusyDevices::of(inventory);
    let whole = |holders: &[Holder<'_>]| holders.iter().filter(|holder| !holder.share).count();
    let mut held: Vec<(&DeviceId<'_>, usize)> = busy.holders.iter().map(|(id, all)| (id, whole(all))).collect();
    held.retain(|(_, whole)| *whole > 0);
    held.sort();
    let mut warnings = Vec::new();
    for (id, whole) in held {
        let device = format!("{}/{}/{}", id.driver, id.pool, id.device);
        let holders = busy.holders(id).join(", ");
        if !published.contains(id) {
            warnings.push(format!("{device} is held by {holders}, but no ResourceSlice has it"));
        }
        if whole > 1 {
            warnings.push(format!("{device} is held twice: by {holders}"));
        }
    }
    warnings
}
