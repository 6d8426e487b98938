use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::api::resource::v1::DeviceToleration;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// Where the model is served.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.maxGPUs) || self.minGPUs <= self.maxGPUs")
    .message("write a minGPUs of at most maxGPUs"))]
#[x_kube(validation = Rule::new("!has(self.expectGPUs) || self.minGPUs <= self.expectGPUs")
    .message("write an expectGPUs of at least minGPUs"))]
pub struct PlacementSpec {
    /// Labels a node must carry. None: every node with GPUs is eligible. A cordoned node is only used if its
    /// `kubernetes.io/hostname` stands here and `tolerations` tolerate `node.kubernetes.io/unschedulable`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of the pods. Taints that only mark a node with GPUs are tolerated without it: `nvidia.com/gpu`,
    /// `resourceName` and `sku=gpu`. A node with any other taint is used only if it is tolerated here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.all(t, (!has(t.operator) || t.operator in ['Exists', 'Equal']) && (!has(t.effect) || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute']))")
        .message("write operator Exists or Equal, and effect NoSchedule, PreferNoSchedule or NoExecute, or leave them out"))]
    pub tolerations: Vec<Toleration>,
    /// How GPUs are asked for: `DRA` by ResourceClaims, `DevicePlugin` as an extended resource, `Auto` as the node offers them.
    #[serde(default)]
    pub allocation: AllocationMode,
    /// DeviceClass of the claims (Dynamic Resource Allocation).
    #[serde(default = "default_device_class_name")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub device_class_name: String,
    /// Tolerations of the claims for tainted devices, such as GPUs taken out of service that are to be tested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = Rule::new("self.all(t, (!has(t.operator) || t.operator in ['Exists', 'Equal']) && (!has(t.effect) || t.effect in ['NoSchedule', 'NoExecute']))")
        .message("write operator Exists or Equal, and effect NoSchedule or NoExecute, or leave them out"))]
    #[x_kube(validation = Rule::new("self.all(t, !has(t.tolerationSeconds))")
        .message("leave tolerationSeconds out: a worker has to keep its GPU for the whole run"))]
    pub device_tolerations: Vec<DeviceToleration>,
    /// Extended resource of the device plugin.
    #[serde(default = "default_resource_name")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')")
        .message("write an extended resource as domain/name, such as nvidia.com/gpu"))]
    pub resource_name: String,
    /// Fewest GPUs that make a run worth while (1 to 64); waits for them up to `timeouts.sizing`.
    #[serde(default = "default_min_gpus", rename = "minGPUs")]
    #[schemars(range(min = 1, max = 64))]
    pub min_gpus: i32,
    /// Most GPUs to use (1 to 64); absent: all free ones of the node.
    #[serde(default, rename = "maxGPUs", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub max_gpus: Option<i32>,
    /// GPUs that the node should have (1 to 64). A run on a node with fewer healthy ones is measured, and Failed with
    /// `GPUsMissing`. Thresholds that scale `ByGPUShare` count them all. Absent: what the node, its label
    /// `nvidia.com/gpu.count` and nodes like it say is only a warning.
    #[serde(default, rename = "expectGPUs", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub expect_gpus: Option<i32>,
}

/// How GPUs are asked for.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllocationMode {
    /// DRA where the node has usable DRA devices, the device plugin where it has none.
    #[default]
    Auto,
    /// ResourceClaims (Dynamic Resource Allocation).
    #[serde(rename = "DRA")]
    Dra,
    /// Extended resources of a device plugin.
    DevicePlugin,
}

/// Where a pod other than a worker may run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPlacement {
    /// On the node under test.
    WorkloadNode,
    /// Wherever the scheduler puts it.
    Anywhere,
}

impl Default for PlacementSpec {
    fn default() -> Self {
        Self {
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            allocation: AllocationMode::default(),
            device_class_name: default_device_class_name(),
            device_tolerations: Vec::new(),
            resource_name: default_resource_name(),
            min_gpus: default_min_gpus(),
            max_gpus: None,
            expect_gpus: None,
        }
    }
}

fn default_device_class_name() -> String {
    "gpu.nvidia.com".into()
}

fn default_resource_name() -> String {
    "nvidia.com/gpu".into()
}

fn default_min_gpus() -> i32 {
    1
}
