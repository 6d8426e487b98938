//! Devices that claims hold, with or without a reservation, and also while the claim is being deleted.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt as _};

use super::naming::{self, Naming};
use super::pools::{DeviceId, Pools};
use crate::inventory::{ClaimUse, Inventory};

/// Devices in use, with the claims that hold them: wholes and shares alike.
#[derive(Default)]
pub struct BusyDevices<'a> {
    /// By driver and pool, each sorted by device and claim: what belongs to one node lies together.
    pools: HashMap<(&'a str, &'a str), Vec<DeviceHolder<'a>>>,
}

/// A claim that holds a device.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceHolder<'a> {
    device: &'a str,
    /// `namespace/name` of the claim.
    pub claim: &'a str,
    /// Only a share of it, so that other claims may hold it too.
    share: bool,
}

impl<'a> BusyDevices<'a> {
    /// Devices of every claim, and those that are promised to one.
    pub fn new(inventory: &'a Inventory) -> Self {
        let lists = [&inventory.claims, &inventory.promises];
        Self::held_by(lists.into_iter().filter_map(|list| list.present()).flatten())
    }

    /// Devices of these claims.
    pub fn held_by(claims: impl IntoIterator<Item = &'a ClaimUse>) -> Self {
        let mut pools: HashMap<(&str, &str), Vec<DeviceHolder<'_>>> = HashMap::new();
        for claim in claims {
            for held in &claim.devices {
                pools.entry((&held.driver, &held.pool)).or_default().push(DeviceHolder {
                    device: &held.device,
                    claim: &claim.name,
                    share: held.shared,
                });
            }
        }
        for holders in pools.values_mut() {
            holders.sort_unstable();
        }
        Self { pools }
    }

    /// The claims that hold a device, by name.
    pub fn holders<'s>(&'s self, id: &DeviceId<'s>) -> &'s [DeviceHolder<'a>] {
        self.in_pool(id.driver, id.pool).holders(id.device)
    }

    /// Those of one pool: looked up once for all devices of a node.
    pub fn in_pool<'s>(&'s self, driver: &'s str, pool: &'s str) -> BusyPool<'s, 'a> {
        BusyPool(self.pools.get(&(driver, pool)).map_or(&[], Vec::as_slice))
    }
}

/// Devices in use of one pool.
#[derive(Clone, Copy)]
pub struct BusyPool<'s, 'a>(&'s [DeviceHolder<'a>]);

impl<'s, 'a> BusyPool<'s, 'a> {
    /// Returns true if a claim holds a device as a whole.
    pub fn contains_whole(self, device: &str) -> bool {
        self.holders(device).iter().any(|holder| !holder.share)
    }

    /// The claims that hold a device, by name.
    pub fn holders(self, device: &str) -> &'s [DeviceHolder<'a>] {
        let Self(all) = self;
        let rest = &all[all.partition_point(|holder| holder.device < device)..];
        let others = rest.iter().position(|holder| holder.device != device);
        &rest[..others.unwrap_or(rest.len())]
    }
}

/// A device whose allocation is odd, and the claims that hold it.
pub struct Odd<'a> {
    device: String,
    claims: Vec<&'a str>,
    /// Held twice; if not, by a claim although no slice has it.
    twice: bool,
}

impl Odd<'_> {
    pub fn in_words(&self, naming: &Naming) -> String {
        let device = &self.device;
        let claims = naming.all(naming::Holder::Claim, self.claims.iter().copied());
        if self.twice {
            format!("{device} is held twice: by {claims}")
        } else {
            format!("{device} is held by {claims}, but no ResourceSlice has it")
        }
    }
}

/// The odd ones among all devices.
pub fn odd<'a>(pools: &Pools<'_>, busy: &BusyDevices<'a>) -> Vec<Odd<'a>> {
    let published: BTreeSet<DeviceId<'_>> = pools.iter().flat_map(|pool| pool.devices().map(|(id, _)| id)).collect();
    let mut held: Vec<(&(&str, &str), &Vec<DeviceHolder<'_>>)> = busy.pools.iter().collect();
    held.sort_unstable_by_key(|(pool, _)| **pool);
    let mut all = Vec::new();
    for ((driver, pool), holders) in held {
        for holders in holders.chunk_by(|a, b| a.device == b.device) {
            let whole = holders.iter().filter(|holder| !holder.share).count();
            if whole == 0 {
                continue;
            }
            let id = DeviceId {
                driver,
                pool,
                device: holders[0].device,
            };
            let wrong = [(!published.contains(&id), false), (whole > 1, true)];
            for (_, twice) in wrong.into_iter().filter(|(is_so, _)| *is_so) {
                all.push(Odd {
                    device: format!("{driver}/{pool}/{}", id.device),
                    claims: names(holders),
                    twice,
                });
            }
        }
    }
    all
}

pub fn names<'a>(holders: &[DeviceHolder<'a>]) -> Vec<&'a str> {
    holders.iter().map(|holder| holder.claim).collect()
}
