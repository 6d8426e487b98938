use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{GateOperator, Metric, Statistic, rules};

/// Requirement on one statistic of one metric.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::whole_trial_has_an_average_only(),
    validation = rules::good_side(GateOperator::AtLeast, "more"),
    validation = rules::good_side(GateOperator::AtMost, "less"),
    validation = rules::only_rates_scale(),
    validation = rules::percent_is_at_most_100(),
    validation = rules::upper_limit_of_the_smallest(),
)]
pub struct Gate {
    /// Unique name.
    #[schemars(length(max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("write a name of lower-case letters, digits and '-', such as ttft-p99"))]
    pub name: String,
    /// Metric in tokens/s: `OutputTokenThroughput` (deployment), `OutputTokenThroughputPerUser` (request); in requests/s:
    /// `RequestThroughput`, `Goodput` (needs `benchmark.goodput`); in ms: `TimeToFirstToken`, `TimeToSecondToken` (from
    /// the first), `InterTokenLatency`, `RequestLatency`; in tokens: `OutputSequenceLength`; in percent (see
    /// docs/verdict.md): `SlowestWorkerPercent`, `OwnPastPercent`, `BaselinePercent`, `MemoryBandwidthPercent`.
    pub metric: Metric,
    /// Statistic. `OutputTokenThroughput`, `RequestThroughput`, `Goodput` and metrics in percent have `Avg` only.
    /// Percentiles cover successful requests only.
    #[serde(default)]
    pub statistic: Statistic,
    /// Good side of the threshold, which itself is good.
    pub operator: GateOperator,
    /// Threshold (quantity, in the metric's unit).
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::threshold())]
    pub threshold: String,
    /// Tolerance of the threshold (percent, 0–50).
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    pub tolerance_percent: i32,
    /// Scaling of the threshold. `None`: as written. `ByGPUShare`: × GPUs in use / GPUs of the node in service (or
    /// `placement.expectGPUs`, if more). `PerGPU`: × GPUs in use.
    #[serde(default)]
    pub scaling: Scaling,
    /// Effect of a miss. `Enforce`: the trial is a miss. `Warn`: only a report. Without an `Enforce` gate the run is
    /// Skipped.
    #[serde(default)]
    pub mode: GateMode,
}

/// Scaling of a threshold with the number of GPUs in use.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// The threshold is used as written.
    #[default]
    None,
    /// × GPUs in use / GPUs of the node.
    #[serde(rename = "ByGPUShare")]
    ByGpuShare,
    /// × GPUs in use: the threshold is per GPU.
    #[serde(rename = "PerGPU")]
    PerGpu,
}

/// Effect of a missed gate.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GateMode {
    /// A miss makes the trial a miss.
    #[default]
    Enforce,
    /// A miss is reported only.
    Warn,
}
