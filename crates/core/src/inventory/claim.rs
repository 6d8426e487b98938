use std::sync::Arc;

use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};
use kube::ResourceExt as _;

use super::Strings;

/// A `ResourceClaim` that holds devices, whoever reserved it and whether or not it is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    /// `namespace/name`.
    pub name: Box<str>,
    /// What it holds.
    pub devices: Box<[HeldDevice]>,
}

/// A device that a claim holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldDevice {
    /// Its driver.
    pub driver: Arc<str>,
    /// Its pool.
    pub pool: Arc<str>,
    /// Its name in the pool.
    pub device: Arc<str>,
    /// Whether only a share of it is held, so that other claims may hold it too.
    pub shared: bool,
}

impl ClaimUse {
    /// What a claim holds; `None` for one that holds nothing. Admin access takes nothing.
    pub fn read(claim: &ResourceClaim, strings: &mut Strings) -> Option<Self> {
        let devices = claim.status.as_ref()?.allocation.as_ref()?.devices.as_ref()?;
        let held: Box<[HeldDevice]> = devices
            .results
            .iter()
            .flatten()
            .filter(|result| result.admin_access != Some(true))
            .map(|result| held(result, strings))
            .collect();
        (!held.is_empty()).then(|| Self {
            name: format!("{}/{}", claim.namespace().unwrap_or_default(), claim.name_any()).into(),
            devices: held,
        })
    }
}

fn held(result: &DeviceRequestAllocationResult, strings: &mut Strings) -> HeldDevice {
    HeldDevice {
        driver: strings.share(&result.driver),
        pool: strings.share(&result.pool),
        device: strings.share(&result.device),
        shared: result.share_id.is_some(),
    }
}
