//! The part of the page on frontends that lack CPU.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perfval_api::{Metric, Statistic};
use perfval_verdict::frame::Outcome;
use rust_decimal::prelude::ToPrimitive as _;

use crate::fault::Fault;
use crate::rejudged::{Group, Seen};

/// Faults of a frontend, and none; faults of workers left its event loop alone.
const SHOWN: [Fault; 3] = [Fault::Healthy, Fault::FrontendBound, Fault::CrowdedFrontend];

/// How late event loops woke, and what that cost.
pub(super) fn table(page: &mut String, groups: &[Group<'_>]) {
    page.push_str(
        "\n## Frontends without CPU\n\n\
         *Late*: mean delay with which the frontend's event loop wakes from a sleep of 10 ms (since 2026-11-23). *Throughput*: percent of the median\n\
         of healthy trials of the same setting. A throttled frontend has 3 % of a CPU under load. A shared CPU has 0 to 8 other busy processes.\n\n\
         | fault | trials | late | throughput | named |\n|---|---|---|---|---|\n",
    );
    let is_shown = |seen: &&Seen<'_>| SHOWN.contains(&seen.run.fault) && late_ms(seen).is_some();
    let mut rows: BTreeMap<Fault, Vec<(&Seen<'_>, Option<f64>)>> = BTreeMap::new();
    for group in groups {
        let healthy = group.calibration.map(|healthy| healthy.throughput);
        for trial in group.trials.iter().filter(is_shown) {
            rows.entry(trial.run.fault).or_default().push((trial, healthy));
        }
    }
    for (fault, trials) in rows {
        let late: Vec<f64> = trials.iter().filter_map(|(seen, _)| late_ms(seen)).collect();
        let part = |(seen, healthy): &(&Seen<'_>, Option<f64>)| {
            let throughput = seen.value(Metric::OutputTokenThroughput, Statistic::Avg)?;
            Some(throughput / (*healthy)? * 100.0)
        };
        let parts: Vec<f64> = trials.iter().filter_map(part).collect();
        let named = trials
            .iter()
            .filter(|(seen, _)| seen.causes.iter().any(|cause| cause == "FrontendBound"));
        let _ = writeln!(
            page,
            "| {} | {} | {} ms | {} % | {} |",
            fault.title(),
            trials.len(),
            range(&late, 1),
            range(&parts, 0),
            named.count(),
        );
    }
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
