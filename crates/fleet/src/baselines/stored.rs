//! Revisions as a status stores them, and as statistics use them.

use chrono::{DateTime, Utc};
use perfval_api::fleet::{BaselineMetric, BaselineMetricName, BaselineRevision, BaselineSpread};
use perfval_api::quantity;

use crate::baseline::{Baseline, SpeedNorm};

/// Revision of a learned baseline.
pub(super) fn revision(learned: &Baseline, number: i64, now: DateTime<Utc>) -> BaselineRevision {
    let norm = &learned.norm;
    let stored = BaselineMetric {
        name: BaselineMetricName::DecodeSpeed,
        centre: norm.centre.to_string(),
        spread: norm.node_percent.map(|node| BaselineSpread {
            node_percent: format!("{node:.2}"),
        }),
        nodes: norm.nodes.and_then(count),
        gpus: count(learned.gpus),
    };
    BaselineRevision {
        revision: number,
        created_at: now,
        nodes: count(learned.nodes),
        gpus: count(learned.gpus),
        excluded_nodes: i64::try_from(learned.excluded).ok(),
        metrics: vec![stored],
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

/// Norm of the stored decode speed. A number that is none, or a centre that is not above 0, makes no norm. Without nodes a
/// spread of 0 is unknown: with it every deviation would be a loss.
pub(super) fn norm(metrics: &[BaselineMetric]) -> Option<SpeedNorm> {
    let metric = metrics
        .iter()
        .find(|metric| metric.name == BaselineMetricName::DecodeSpeed)?;
    let spread = metric.spread.as_ref();
    Some(SpeedNorm {
        centre: number(&metric.centre).filter(|centre| *centre > 0.0)?,
        node_percent: spread
            .and_then(|spread| number(&spread.node_percent))
            .filter(|percent| *percent > 0.0 || metric.nodes.is_some()),
        nodes: metric.nodes.and_then(|nodes| usize::try_from(nodes).ok()),
    })
}

fn number(text: &str) -> Option<f64> {
    quantity::parse(text)?.to_string().parse().ok()
}

/// A count of nothing is none.
fn count(number: usize) -> Option<i64> {
    i64::try_from(number).ok().filter(|number| *number > 0)
}
