//! Devices that claims hold, whoever reserved them and whether or not they are being deleted.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};
use kube::ResourceExt;

use super::pools::{DeviceId, pools};
use crate::observed::Inventory;

/// Devices in use, with the claims that hold them.
#[derive(Default)]
pub struct BusyDevices<'a> {
    /// Given to one claim as a whole.
    whole: BTreeMap<DeviceId<'a>, Vec<String>>,
    /// Given to any number of claims in shares.
    shared: BTreeSet<DeviceId<'a>>,
}

impl<'a> BusyDevices<'a> {
    /// Reads `status.allocation` of every claim. Admin access takes nothing.
    pub fn of(claims: &'a [ResourceClaim]) -> Self {
        let mut busy = Self::default();
        for claim in claims {
            for result in results(claim).filter(|result| result.admin_access != Some(true)) {
                let id = DeviceId {
                    driver: &result.driver,
                    pool: &result.pool,
                    device: &result.device,
                };
                if result.share_id.is_some() {
                    busy.shared.insert(id);
                } else {
                    busy.whole.entry(id).or_default().push(name(claim));
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
        holders.sort();
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

fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    let devices = allocation.and_then(|allocation| allocation.devices.as_ref());
    devices
        .and_then(|devices| devices.results.as_ref())
        .into_iter()
        .flatten()
}

fn name(claim: &ResourceClaim) -> String {
    format!("{}/{}", claim.namespace().unwrap_or_default(), claim.name_any())
}
