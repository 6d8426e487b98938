#![allow(clippy::duplicated_attributes, reason = "each printer column has a type")]

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::Verdict;

/// Empty: a user has nothing to write here.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "perfvalidation.dev",
    version = "v1alpha1",
    kind = "NodePerformance",
    plural = "nodeperformances",
    status = "NodePerformanceStatus",
    derive = "PartialEq",
    doc = "Recorded performance of the node with the same name. The operator writes it after a run that measured. \
           A policy's run stays for 14 days and for 2 × `maxAge` against users' runs. The node owns the object, so it is \
           deleted with the node.",
    shortname = "nodeperf",
    category = "perf",
    selectable = ".status.verdict",
    printcolumn(name = "VERDICT", type_ = "string", json_path = ".status.verdict"),
    printcolumn(name = "REASON", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "GPUS", type_ = "integer", json_path = ".status.gpuCount"),
    printcolumn(
        name = "TOK/S",
        type_ = "integer",
        json_path = ".status.outputTokensPerSecond",
        description = "Output tokens per second of the whole deployment"
    ),
    printcolumn(
        name = "OF-GATE",
        type_ = "integer",
        json_path = ".status.percentOfGate",
        description = "Result of the tightest enforced gate on an average, without `SlowestWorkerPercent` and `OwnPastPercent` (percent; below 100 is a miss)"
    ),
    printcolumn(
        name = "OF-PAST",
        type_ = "integer",
        json_path = ".status.percentOfOwnPast",
        description = "Decode speed of the slowest GPU (percent of its own earlier runs)"
    ),
    printcolumn(
        name = "MEASURED",
        type_ = "date",
        json_path = ".status.measuredAt",
        description = "Time since the run ended"
    ),
    printcolumn(
        name = "OF-PEERS",
        type_ = "integer",
        json_path = ".status.percentOfPeers",
        description = "Decode speed of the slowest GPU (percent of the node's other GPUs)",
        priority = 1
    ),
    printcolumn(
        name = "ENVIRONMENT",
        type_ = "string",
        json_path = ".status.environment",
        priority = 1
    ),
    printcolumn(
        name = "NAMESPACE",
        type_ = "string",
        json_path = ".status.validation.namespace",
        priority = 1
    ),
    printcolumn(
        name = "VALIDATION",
        type_ = "string",
        json_path = ".status.validation.name",
        priority = 1
    )
)]
pub struct NodePerformanceSpec {}

/// Newest run that measured the node, never Error or Skipped. A user's run replaces a policy's after 14 days and 2 ×
/// `maxAge`.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodePerformanceStatus {
    /// Verdict of the run.
    pub verdict: Verdict,
    /// Reason of the verdict, a stable word.
    pub reason: Option<String>,
    /// End of the run.
    pub measured_at: DateTime<Utc>,
    /// PerfValidation and run behind these numbers, perhaps deleted.
    pub validation: ValidationReference,
    /// Digest of the environment.
    pub environment: Option<String>,
    /// Boot of the node (`status.nodeInfo.bootID`).
    #[serde(rename = "bootID")]
    pub boot_id: Option<String>,
    /// GPU product.
    pub product: Option<String>,
    /// GPUs that the run used.
    pub gpu_count: Option<i64>,
    /// Output tokens per second.
    pub output_tokens_per_second: Option<i64>,
    /// Result of the tightest enforced gate on an average, without `SlowestWorkerPercent` and `OwnPastPercent` (percent; below 100 is a
    /// miss).
    pub percent_of_gate: Option<i64>,
    /// Decode speed of the slowest GPU (percent of its earlier runs in the same environment). Absent below five learned
    /// ones.
    pub percent_of_own_past: Option<i64>,
    /// Decode speed of the slowest GPU (percent of the median of the node's other GPUs).
    pub percent_of_peers: Option<i64>,
    /// At most 16 rows, the slowest of the newest run first.
    // With an owner of each field the API server stored 5.7 KB for eight GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub gpus: Vec<GpuPerformance>,
    /// Internal statistics of the node.
    #[serde(default)] // else the schema would require it
    #[schemars(schema_with = "any_object")]
    pub operator_state: Option<StatisticsText>,
    /// `PerfValidated`: True for Passed, False for Failed, Unknown for Inconclusive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Node of a `NodePerformance`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeIdentity {
    /// Uid.
    pub uid: String,
    /// Time of its creation.
    pub created_at: DateTime<Utc>,
    /// `status.nodeInfo.bootID`: another one after each boot. `None` if the kubelet has not reported it.
    pub boot_id: Option<String>,
}

/// Node with GPUs that matches the selector of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedNode {
    /// Name of the node.
    pub name: String,
    /// Label `kubernetes.io/hostname`; a node without it cannot be selected by a validation.
    pub hostname: Option<String>,
    /// Time of its creation. A run that began before may have measured another machine of this name.
    pub created_at: DateTime<Utc>,
    /// True if a validation of the policy could have GPUs of the node now.
    pub is_free: bool,
    /// True if it has fewer GPUs than a validation needs, free or not: no wait makes it free.
    pub is_too_small: bool,
    /// Another obstacle for every validation of the policy that no wait for GPUs removes.
    pub unusable: Option<Box<str>>,
}

/// Run of a `PerfValidation`.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ValidationReference {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Number of the run.
    pub run: i64,
    /// Policy that created it.
    pub policy: Option<String>,
}

/// GPU of the node.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GpuPerformance {
    /// UUID of the GPU, or of all GPUs of the worker, separated by commas.
    pub uuid: String,
    /// Mean time between two tokens of a request in the newest run with times (µs), if it measured this GPU.
    pub token_microseconds: Option<i64>,
    /// Decode speed (percent of its earlier runs in the same environment).
    pub percent_of_own_past: Option<i64>,
    /// Internal statistics. They follow the GPU to another node.
    #[serde(default)] // else the schema would require it
    #[schemars(schema_with = "any_object")]
    pub operator_state: Option<StatisticsText>,
}

/// Internal statistics as the text of a JSON object. A `Value` of ten numbers takes 1 KB, and so 40 MB for 40,000 GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticsText(Box<str>);

impl StatisticsText {
    /// Text of statistics; `None` if they have no JSON form.
    pub fn new(statistics: &impl Serialize) -> Option<Self> {
        Some(Self(serde_json::to_string(statistics).ok()?.into()))
    }

    /// Statistics of the text; `None` if they have another form.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.0).ok()
    }
}

impl Serialize for StatisticsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StatisticsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Value::deserialize(deserializer)?.to_string().into()))
    }
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
