use k8s_openapi::api::resource::v1::Device;
use serde_json::{Value, json};

use super::build;

/// A device.
#[derive(Clone, Debug)]
pub struct DeviceBuilder(pub(super) Device);

/// A whole GPU `gpu-<index>`, as NVIDIA's driver publishes an H100.
pub fn gpu(index: usize) -> DeviceBuilder {
    DeviceBuilder(build(json!({
        "name": format!("gpu-{index}"),
        "attributes": {
            "type": { "string": "gpu" },
            "uuid": { "string": format!("GPU-{index}") },
            "productName": { "string": "NVIDIA H100 80GB HBM3" },
            "driverVersion": { "version": "550.163.1" },
            "resource.kubernetes.io/pciBusID": { "string": format!("0000:{index:02x}:00.0") },
        },
        "capacity": { "memory": { "value": "80Gi" } },
    })))
}

impl DeviceBuilder {
    /// Another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.0.name);
        self
    }

    /// Sets a text attribute.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: &str) -> Self {
        let value = build(json!({ "string": value }));
        self.0.attributes.get_or_insert_default().insert(name.to_owned(), value);
        self
    }

    /// Takes an attribute away.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.attributes.get_or_insert_default().remove(name);
        self
    }

    /// Adds a taint.
    #[must_use]
    pub fn taint(mut self, key: &str, effect: &str) -> Self {
        self.0
            .taints
            .get_or_insert_default()
            .push(build(json!({ "key": key, "effect": effect })));
        self
    }

    /// Lets many claims have it at once.
    #[must_use]
    pub fn shareable(mut self) -> Self {
        self.0.allow_multiple_allocations = Some(true);
        self
    }

    /// Makes it consume a counter.
    #[must_use]
    pub fn consumes(mut self, set: &str, counter: &str, amount: &str) -> Self {
        let consumed = build(json!({ "counterSet": set, "counters": { counter: { "value": amount } } }));
        self.0.consumes_counters.get_or_insert_default().push(consumed);
        self
    }

    /// Sets any other field.
    #[must_use]
    pub fn field(self, name: &str, value: Value) -> Self {
        let mut device = json!(self.0);
        device[name] = value;
        Self(build(device))
    }
}
