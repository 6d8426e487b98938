#![allow(clippy::duplicated_attributes, reason = "each printer column has a type")]

mod status;
mod template;

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::defaults::number;
use crate::rules;

pub use status::{
    MOST_OUTLIERS, Outlier, OutlierConfidence, OutlierReason, PerfValidationPolicyStatus, PolicyEnvironment,
    PolicyNodes,
};
pub use template::{TemplateMetadata, ValidationTemplate};

/// The operator creates a `PerfValidation` for each selected node whose verdict is missing or too old.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "perfvalidation.dev",
    version = "v1alpha1",
    kind = "PerfValidationPolicy",
    plural = "perfvalidationpolicies",
    status = "PerfValidationPolicyStatus",
    derive = "PartialEq",
    doc = "A fresh performance verdict for every selected node: the operator creates a PerfValidation for each node whose verdict \
           is missing or too old.",
    shortname = "perfpol",
    category = "perf",
    printcolumn(
        name = "NODES",
        type_ = "integer",
        json_path = ".status.nodes.selected",
        description = "Selected nodes with GPUs"
    ),
    printcolumn(
        name = "FRESH",
        type_ = "integer",
        json_path = ".status.freshPercent",
        description = "Nodes whose verdict is not older than freshness allows (percent)"
    ),
    printcolumn(
        name = "FAILED",
        type_ = "integer",
        json_path = ".status.nodes.failed",
        description = "Nodes whose newest verdict is Failed"
    ),
    printcolumn(
        name = "RUNNING",
        type_ = "integer",
        json_path = ".status.nodes.running",
        description = "Nodes that are being validated"
    ),
    printcolumn(
        name = "READY",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "REASON",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    ),
    printcolumn(
        name = "MESSAGE",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name: write at most 63 characters, because it is the value of a label of the validations")
)]
#[serde(rename_all = "camelCase")]
pub struct PerfValidationPolicySpec {
    /// `true` starts no new validation. Active ones continue.
    #[serde(default)]
    pub suspend: bool,
    /// Labels of the nodes. Nodes without GPUs do not count. Of two policies that select a node, the older one has it.
    #[x_kube(validation = Rule::new("!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])")
        .message("write operator In, NotIn, Exists or DoesNotExist"))]
    pub node_selector: LabelSelector,
    /// Age at which a verdict is stale.
    #[serde(default)]
    pub freshness: Freshness,
    /// Times at which all nodes are due. Absent: only `freshness` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// IANA time zone of cron texts, such as `Europe/Berlin`.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
    /// Limits on validations. One starts only if every budget for its reason allows it.
    #[schemars(length(min = 1, max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = Rule::new("self.exists(budget, !has(budget.window))")
        .message("write one budget without a window: outside of all windows nothing would be limited"))]
    pub budgets: Vec<Budget>,
    /// Order in which due nodes are validated.
    #[serde(default)]
    pub order: NodeOrder,
    /// Validation; the operator adds the node to its placement.
    pub validation_template: ValidationTemplate,
    /// Limits below which no node is reported as slow.
    #[serde(default)]
    pub comparison: ComparisonRules,
    /// Effect of a verdict on the node.
    #[serde(default)]
    pub node_feedback: NodeFeedback,
    /// Finished validations to keep for each node.
    #[serde(default)]
    pub validation_history: ValidationHistory,
}

/// Age of verdicts.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Freshness {
    /// Age at which a verdict is stale and the node is due (Go duration, 1h–8760h).
    #[serde(default = "default_max_age")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::long_duration())]
    pub max_age: String,
    /// Time before which verdicts are stale (UTC, such as `2026-11-25T12:00:00Z`). A future time has no effect yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // The API server takes offsets that chrono refuses.
    #[schemars(extend("pattern" = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"))]
    pub measured_after: Option<DateTime<Utc>>,
}

fn default_max_age() -> String {
    "168h".to_owned()
}

fn default_time_zone() -> String {
    "UTC".to_owned()
}

/// Times at which all nodes are due.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Times in cron's five fields, such as `0 1 * * *`. Nodes with an older verdict are then due.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron())]
    pub cron: String,
    /// Time after which no validation of that time starts (Go duration, 1m–8760h); the other nodes wait for the next.
    #[serde(default = "default_starting_deadline")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::window())]
    pub starting_deadline: String,
}

fn default_starting_deadline() -> String {
    "24h".to_owned()
}

/// Times in which a budget applies.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BudgetWindow {
    /// Start times in cron's five fields, such as `0 8 * * MON-FRI`.
    #[schemars(length(max = 128))]
    #[x_kube(validation = rules::cron())]
    pub cron: String,
    /// Length (Go duration, 1m–8760h).
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::window())]
    pub duration: String,
}

/// Limit on the validations of a policy. At least one of `nodes` and `gpuMinutesPerDay` is set.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.nodes) || has(self.gpuMinutesPerDay)")
    .message("a budget needs a limit: write nodes, such as 2 or \"5%\", or gpuMinutesPerDay"))]
pub struct Budget {
    /// Nodes under validation at once: a number, or a percentage of the selected nodes such as `"5%"`, at least one if
    /// above zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_percent")]
    pub nodes: Option<IntOrString>,
    /// GPU minutes of a day (UTC) after which no validation starts (0–100000000). Active ones reserve what finished
    /// ones usually used. Until one has finished, one starts at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000_000))]
    pub gpu_minutes_per_day: Option<i64>,
    /// Reasons to which this budget applies. None: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Vec<DueReason>,
    /// Times in which this budget applies. Absent: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<BudgetWindow>,
}

fn count_or_percent(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 0.0,
        "maximum": 100_000.0,
        "maxLength": 6,
        "pattern": "^(0|[1-9][0-9]{0,4}|100000|(100|[1-9]?[0-9])%)$",
    })
}

/// Reason for which a node needs a validation. Nodes that are due for an earlier one of these come first.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, EnumString, IntoStaticStr)]
pub enum DueReason {
    /// No run has given the node a verdict.
    NeverMeasured,
    /// The newest run is slow in a comparison. A run in a new deployment confirms the loss or not.
    Confirmation,
    /// The verdict is older than `freshness.maxAge`, or than `freshness.measuredAfter`.
    Stale,
    /// The verdict is older than the last time of `schedule`.
    Scheduled,
}

/// Order in which due nodes are validated. Nodes without a verdict come first, then confirmations.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeOrder {
    /// Age of the verdict, weighted with signs of trouble: a verdict other than Passed, or a slow GPU.
    #[default]
    RiskAndAge,
    /// Age of the verdict alone.
    Age,
}

/// Limits of comparisons between GPUs and nodes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonRules {
    /// Limits for a report in `status.outliers`.
    #[serde(default)]
    pub report: ReportRule,
    /// Limits for the confidence `Actionable`.
    #[serde(default)]
    pub act: ActRule,
    /// Comparison with other nodes.
    #[serde(default)]
    pub peers: PeerRule,
}

/// Limits for a report.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ReportRule {
    /// Loss below which no node is reported as slow (1–50 percent).
    #[serde(default = "number::<2>")]
    #[schemars(range(min = 1, max = 50))]
    pub minimum_effect_percent: i32,
    /// Target for the share of wrong reports (1–50 percent).
    #[serde(default = "number::<5>")]
    #[schemars(range(min = 1, max = 50))]
    pub false_discovery_percent: i32,
}

/// Limits for an action on a node.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ActRule {
    /// Loss below which no reported node is Actionable (1–50 percent).
    #[serde(default = "number::<4>")]
    #[schemars(range(min = 1, max = 50))]
    pub minimum_effect_percent: i32,
    /// Target for the share of wrong Actionable outliers (1–50 percent).
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 50))]
    pub false_discovery_percent: i32,
}

/// Limits of the comparison with other nodes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PeerRule {
    /// Minimum number of nodes for a comparison in one environment (3–1000).
    #[serde(default = "number::<3>")]
    #[schemars(range(min = 3, max = 1000))]
    pub min_nodes: i32,
}

/// Effect of a verdict on the node.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeFeedback {
    /// Mode. `Observe`: the operator changes no node.
    #[serde(default)]
    pub mode: FeedbackMode,
}

/// Mode of the feedback to nodes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedbackMode {
    /// The operator reports and changes no node.
    #[default]
    Observe,
}

/// Number of finished validations to keep for each node. The newest one always stays.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ValidationHistory {
    /// Validations with a verdict other than Passed (1–20).
    #[serde(default = "number::<3>")]
    #[schemars(range(min = 1, max = 20))]
    pub failed: i32,
    /// Validations with the verdict Passed (0–20).
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 0, max = 20))]
    pub passed: i32,
}
