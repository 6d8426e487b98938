//! Builders for what sizing reads of a cluster. Unless told otherwise: nodes are Ready with ample room, devices are whole
//! GPUs as NVIDIA's driver publishes them, pools are complete and nothing is in use.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{Device, DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_core::Seen;
use perfval_core::observed::Inventory;
use serde_json::{Value, from_value, json};

/// NVIDIA's driver, and the name of its class of whole GPUs.
pub const GPU_DRIVER: &str = "gpu.nvidia.com";
/// The selector of that class.
pub const GPU_SELECTOR: &str = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'";

/// A cluster as sizing reads it.
#[derive(Clone, Debug)]
pub struct Cluster {
    class: Seen<DeviceClass>,
    slices: Vec<ResourceSlice>,
    taint_rules: Vec<Value>,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    claims: Vec<ResourceClaim>,
}

impl Cluster {
    /// The class of whole GPUs, and nothing else.
    pub fn empty() -> Self {
        Self {
            class: Seen::Absent,
            slices: Vec::new(),
            taint_rules: Vec::new(),
            nodes: Vec::new(),
            pods: Vec::new(),
            claims: Vec::new(),
        }
        .class(GPU_SELECTOR)
    }

    /// One node `n1` with this many GPUs in its pool `n1`.
    pub fn of_gpus(count: usize) -> Self {
        Self::empty()
            .node(NodeBuilder::named("n1"))
            .slice(SliceBuilder::of("n1").gpus(count))
    }

    /// Replaces the class's selector.
    #[must_use]
    pub fn class(mut self, expression: &str) -> Self {
        self.class = Seen::Present(build(json!({
            "metadata": { "name": GPU_DRIVER },
            "spec": { "selectors": [{ "cel": { "expression": expression } }] },
        })));
        self
    }

    /// Takes the class away.
    #[must_use]
    pub fn without_class(mut self) -> Self {
        self.class = Seen::Absent;
        self
    }

    /// Takes all slices away.
    #[must_use]
    pub fn without_slices(mut self) -> Self {
        self.slices.clear();
        self
    }

    /// Adds a node, or replaces the one of that name.
    #[must_use]
    pub fn node(mut self, node: NodeBuilder) -> Self {
        self.nodes.retain(|known| known.metadata.name != node.0.metadata.name);
        self.nodes.push(node.0);
        self
    }

    /// Adds a slice.
    #[must_use]
    pub fn slice(mut self, slice: SliceBuilder) -> Self {
        self.slices.push(slice.0);
        self
    }

    /// Adds a claim.
    #[must_use]
    pub fn claim(mut self, claim: ClaimBuilder) -> Self {
        self.claims.push(claim.0);
        self
    }

    /// Adds a pod.
    #[must_use]
    pub fn pod(mut self, pod: PodBuilder) -> Self {
        self.pods.push(pod.0);
        self
    }

    /// Adds a `DeviceTaintRule` by its `spec`.
    #[must_use]
    pub fn taint_rule(mut self, spec: &Value) -> Self {
        let name = format!("rule-{}", self.taint_rules.len());
        self.taint_rules
            .push(json!({ "metadata": { "name": name }, "spec": spec }));
        self
    }

    /// Turns every list around.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.slices.reverse();
        self.taint_rules.reverse();
        self.nodes.reverse();
        self.pods.reverse();
        self.claims.reverse();
        self
    }

    /// What sizing reads, every part of it known.
    pub fn inventory(&self) -> Inventory {
        Inventory {
            device_class: self.class.clone(),
            slices: Seen::Present(self.slices.clone()),
            taint_rules: Seen::Present(self.taint_rules.clone()),
            nodes: Seen::Present(self.nodes.clone()),
            pods: Seen::Present(self.pods.clone()),
            claims: Seen::Present(self.claims.clone()),
        }
    }
}

/// A node.
#[derive(Clone, Debug)]
pub struct NodeBuilder(Node);

impl NodeBuilder {
    /// A Ready node with ample room.
    pub fn named(name: &str) -> Self {
        Self(build(json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "spec": {},
            "status": {
                "allocatable": { "cpu": "256", "memory": "2Ti", "pods": "110" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        })))
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0
            .metadata
            .labels
            .get_or_insert_default()
            .insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets what the node offers of a resource.
    #[must_use]
    pub fn offers(mut self, resource: &str, amount: &str) -> Self {
        let status = self.0.status.get_or_insert_default();
        let amount = Quantity(amount.to_owned());
        status
            .allocatable
            .get_or_insert_default()
            .insert(resource.to_owned(), amount);
        self
    }

    /// Adds a taint.
    #[must_use]
    pub fn taint(mut self, key: &str, effect: &str) -> Self {
        let taint = build(json!({ "key": key, "effect": effect }));
        self.0
            .spec
            .get_or_insert_default()
            .taints
            .get_or_insert_default()
            .push(taint);
        self
    }

    /// Cordons it.
    #[must_use]
    pub fn cordoned(mut self) -> Self {
        self.0.spec.get_or_insert_default().unschedulable = Some(true);
        self
    }

    /// Makes it not Ready.
    #[must_use]
    pub fn not_ready(mut self) -> Self {
        self.0.status.get_or_insert_default().conditions =
            Some(vec![build(json!({ "type": "Ready", "status": "Unknown" }))]);
        self
    }
}

/// A `ResourceSlice`.
#[derive(Clone, Debug)]
pub struct SliceBuilder(ResourceSlice);

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

/// A device.
#[derive(Clone, Debug)]
pub struct DeviceBuilder(Device);

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

/// A `ResourceClaim`.
#[derive(Clone, Debug)]
pub struct ClaimBuilder(ResourceClaim);

impl ClaimBuilder {
    /// A claim in namespace `other` that holds nothing yet.
    pub fn named(name: &str) -> Self {
        Self(build(json!({
            "metadata": { "name": name, "namespace": "other" }, "spec": {}, "status": { "allocation": { "devices": { "results": [] } } },
        })))
    }

    /// Holds a GPU of a pool.
    #[must_use]
    pub fn holds(self, pool: &str, device: &str) -> Self {
        self.result(&json!({ "driver": GPU_DRIVER, "pool": pool, "device": device }))
    }

    /// Holds what a result says; the request's name is set.
    #[must_use]
    pub fn result(mut self, result: &Value) -> Self {
        let mut result = result.clone();
        result["request"] = json!("gpu");
        let status = self.0.status.get_or_insert_default();
        let devices = status
            .allocation
            .get_or_insert_default()
            .devices
            .get_or_insert_default();
        devices.results.get_or_insert_default().push(build(result));
        self
    }

    /// Is reserved for a pod.
    #[must_use]
    pub fn reserved(mut self) -> Self {
        let pod = build(json!({ "resource": "pods", "name": "p", "uid": "u" }));
        self.0.status.get_or_insert_default().reserved_for = Some(vec![pod]);
        self
    }

    /// Is being deleted.
    #[must_use]
    pub fn deleting(mut self) -> Self {
        self.0.metadata.deletion_timestamp = Some(build(json!("2026-11-20T10:00:00Z")));
        self
    }
}

/// A pod.
#[derive(Clone, Debug)]
pub struct PodBuilder(Pod);

impl PodBuilder {
    /// A running pod on a node that asks for nothing.
    pub fn on(node: &str, name: &str) -> Self {
        Self(build(json!({
            "metadata": { "name": name, "namespace": "other" },
            "spec": { "nodeName": node, "containers": [{ "name": "main", "resources": {} }] },
            "status": { "phase": "Running" },
        })))
    }

    /// Asks for an amount of a resource.
    #[must_use]
    pub fn requests(mut self, resource: &str, amount: &str) -> Self {
        let amounts = BTreeMap::from([(resource.to_owned(), Quantity(amount.to_owned()))]);
        for container in self.0.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
            let resources = container.resources.get_or_insert_default();
            resources.requests.get_or_insert_default().extend(amounts.clone());
        }
        self
    }

    /// Its phase.
    #[must_use]
    pub fn phase(mut self, phase: &str) -> Self {
        self.0.status.get_or_insert_default().phase = Some(phase.to_owned());
        self
    }

    /// Its extended resource was served by a claim (KEP-5004).
    #[must_use]
    pub fn served_by_claim(mut self, claim: &str, resource: &str) -> Self {
        self.0.status.get_or_insert_default().extended_resource_claim_status = Some(build(json!({
            "resourceClaimName": claim,
            "requestMappings": [{ "containerName": "main", "resourceName": resource, "requestName": "request-0" }],
        })));
        self
    }
}

/// An object of the Kubernetes API from what is written in this module.
fn build<T: for<'de> serde::Deserialize<'de>>(value: Value) -> T {
    from_value(value).expect("the builder writes what the type reads")
}
