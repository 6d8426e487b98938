use serde::{Deserialize, Serialize};

/// Details of a plan beside the placement.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanDetails {
    /// Pods that hold GPUs from the device plugin. Present only if the node allocates GPUs both by claims and by a
    /// device plugin. Pods of other namespaces appear as a number instead of their names. While the run
    /// measures, no other pod may get a GPU by the method that the run does not use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Vec<String>>,
    /// CEL expressions that the workers' claims add to those of their class. They exclude devices that the scheduler
    /// must not allocate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<String>,
    /// Source of `status.placement.expectedGPUs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_by: Option<ExpectedBy>,
    /// Devices of `status.placement.devices`, with their names in the ResourceSlices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_ids: Vec<DeviceStatus>,
    /// Tolerations the pods carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<k8s_openapi::api::core::v1::Toleration>,
}

impl PlanDetails {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Number of GPUs that a node should have.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedGpus {
    /// Number of GPUs.
    pub gpus: i64,
    /// Source of the number.
    pub by: ExpectedBy,
}

/// Source of the number of GPUs that a node should have.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedBy {
    /// `placement.expectGPUs`.
    Spec,
    /// The node itself: its capacity, or its ResourceSlices.
    Node,
    /// The node's label `nvidia.com/gpu.count`.
    Label,
    /// Most other nodes of the same product and machine type.
    Peers,
}

impl ExpectedBy {
    /// Description of the source, for messages.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Spec => "placement.expectGPUs",
            Self::Node => "the node itself",
            Self::Label => "its label nvidia.com/gpu.count",
            Self::Peers => "most nodes like it",
        }
    }
}

/// GPU of a node.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct DeviceStatus {
    /// Pool of the driver.
    pub pool: String,
    /// Name in the ResourceSlice.
    pub name: String,
    /// UUID, if the driver publishes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

impl DeviceStatus {
    /// The UUID, or `pool/name` if the driver publishes none.
    pub fn label(&self) -> String {
        let name = || format!("{}/{}", self.pool, self.name);
        self.uuid.clone().unwrap_or_else(name)
    }
}
