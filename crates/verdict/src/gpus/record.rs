use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::prelude::Zero;
use serde::{Deserialize, Serialize};

use crate::number::{bounded, short};

/// Telemetry of the GPUs of one trial.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuRecord {
    /// Pages of the exporter that were read.
    #[serde(deserialize_with = "bounded")]
    pub pages: i64,
    /// Reasons of pages that were not read, with their counts.
    #[serde(deserialize_with = "bounded", skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, i64>,
    /// The GPUs on the pages, in order of their UUID; those of other workloads of the node among them.
    #[serde(deserialize_with = "short", skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuSummary>,
}

/// Summary of one GPU in one trial.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuSummary {
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// Its number on the node.
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// Pods of the run's own namespace that hold it, if the exporter reports them.
    #[serde(deserialize_with = "short", skip_serializing_if = "BTreeSet::is_empty")]
    pub pods: BTreeSet<String>,
    /// Pods of other namespaces that hold it.
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Zero::is_zero")]
    pub foreign_pods: i64,
    /// Readings under load, in the measured seconds. With none, what follows up to `pcieWidth` is unknown.
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Zero::is_zero")]
    pub readings: i64,
    /// Clock of the multiprocessors (MHz, mean).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<i64>,
    /// Clock of the memory (MHz, mean).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub memory_mhz: Option<i64>,
    /// Power (W, mean).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub watts: Option<i64>,
    /// Use (percent, mean).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub busy_percent: Option<i64>,
    /// Highest temperature (°C).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub celsius: Option<i64>,
    /// Most memory in use (MiB).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub used_mib: Option<i64>,
    /// Every throttle reason that was seen (NVML's bits).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub reasons: Option<i64>,
    /// Readings with a slowdown that no healthy GPU has, and the second of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowed: Option<Mark>,
    /// Time for which heat, the board's limits or reliability held the clocks down (ms), and the second of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back_ms: Option<Mark>,
    /// Best generation of the PCIe link.
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub pcie_generation: Option<i64>,
    /// Most lanes of the PCIe link.
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub pcie_width: Option<i64>,
    /// The last XID error; without a second it was there before the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xid: Option<Mark>,
    /// Double-bit ECC errors, of the trial where there is a second, else of before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub double_bit_errors: Option<Mark>,
    /// Rows replaced after uncorrectable errors during the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remapped_rows: Option<Mark>,
    /// True if a row could not be replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remap_failed: bool,
    /// Packets that PCIe sent again during the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_replays: Option<Mark>,
    /// Errors of all NVLinks during the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvlink_errors: Option<Mark>,
    /// Readings while no worker had anything to do.
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Zero::is_zero")]
    pub idle_readings: i64,
    /// Those of them that show it at work, and the second of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_busy: Option<Mark>,
    /// Highest use in those (percent).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub idle_busy_percent: Option<i64>,
}

/// A number with the second since the runner's start at which it was first seen.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The count, the time (ms) or the number of an XID error.
    #[serde(deserialize_with = "bounded")]
    pub value: i64,
    /// When; absent: before the trial.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}
