//! Devices that claims hold, whoever reserved them and whether or not they are being deleted.

use std::collections::{BTreeSet, HashMap};

use super::pools::{DeviceId, Pools};
use crate::inventory::{ClaimUse, Inventory};

/// Devices in use, with the claims that hold them: wholes and shares alike.
#[derive(Default)]
pub struct BusyDevices<'a> {
    holders: HashMap<DeviceId<'a>, Vec<Holder<'a>>>,
}

/// A claim that holds a device.
pub struct Holder<'a> {
    pub claim: &'a str,
    /// Only a share of it, so that other claims may hold it too.
    share: bool,
}

impl<'a> BusyDevices<'a> {
    /// Devices of every claim, and those that are promised to one.
    pub fn of(inventory: &'a Inventory) -> Self {
        let [claims, promises] =
            [&inventory.claims, &inventory.promises].map(|list| list.present().map_or(&[][..], Vec::as_slice));
        Self::held_by(claims.iter().chain(promises))
    }

    /// Devices of these claims.
    pub fn held_by(claims: impl IntoIterator<Item = &'a ClaimUse>) -> Self {
        let claims = claims.into_iter();
        let mut busy = Self {
            holders: HashMap::with_capacity(claims.size_hint().0),
        };
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
        let mut names: Vec<&str> = self.holding(id).iter().map(|holder| holder.claim).collect();
        names.sort_unstable();
        names
    }

    /// The claims that hold a device, in no order.
    pub fn holding<'s>(&'s self, id: &DeviceId<'s>) -> &'s [Holder<'a>] {
        self.holders.get(id).map_or(&[], Vec::as_slice)
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
