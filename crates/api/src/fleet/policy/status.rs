use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use strum::IntoStaticStr;

/// Most outliers in a status, so that it stays below 32 KiB.
pub const MOST_OUTLIERS: usize = 20;

/// State of the selected nodes. `NodePerformance` objects contain the verdict of each.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PerfValidationPolicyStatus {
    /// Spec generation of this status; -1: not read yet.
    pub observed_generation: i64,
    /// Numbers of nodes. Only verdicts from runs of a policy count.
    pub nodes: Option<PolicyNodes>,
    /// Fresh nodes (percent of the selected ones, rounded down).
    pub fresh_percent: Option<i64>,
    /// GPU minutes of this policy's validations since midnight (UTC), without deleted ones.
    pub gpu_minutes_today: Option<i64>,
    /// Estimated time at which every node that can be validated has a fresh verdict. Absent if none is due, nothing may
    /// start, or no validation has measured.
    pub expected_completion_time: Option<DateTime<Utc>>,
    /// At most 32 environments, those with most nodes first. Only nodes of one environment are compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["digest"]))]
    pub environments: Vec<PolicyEnvironment>,
    /// Nodes that need attention, at most 20, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub outliers: Vec<Outlier>,
    /// `Ready`: True if the operator follows this policy. `ComparisonReliable`: False if outliers may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Numbers of nodes. `selected` is the sum of `passed`, `failed`, `inconclusive` and `neverMeasured`, and also the sum of
/// `fresh`, `stale` and `neverMeasured`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyNodes {
    /// Selected nodes with GPUs, without those of an older policy.
    pub selected: i64,
    /// Nodes with a fresh verdict (`freshness`).
    pub fresh: i64,
    /// Nodes whose newest verdict is Passed.
    pub passed: i64,
    /// Nodes whose newest verdict is Failed.
    pub failed: i64,
    /// Nodes whose newest verdict is Inconclusive.
    pub inconclusive: i64,
    /// Nodes without a verdict.
    pub never_measured: i64,
    /// Nodes with a stale verdict.
    pub stale: i64,
    /// Nodes with an active validation of this policy.
    pub running: i64,
    /// Due nodes that must wait: not Ready, too few free GPUs, another active or a suspended validation, no label
    /// `kubernetes.io/hostname`.
    pub busy: i64,
}

/// Environment of nodes.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PolicyEnvironment {
    /// Digest.
    pub digest: String,
    /// GPU product.
    pub product: Option<String>,
    /// Number of its selected nodes.
    pub nodes: i64,
    /// Its `PerfBaseline`, once there is one.
    pub baseline: Option<String>,
}

/// Node, or GPU of a node, that needs attention.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Outlier {
    /// Name of the node.
    pub node: String,
    /// UUID of the slow GPU, or of all GPUs of the slow worker. Absent if the whole node is slow, or for
    /// `BelowGate`.
    pub gpu: Option<String>,
    /// Reason why the node is listed.
    pub reason: OutlierReason,
    /// Certainty that it is slow.
    pub confidence: Option<OutlierConfidence>,
    /// Result (percent of the gate, own past, peers or baseline; below 0 for a latency above twice its limit). Absent
    /// for a failure without a number.
    pub percent: Option<i64>,
    /// Validation behind the result, as `namespace/name`, perhaps deleted.
    pub validation: String,
}

/// Reason why a node is listed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, IntoStaticStr)]
pub enum OutlierReason {
    /// The newest verdict is Failed.
    BelowGate,
    /// A GPU is slower than in its earlier runs in the same environment.
    SlowerThanItself,
    /// A GPU is slower than the node's other GPUs, or the node is slower than others in the same environment or than its approved
    /// baseline.
    SlowerThanPeers,
}

/// Certainty that an outlier is slow. Absent for `BelowGate`, which compares no nodes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, IntoStaticStr)]
pub enum OutlierConfidence {
    /// The newest run is slow. It may be chance until runs in new deployments confirm it. A loss of a whole node may be one of all nodes until
    /// three others were measured.
    Suspected,
    /// Two runs in new deployments are slow too, or several runs show that it became slower.
    Confirmed,
    /// Confirmed, and meets the limits of `comparison.act`: by default more than 4 % slower than in its own earlier runs, and at most
    /// 1 % of such reports are wrong. A reason to take the node out of service.
    Actionable,
}
