use std::collections::BTreeSet;

use rust_decimal::prelude::Zero;
use serde::{Deserialize, Serialize};

use super::{Field, GpuReading};
use crate::number::{bounded, short};

/// One GPU during one trial.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GpuSeries {
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// Its number on the node.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// Pods of the run's own namespace that hold it, as the last page lists them.
    #[serde(default, deserialize_with = "short", skip_serializing_if = "BTreeSet::is_empty")]
    pub pods: BTreeSet<String>,
    /// Pods of other namespaces that hold it; they are counted, but their names are not recorded.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Zero::is_zero")]
    pub foreign_pods: i64,
    /// In order of time; a page equal to the one before has none.
    pub samples: Vec<GpuSample>,
}

/// One look at one GPU: `[second, [values]]` as JSON.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSample(
    /// Seconds since the runner started, up to a week.
    #[serde(deserialize_with = "crate::number::second")]
    pub i64,
    /// Content of the page.
    pub GpuReading,
);

impl GpuSeries {
    /// Merges neighbours until at most `limit` samples are left. Of each group the last values, every throttle reason and
    /// any XID survive.
    pub fn thin(&mut self, limit: usize) {
        let group = self.samples.len().div_ceil(limit.max(1)).max(1);
        self.samples = self.samples.chunks(group).filter_map(merge).collect();
    }
}

fn merge(group: &[GpuSample]) -> Option<GpuSample> {
    let mut merged = *group.last()?;
    let values = |field| group.iter().filter_map(move |sample| sample.1.get(field));
    if let Some(reasons) = values(Field::Reasons).reduce(|a, b| a | b) {
        merged.1.set(Field::Reasons, reasons);
    }
    if let Some(xid) = values(Field::Xid).rev().find(|xid| *xid != 0) {
        merged.1.set(Field::Xid, xid);
    }
    Some(merged)
}
