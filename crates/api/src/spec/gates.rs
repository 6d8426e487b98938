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
    /// Unique name that status and messages show.
    #[schemars(length(max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("write a name of lower-case letters, digits and '-', such as ttft-p99"))]
    pub name: String,
    /// Metric to judge. Throughputs are in tokens/s or requests/s, times and latencies in ms, `OutputSequenceLength` in
    /// tokens, `SlowestWorkerPercent`, `OwnPastPercent`, `BaselinePercent` and `MemoryBandwidthPercent` in percent.
    pub metric: Metric,
    /// Statistic of the metric. `OutputTokenThroughput`, `RequestThroughput`, `Goodput` and metrics in percent have
    /// `Avg` only. A percentile covers successful requests only, without those that timed out.
    #[serde(default)]
    pub statistic: Statistic,
    /// Good side of the threshold. The threshold itself is good.
    pub operator: GateOperator,
    /// Threshold (quantity, in the metric's unit), compared exactly.
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::threshold())]
    pub threshold: String,
    /// Tolerance that widens the threshold to the lenient side (percent, 0 to 50).
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    pub tolerance_percent: i32,
    /// Scaling of the threshold with the number of GPUs. `None`: as written. `ByGPUShare`: × GPUs in use / GPUs of the
    /// node that are in service (or `placement.expectGPUs`, if that is more). `PerGPU`: × GPUs in use.
    #[serde(default)]
    pub scaling: Scaling,
    /// Effect of a miss. `Enforce`: the trial is a miss. `Warn`: the miss is reported only. Without a gate of mode
    /// `Enforce` the run has nothing to judge and is Skipped.
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
