//! Frontends that lack CPU.

use perfval_api::{Metric, Statistic};
use perfval_verdict::frame::Outcome;
use rust_decimal::prelude::ToPrimitive as _;

use crate::fault::Fault;
use crate::rejudged::{Group, Seen};

/// Throughput of trials whose frontend had to share its CPU, in percent of the median of healthy trials of the same setting.
pub(super) fn throughput_on_shared_cpu(groups: &[Group<'_>]) -> String {
    let mut parts: Vec<f64> = Vec::new();
    for group in groups {
        let Some(healthy) = group.calibration else { continue };
        for seen in group
            .trials
            .iter()
            .filter(|seen| seen.run.fault == Fault::CrowdedFrontend)
        {
            let throughput = seen.value(Metric::OutputTokenThroughput, Statistic::Avg);
            parts.extend(throughput.map(|throughput| throughput / healthy.throughput * 100.0));
        }
    }
    range(&parts, 0)
}

/// Mean delay of the frontend's event loop (ms).
pub(super) fn late_ms(seen: &Seen<'_>) -> Option<f64> {
    match &seen.trial.record.outcome {
        Outcome::Report(report) => report.frontend.loop_delay_ms?.to_f64(),
        Outcome::Failure(_) => None,
    }
}

/// `1.0 to 1.3`, or one number.
pub(super) fn range(values: &[f64], digits: usize) -> String {
    let ends = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end));
    let [low, high] = ends.map(|end| end.map_or("–".to_owned(), |end| format!("{end:.digits$}")));
    if low == high { low } else { format!("{low} to {high}") }
}
