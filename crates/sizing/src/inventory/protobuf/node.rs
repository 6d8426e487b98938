//! Nodes.

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, Taint};

use super::meta::Instant;
use super::wire::{Malformed, Message, Value};

impl Message for Node {
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

impl Message for NodeSpec {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            4 => self.unschedulable = Some(value.truth()?),
            5 => value.push_to(&mut self.taints)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for Taint {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.key = value.text()?,
            2 => self.value = value.text_if_any()?,
            3 => self.effect = value.text()?,
            4 => self.time_added = Some(value.message::<Instant>()?.0),
            _ => {}
        }
        Ok(())
    }
}

impl Message for NodeStatus {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => value.insert_into(&mut self.capacity)?,
            2 => value.insert_into(&mut self.allocatable)?,
            4 => value.push_to(&mut self.conditions)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for NodeCondition {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.type_ = value.text()?,
            2 => self.status = value.text()?,
            _ => {}
        }
        Ok(())
    }
}
