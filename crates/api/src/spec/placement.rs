use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::api::resource::v1::DeviceToleration;
use kube::KubeSchema;
use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::number;
use crate::rules;

/// Placement of the model.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.maxGPUs) || self.minGPUs <= self.maxGPUs")
    .message("write a minGPUs of at most maxGPUs"))]
#[x_kube(validation = Rule::new("!has(self.expectGPUs) || self.minGPUs <= self.expectGPUs")
    .message("write an expectGPUs of at least minGPUs"))]
pub struct PlacementSpec {
    /// Labels that a node must have. None: every node with GPUs. A cordoned node: see docs/sizing.md.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of the pods. The taints `nvidia.com/gpu`, `resourceName` and `sku=gpu` need none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.all(t, (!has(t.operator) || t.operator in ['Exists', 'Equal']) && (!has(t.effect) || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute']))")
        .message("write operator Exists or Equal, and effect NoSchedule, PreferNoSchedule or NoExecute, or leave them out"))]
    #[x_kube(validation = key_or_exists(), validation = no_value_for_exists())]
    #[x_kube(validation = Rule::new("self.all(t, !has(t.tolerationSeconds) || (has(t.effect) && t.effect == 'NoExecute'))")
        .message("write effect NoExecute, or leave tolerationSeconds out"))]
    pub tolerations: Vec<Toleration>,
    /// Request of GPUs. `DRA`: ResourceClaims. `DevicePlugin`: an extended resource. `Auto`: the method that the node
    /// offers.
    #[serde(default)]
    pub allocation: AllocationMode,
    /// DeviceClass of the claims.
    #[serde(default = "default_device_class_name")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub device_class_name: String,
    /// Tolerations of the claims, to test tainted GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = Rule::new("self.all(t, (!has(t.operator) || t.operator in ['Exists', 'Equal']) && (!has(t.effect) || t.effect in ['NoSchedule', 'NoExecute']))")
        .message("write operator Exists or Equal, and effect NoSchedule or NoExecute, or leave them out"))]
    #[x_kube(validation = key_or_exists(), validation = no_value_for_exists())]
    #[x_kube(validation = Rule::new("self.all(t, !has(t.tolerationSeconds))")
        .message("leave tolerationSeconds out: a worker has to keep its GPU for the whole run"))]
    pub device_tolerations: Vec<DeviceToleration>,
    /// Extended resource of the device plugin.
    #[serde(default = "default_resource_name")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')")
        .message("write an extended resource as domain/name, such as nvidia.com/gpu"))]
    pub resource_name: String,
    /// Minimum number of GPUs (1–64), rounded up to whole workers.
    #[serde(default = "number::<1>", rename = "minGPUs")]
    #[schemars(range(min = 1, max = 64))]
    pub min_gpus: i32,
    /// Maximum number of GPUs (1–64), rounded down to whole workers. Absent: all free GPUs of the node.
    #[serde(default, rename = "maxGPUs", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub max_gpus: Option<i32>,
    /// GPUs that the node should have (1–64). If fewer are healthy, the run measures those and is Failed with
    /// `GPUsMissing`; also below `minGPUs`, if it selects the node by hostname and two workers have room. Absent: node,
    /// label `nvidia.com/gpu.count` or similar nodes give the number, and missing GPUs are a warning.
    #[serde(default, rename = "expectGPUs", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub expect_gpus: Option<i32>,
}

/// Method by which a run requests GPUs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllocationMode {
    /// Method that the node offers. A node that offers both is refused.
    #[default]
    Auto,
    /// ResourceClaims (Dynamic Resource Allocation).
    #[serde(rename = "DRA")]
    Dra,
    /// Extended resources of a device plugin.
    DevicePlugin,
}

/// Place of a pod that is not a worker.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodPlacement {
    /// Node under test.
    #[default]
    WorkloadNode,
    /// Any node that the scheduler chooses.
    Anywhere,
}

/// Rule for the key of a toleration, as for pods and claims: without one, only `Exists` has a meaning.
fn key_or_exists() -> Rule {
    Rule::new("self.all(t, (has(t.key) && t.key != '') || (has(t.operator) && t.operator == 'Exists'))")
        .message("write the key of the taint, or operator Exists for every taint")
}

/// Rule for the value of a toleration, as for pods and claims.
fn no_value_for_exists() -> Rule {
    Rule::new("self.all(t, !has(t.value) || t.value == '' || !has(t.operator) || t.operator != 'Exists')")
        .message("leave value out with operator Exists, or write operator Equal")
}

fn default_device_class_name() -> String {
    "gpu.nvidia.com".into()
}

fn default_resource_name() -> String {
    "nvidia.com/gpu".into()
}
