//! Revisions as a status stores them, and as statistics use them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use perfval_api::fleet::{BaselineMetric, BaselineMetricName, BaselineRevision, BaselineSpread};
use perfval_api::quantity;

use crate::baseline::{Baseline, Norm};
use crate::metric::FleetMetric;

/// Revision of a learned baseline.
pub(super) fn revision(learned: &Baseline, number: i64, now: DateTime<Utc>) -> BaselineRevision {
    let stored = |(metric, norm): (&FleetMetric, &Norm)| {
        let percent = |value: f64| format!("{value:.2}");
        Some(BaselineMetric {
            name: stored_name(*metric)?,
            centre: norm.centre.to_string(),
            spread: norm.node_percent.map(|node| BaselineSpread {
                node_percent: percent(node),
                gpu_percent: norm.gpu_percent.map(percent),
            }),
            nodes: norm.nodes.and_then(count),
            gpus: norm.gpus.and_then(count),
        })
    };
    BaselineRevision {
        revision: number,
        created_at: now,
        nodes: count(learned.nodes),
        gpus: count(learned.gpus),
        excluded_nodes: i64::try_from(learned.excluded).ok(),
        metrics: learned.metrics.iter().filter_map(stored).collect(),
    }
}

/// Revision of provided numbers.
pub(super) fn provided(metrics: &[BaselineMetric], number: i64, now: DateTime<Utc>) -> BaselineRevision {
    BaselineRevision {
        revision: number,
        created_at: now,
        nodes: metrics.iter().filter_map(|metric| metric.nodes).max(),
        gpus: metrics.iter().filter_map(|metric| metric.gpus).max(),
        excluded_nodes: None,
        metrics: metrics.to_vec(),
    }
}

/// Norms of stored metrics. A number that is none, or a centre that is not above 0, makes no norm.
pub(super) fn norms(metrics: &[BaselineMetric]) -> BTreeMap<FleetMetric, Norm> {
    let norm = |metric: &BaselineMetric| {
        let spread = metric.spread.as_ref();
        let gpu = spread.and_then(|spread| spread.gpu_percent.as_deref());
        let norm = Norm {
            centre: number(&metric.centre).filter(|centre| *centre > 0.0)?,
            node_percent: spread.and_then(|spread| number(&spread.node_percent)),
            gpu_percent: gpu.and_then(number),
            nodes: metric.nodes.and_then(|nodes| usize::try_from(nodes).ok()),
            gpus: metric.gpus.and_then(|gpus| usize::try_from(gpus).ok()),
        };
        Some((statistics_name(metric.name), norm))
    };
    metrics.iter().filter_map(norm).collect()
}

fn number(text: &str) -> Option<f64> {
    quantity::parse(text)?.to_string().parse().ok()
}

/// A count of nothing is none.
fn count(number: usize) -> Option<i64> {
    i64::try_from(number).ok().filter(|number| *number > 0)
}

const fn stored_name(metric: FleetMetric) -> Option<BaselineMetricName> {
    match metric {
        FleetMetric::DecodeSpeed => Some(BaselineMetricName::DecodeSpeed),
        FleetMetric::PrefillSpeed | FleetMetric::Throughput => None,
    }
}

const fn statistics_name(metric: BaselineMetricName) -> FleetMetric {
    match metric {
        BaselineMetricName::DecodeSpeed => FleetMetric::DecodeSpeed,
    }
}
