use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{Value, json};

use super::device::{DeviceBuilder, gpu};
use super::{GPU_DRIVER, build};

/// A `ResourceSlice`.
#[derive(Clone, Debug)]
pub struct SliceBuilder(pub(super) ResourceSlice);

impl SliceBuilder {
    /// The only slice of a node's pool of GPUs, which has the node's name; without devices.
    pub fn of(node: &str) -> Self {
        Self(build(json!({
            "metadata": { "name": format!("00000-{GPU_DRIVER}-{node}") },
            "spec": {
                "driver": GPU_DRIVER,
                "nodeName": node,
                "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
            },
        })))
    }

    /// Its own name, which decides on the order within a pool.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.0.metadata.name = Some(name.to_owned());
        self
    }

    /// Another pool.
    #[must_use]
    pub fn pool(mut self, name: &str) -> Self {
        name.clone_into(&mut self.0.spec.pool.name);
        self
    }

    /// Another driver.
    #[must_use]
    pub fn driver(mut self, driver: &str) -> Self {
        driver.clone_into(&mut self.0.spec.driver);
        self
    }

    /// Generation of the pool, and how many slices the driver announces.
    #[must_use]
    pub fn generation(mut self, generation: i64, slices: i64) -> Self {
        self.0.spec.pool.generation = generation;
        self.0.spec.pool.resource_slice_count = slices;
        self
    }

    /// Adds `gpu-0` … `gpu-<count - 1>`.
    #[must_use]
    pub fn gpus(mut self, count: usize) -> Self {
        for index in 0..count {
            self = self.device(gpu(index));
        }
        self
    }

    /// Adds a device.
    #[must_use]
    pub fn device(mut self, device: DeviceBuilder) -> Self {
        self.0.spec.devices.get_or_insert_default().push(device.0);
        self
    }

    /// Adds a set with one counter.
    #[must_use]
    pub fn counter_set(mut self, set: &str, counter: &str, amount: &str) -> Self {
        let set = build(json!({ "name": set, "counters": { counter: { "value": amount } } }));
        self.0.spec.shared_counters.get_or_insert_default().push(set);
        self
    }

    /// Sets the target of the slice in place of the node's name.
    #[must_use]
    pub fn target(mut self, target: &Value) -> Self {
        self.0.spec.node_name = None;
        self.0.spec.all_nodes = target.get("allNodes").and_then(Value::as_bool);
        self.0.spec.per_device_node_selection = target.get("perDeviceNodeSelection").and_then(Value::as_bool);
        self.0.spec.node_selector = target.get("nodeSelector").cloned().map(build);
        self
    }
}
