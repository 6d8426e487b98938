#![allow(clippy::duplicated_attributes, reason = "each printer column has a type")]

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use strum::IntoStaticStr;

use crate::rules;

/// Environment, source and approval.
#[skip_serializing_none]
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "perfvalidation.dev",
    version = "v1alpha1",
    kind = "PerfBaseline",
    plural = "perfbaselines",
    status = "PerfBaselineStatus",
    derive = "PartialEq",
    doc = "Normal speed of nodes with one environment. The operator learns it from its nodes, or you provide it. It counts once a \
           person has approved a revision of it.",
    shortname = "perfbase",
    category = "perf",
    printcolumn(name = "SOURCE", type_ = "string", json_path = ".spec.source"),
    printcolumn(
        name = "NODES",
        type_ = "integer",
        json_path = ".status.newest.nodes",
        description = "Nodes behind the newest revision"
    ),
    printcolumn(
        name = "REVISION",
        type_ = "integer",
        json_path = ".status.newest.revision",
        description = "Newest revision"
    ),
    printcolumn(
        name = "APPROVED",
        type_ = "integer",
        json_path = ".status.approved.revision",
        description = "Last approved"
    ),
    printcolumn(
        name = "SHIFTED",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Shifted")].status"#,
        description = "True if the nodes are now faster or slower than the approved revision"
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "PRODUCT",
        type_ = "string",
        json_path = ".spec.environment.product",
        priority = 1
    ),
    printcolumn(
        name = "ENVIRONMENT",
        type_ = "string",
        json_path = ".spec.environment.digest",
        priority = 1
    ),
    printcolumn(
        name = "MESSAGE",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Approved")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.source != 'Provided' || has(self.metrics)")
        .message("a provided baseline needs numbers: write spec.metrics, such as a DecodeSpeed with a centre"),
    validation = Rule::new("self.source != 'Learned' || !has(self.metrics)")
        .message("the operator learns these numbers: leave spec.metrics out, or write source Provided")
)]
pub struct PerfBaselineSpec {
    /// Environment of the runs to which the baseline applies.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("the environment of a baseline does not change: create another PerfBaseline"))]
    pub environment: BaselineEnvironment,
    /// Origin of the numbers.
    pub source: BaselineSource,
    /// Numbers of a provided baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub metrics: Vec<BaselineMetric>,
    /// Approved revision, written by `kubectl perfval approve`, never by the operator. Absent: not used.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub approved_revision: Option<i64>,
}

/// Environment of runs that can be compared.
#[skip_serializing_none]
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BaselineEnvironment {
    /// Digest, as in `status.environment` of a `NodePerformance`, of model, revision, image, settings, GPU product and
    /// number, driver, Dynamo and AIPerf.
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-f]{12}$')")
        .message("write the 12 hex digits of status.environment of a NodePerformance"))]
    pub digest: String,
    /// GPU product, for readers.
    #[schemars(length(max = 253))]
    pub product: Option<String>,
    /// GPUs of a run, for readers.
    #[schemars(range(min = 1, max = 1024))]
    pub gpu_count: Option<i64>,
}

/// Origin of a baseline's numbers.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineSource {
    /// The operator learns them from the newest run of each node.
    Learned,
    /// A person writes them in `spec.metrics`: from another cluster, a contract or a calculation.
    Provided,
}

/// Metric of a baseline.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, IntoStaticStr)]
pub enum BaselineMetricName {
    /// Tokens per second of one request, by the engine's time from one token to the next. One value per GPU.
    DecodeSpeed,
}

/// Normal values of one metric.
#[skip_serializing_none]
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BaselineMetric {
    /// Metric.
    pub name: BaselineMetricName,
    /// Value of a healthy GPU (quantity, in the metric's unit): the Hodges–Lehmann centre.
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::threshold())]
    pub centre: String,
    /// Spread of healthy nodes. Absent: the operator assumes one for the product.
    pub spread: Option<BaselineSpread>,
    /// Nodes behind the numbers; few count less. Absent: they count as exact.
    #[schemars(range(min = 1, max = 100_000))]
    pub nodes: Option<i64>,
    /// GPUs of these nodes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub gpus: Option<i64>,
}

/// Standard deviation of healthy nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BaselineSpread {
    /// Standard deviation between healthy nodes (quantity, percent of the centre).
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::percent())]
    pub node_percent: String,
}

/// Revisions of the baseline. A revision never changes.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PerfBaselineStatus {
    /// Spec generation of this status; -1: not read yet.
    pub observed_generation: i64,
    /// Newest revision.
    pub newest: Option<BaselineRevision>,
    /// Last approved revision, in use while `Approved` is True.
    pub approved: Option<BaselineRevision>,
    /// `Learned`: there is a revision. `Approved`: an approved one is in use. `Shifted`: the nodes are now faster or
    /// slower than that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Revision of a baseline.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BaselineRevision {
    /// Number, from 1.
    pub revision: i64,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Nodes behind it; absent if a person provided no number.
    pub nodes: Option<i64>,
    /// GPUs of these nodes.
    pub gpus: Option<i64>,
    /// Nodes left out: not Passed, first runs, or far off.
    pub excluded_nodes: Option<i64>,
    /// Metrics, as in `spec.metrics[]`.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub metrics: Vec<BaselineMetric>,
}
