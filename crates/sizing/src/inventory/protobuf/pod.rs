//! Pods.

use k8s_openapi::api::core::v1::{
    Container, ContainerExtendedResourceRequest, ContainerStatus, Pod, PodCondition, PodExtendedResourceClaimStatus,
    PodSpec, PodStatus, ResourceHealth, ResourceRequirements, ResourceStatus,
};

use super::wire::{Malformed, Message, Value};

impl Message for Pod {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.metadata = value.message()?,
            2 => self.spec = Some(value.message()?),
            3 => self.status = Some(value.message()?),
            _ => {}
        }
        Ok(())
    }
}

impl Message for PodSpec {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            2 => self.containers.push(value.message()?),
            10 => self.node_name = value.text_if_any()?,
            20 => value.push_to(&mut self.init_containers)?,
            32 => value.insert_into(&mut self.overhead)?,
            40 => self.resources = Some(value.message()?),
            _ => {}
        }
        Ok(())
    }
}

impl Message for Container {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.name = value.text()?,
            8 => self.resources = Some(value.message()?),
            24 => self.restart_policy = value.text_if_any()?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for ResourceRequirements {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => value.insert_into(&mut self.limits)?,
            2 => value.insert_into(&mut self.requests)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for PodStatus {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.phase = value.text_if_any()?,
            2 => value.push_to(&mut self.conditions)?,
            8 => value.push_to(&mut self.container_statuses)?,
            10 => value.push_to(&mut self.init_container_statuses)?,
            11 => self.nominated_node_name = value.text_if_any()?,
            18 => self.extended_resource_claim_status = Some(value.message()?),
            19 => value.insert_into(&mut self.allocated_resources)?,
            20 => self.resources = Some(value.message()?),
            _ => {}
        }
        Ok(())
    }
}

impl Message for PodCondition {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.type_ = value.text()?,
            5 => self.reason = value.text_if_any()?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for ContainerStatus {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.name = value.text()?,
            10 => value.insert_into(&mut self.allocated_resources)?,
            11 => self.resources = Some(value.message()?),
            14 => value.push_to(&mut self.allocated_resources_status)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for ResourceStatus {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.name = value.text()?,
            2 => value.push_to(&mut self.resources)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for ResourceHealth {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.resource_id = value.text()?;
        }
        Ok(())
    }
}

impl Message for PodExtendedResourceClaimStatus {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.request_mappings.push(value.message()?);
        }
        Ok(())
    }
}

impl Message for ContainerExtendedResourceRequest {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.container_name = value.text()?,
            2 => self.resource_name = value.text()?,
            _ => {}
        }
        Ok(())
    }
}
