//! Builders for what sizing reads of a cluster. By default nodes are Ready with ample room, devices are whole
//! GPUs as NVIDIA's driver publishes them, pools are complete and nothing is in use.

mod claim;
mod device;
mod node;
mod pod;
mod slice;

use k8s_openapi::api::core::v1::{LimitRange, Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::core::DynamicObject;
use perfval_sizing::inventory::{self, CacheVolume, ClaimUse, Interned, Inventory, PodUse, Slice};
use perfval_sizing::{Naming, Seen};
use serde_json::{Value, from_value, json};

pub use claim::ClaimBuilder;
pub use device::{DeviceBuilder, gpu};
pub use node::NodeBuilder;
pub use pod::PodBuilder;
pub use slice::SliceBuilder;

/// NVIDIA's driver, and the name of its class of whole GPUs.
pub const GPU_DRIVER: &str = "gpu.nvidia.com";
/// The selector of that class.
pub const GPU_SELECTOR: &str = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'";

/// A cluster as sizing reads it.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    class: Option<DeviceClass>,
    slices: Vec<ResourceSlice>,
    taint_rules: Vec<Value>,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    claims: Vec<ResourceClaim>,
    bind_requests: Vec<DynamicObject>,
    quotas: Vec<ResourceQuota>,
    limit_ranges: Vec<LimitRange>,
    volume: Option<Box<PersistentVolume>>,
}

impl Cluster {
    /// The class of whole GPUs, and nothing else.
    pub fn empty() -> Self {
        Self::default().class(GPU_SELECTOR)
    }

    /// One node `n1` with this many GPUs in its pool `n1`.
    pub fn of_gpus(count: usize) -> Self {
        Self::of_nodes_with(&["n1"], count)
    }

    /// Nodes with four GPUs each.
    pub fn of_nodes(names: &[&str]) -> Self {
        Self::of_nodes_with(names, 4)
    }

    /// Nodes with this many GPUs each.
    pub fn of_nodes_with(names: &[&str], gpus: usize) -> Self {
        names.iter().fold(Self::empty(), |cluster, name| {
            cluster
                .node(NodeBuilder::named(name))
                .slice(SliceBuilder::of(name).gpus(gpus))
        })
    }

    /// Replaces the class's selector.
    #[must_use]
    pub fn class(mut self, expression: &str) -> Self {
        self.class = Some(build(json!({
            "metadata": { "name": GPU_DRIVER },
            "spec": { "selectors": [{ "cel": { "expression": expression } }] },
        })));
        self
    }

    /// Lets the class stand for an extended resource.
    #[must_use]
    pub fn class_for(mut self, resource: &str) -> Self {
        if let Some(class) = &mut self.class {
            class.spec.extended_resource_name = Some(resource.to_owned());
        }
        self
    }

    /// Takes the class away.
    #[must_use]
    pub fn without_class(mut self) -> Self {
        self.class = None;
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

    /// Adds a `BindRequest` of KAI's scheduler for a GPU of a pool.
    #[must_use]
    pub fn promised(mut self, pool: &str, device: &str, phase: &str) -> Self {
        let result = json!({ "request": "gpu", "driver": GPU_DRIVER, "pool": pool, "device": device });
        self.bind_requests.push(build(json!({
            "apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest",
            "metadata": { "name": format!("bind-{device}"), "namespace": "other" },
            "spec": {
                "podName": "p", "selectedNode": pool,
                "resourceClaimAllocations": [{ "name": "gpu", "allocation": { "devices": { "results": [result] } } }],
            },
            "status": { "phase": phase },
        })));
        self
    }

    /// Makes the promises for extended resources that a class serves (KEP-5004), as KAI 0.17 writes them.
    #[must_use]
    pub fn for_extended_resources(mut self) -> Self {
        for request in &mut self.bind_requests {
            let spec = &mut request.data["spec"];
            let promises = spec["resourceClaimAllocations"].take();
            spec["extendedResourceClaimAllocation"] = promises[0].clone();
        }
        self
    }

    /// Adds a `ResourceQuota` to the run's namespace by its `spec`, and what of it is used.
    #[must_use]
    pub fn quota(mut self, spec: &Value, used: &Value) -> Self {
        let name = format!("quota-{}", self.quotas.len());
        self.quotas.push(build(
            json!({ "metadata": { "name": name }, "spec": spec, "status": { "used": used } }),
        ));
        self
    }

    /// Adds a `LimitRange` to the run's namespace by its `limits`.
    #[must_use]
    pub fn limit_range(mut self, limits: &Value) -> Self {
        let name = format!("limits-{}", self.limit_ranges.len());
        self.limit_ranges.push(build(
            json!({ "metadata": { "name": name }, "spec": { "limits": limits } }),
        ));
        self
    }

    /// Binds the model cache, the claim `weights`, to a volume that only these nodes reach, as a `NodeSelector`.
    #[must_use]
    pub fn cache_on(mut self, nodes: &Value) -> Self {
        self.volume = Some(Box::new(build(json!({
            "metadata": { "name": "pv-weights" }, "spec": { "nodeAffinity": { "required": nodes } },
        }))));
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
        self.bind_requests.reverse();
        self.quotas.reverse();
        self.limit_ranges.reverse();
        self
    }

    /// What sizing reads, every part of it known.
    ///
    /// # Panics
    /// If a test's own object is malformed.
    pub fn inventory(&self) -> Inventory {
        let interned = &mut Interned::default();
        let slices = self.slices.iter().map(|slice| Slice::read(slice, interned)).collect();
        let nodes = self
            .nodes
            .iter()
            .map(|node| inventory::Node::read(node, interned))
            .collect();
        let pods = self.pods.iter().filter_map(|pod| PodUse::read(pod, interned)).collect();
        let claims = self
            .claims
            .iter()
            .filter_map(|claim| ClaimUse::read(claim, interned))
            .collect();
        let promises = self
            .bind_requests
            .iter()
            .filter_map(|request| ClaimUse::promised(request, interned).expect("the builder writes what is read"))
            .collect();
        let claim = PersistentVolumeClaim {
            metadata: build(json!({ "name": "weights" })),
            ..PersistentVolumeClaim::default()
        };
        let cache_volume = self
            .volume
            .as_ref()
            .and_then(|volume| CacheVolume::read(&claim, volume));
        Inventory {
            device_class: self.class.clone().map_or(Seen::Absent, Seen::Present),
            slices: Seen::Present(slices),
            taint_rules: Seen::Present(self.taint_rules.clone()),
            nodes: Seen::Present(nodes),
            pods: Seen::Present(pods),
            quotas: Seen::Present(self.quotas.clone()),
            limit_ranges: Seen::Present(self.limit_ranges.clone()),
            cache_volume: cache_volume.map_or(Seen::Absent, Seen::Present),
            promises: Seen::Present(promises),
            claims: Seen::Present(claims),
            naming: Naming::All,
        }
    }

    /// The objects themselves, as an API server holds them. Quotas, limit ranges and promises are not among them: they need a
    /// namespace, or a kind of KAI.
    pub fn objects(&self) -> Vec<Value> {
        let rules = self.taint_rules.iter().map(|rule| {
            let mut rule = rule.clone();
            rule["apiVersion"] = json!("resource.k8s.io/v1beta2");
            rule["kind"] = json!("DeviceTaintRule");
            rule
        });
        let class = self.class.iter().map(|class| json!(class));
        class
            .chain(self.slices.iter().map(|slice| json!(slice)))
            .chain(rules)
            .chain(self.nodes.iter().map(|node| json!(node)))
            .chain(self.pods.iter().map(|pod| json!(pod)))
            .chain(self.claims.iter().map(|claim| json!(claim)))
            .chain(self.volume.iter().map(|volume| json!(volume)))
            .collect()
    }
}

/// An object of the Kubernetes API from what is written in this module.
fn build<T: for<'de> serde::Deserialize<'de>>(value: Value) -> T {
    from_value(value).expect("the builder writes what the type reads")
}
