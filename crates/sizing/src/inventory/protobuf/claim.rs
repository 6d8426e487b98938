//! `ResourceClaim`s.

use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult, ResourceClaim, ResourceClaimStatus,
};

use super::wire::{Malformed, Message, Value};

impl Message for ResourceClaim {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.metadata = value.message()?,
            3 => self.status = Some(value.message()?),
            _ => {}
        }
        Ok(())
    }
}

impl Message for ResourceClaimStatus {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.allocation = Some(value.message()?);
        }
        Ok(())
    }
}

impl Message for AllocationResult {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.devices = Some(value.message()?);
        }
        Ok(())
    }
}

impl Message for DeviceAllocationResult {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            value.push_to(&mut self.results)?;
        }
        Ok(())
    }
}

impl Message for DeviceRequestAllocationResult {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            2 => self.driver = value.text()?,
            3 => self.pool = value.text()?,
            4 => self.device = value.text()?,
            5 => self.admin_access = Some(value.truth()?),
            9 => self.share_id = Some(value.text()?),
            _ => {}
        }
        Ok(())
    }
}
