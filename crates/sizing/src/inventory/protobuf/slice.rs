//! `ResourceSlice`s.

use k8s_openapi::api::resource::v1::{
    Counter, CounterSet, Device, DeviceAttribute, DeviceCapacity, DeviceCounterConsumption, DeviceTaint, ResourcePool,
    ResourceSlice, ResourceSliceSpec,
};

use super::wire::{Malformed, Message, Value};

impl Message for ResourceSlice {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.metadata = value.message()?,
            2 => self.spec = value.message()?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for ResourceSliceSpec {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.driver = value.text()?,
            2 => self.pool = value.message()?,
            3 => self.node_name = Some(value.text()?),
            4 => self.node_selector = Some(value.message()?),
            5 => self.all_nodes = Some(value.truth()?),
            6 => value.push_to(&mut self.devices)?,
            7 => self.per_device_node_selection = Some(value.truth()?),
            8 => value.push_to(&mut self.shared_counters)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for ResourcePool {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.name = value.text()?,
            2 => self.generation = value.number()?,
            3 => self.resource_slice_count = value.number()?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for CounterSet {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.name = value.text()?,
            2 => value.insert_required(&mut self.counters)?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for Counter {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.value = value.message()?;
        }
        Ok(())
    }
}

impl Message for Device {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.name = value.text()?,
            2 => value.insert_into(&mut self.attributes)?,
            3 => value.insert_into(&mut self.capacity)?,
            4 => value.push_to(&mut self.consumes_counters)?,
            5 => self.node_name = Some(value.text()?),
            6 => self.node_selector = Some(value.message()?),
            7 => self.all_nodes = Some(value.truth()?),
            8 => value.push_to(&mut self.taints)?,
            10 => self.binding_conditions.get_or_insert_default().push(value.text()?),
            12 => self.allow_multiple_allocations = Some(value.truth()?),
            _ => {}
        }
        Ok(())
    }
}

impl Message for DeviceAttribute {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            2 => self.int = Some(value.number()?),
            3 => self.bool = Some(value.truth()?),
            4 => self.string = Some(value.text()?),
            5 => self.version = Some(value.text()?),
            _ => {}
        }
        Ok(())
    }
}

impl Message for DeviceCapacity {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        if field == 1 {
            self.value = value.message()?;
        }
        Ok(())
    }
}

impl Message for DeviceTaint {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.key = value.text()?,
            2 => self.value = value.text_if_any()?,
            3 => self.effect = value.text()?,
            _ => {}
        }
        Ok(())
    }
}

impl Message for DeviceCounterConsumption {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.counter_set = value.text()?,
            2 => value.insert_required(&mut self.counters)?,
            _ => {}
        }
        Ok(())
    }
}
