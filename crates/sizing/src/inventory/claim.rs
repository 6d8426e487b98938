use std::sync::Arc;

use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};
use kube::core::DynamicObject;
use serde::Deserialize;

use super::Interned;

/// A `ResourceClaim` that holds devices, with or without a reservation, and also while it is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    /// `namespace/name`.
    pub name: Box<str>,
    /// Devices that it holds.
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
    /// True if only a share is held, so that other claims may hold the device too.
    pub shared: bool,
}

impl ClaimUse {
    /// Reads the devices that a claim holds; `None` if it holds none. Admin access takes no device.
    pub fn read(claim: &ResourceClaim, interned: &mut Interned) -> Option<Self> {
        let allocation = claim.status.as_ref()?.allocation.as_ref()?;
        Self::from_allocations(claim, [allocation], interned)
    }

    /// Reads the devices that a `BindRequest` of KAI's scheduler promises to a pod; `None` once it is bound or given
    /// up. The binder writes the claims only later.
    pub fn promised(request: &DynamicObject, interned: &mut Interned) -> Result<Option<Self>, serde_json::Error> {
        if matches!(request.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return Ok(None);
        }
        let spec = &request.data["spec"];
        let promises: Option<Vec<Promise>> = Deserialize::deserialize(&spec["resourceClaimAllocations"])?;
        // For an extended resource (KEP-5004), since KAI 0.17.
        let extended: Option<Promise> = Deserialize::deserialize(&spec["extendedResourceClaimAllocation"])?;
        let promises = promises.iter().flatten().chain(&extended);
        let allocations = promises.filter_map(|promise| promise.allocation.as_ref());
        Ok(Self::from_allocations(request, allocations, interned))
    }

    fn from_allocations<'a>(
        owner: &impl kube::ResourceExt,
        allocations: impl IntoIterator<Item = &'a AllocationResult>,
        interned: &mut Interned,
    ) -> Option<Self> {
        let devices = allocations
            .into_iter()
            .filter_map(|allocation| allocation.devices.as_ref());
        let held: Box<[HeldDevice]> = devices
            .flat_map(|devices| devices.results.iter().flatten())
            .filter(|result| result.admin_access != Some(true))
            .map(|result| held(result, interned))
            .collect();
        (!held.is_empty()).then(|| Self {
            name: format!("{}/{}", owner.namespace().unwrap_or_default(), owner.name_any()).into(),
            devices: held,
        })
    }
}

/// An allocation that a `BindRequest` carries.
#[derive(Deserialize)]
struct Promise {
    allocation: Option<AllocationResult>,
}

fn held(result: &DeviceRequestAllocationResult, interned: &mut Interned) -> HeldDevice {
    HeldDevice {
        driver: interned.share(&result.driver),
        pool: interned.share(&result.pool),
        device: interned.share(&result.device),
        shared: result.share_id.is_some(),
    }
}
