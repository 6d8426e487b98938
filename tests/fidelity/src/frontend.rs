//! The part of the page on frontends that lack CPU.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perfval_api::{Metric, Statistic};
use perfval_verdict::frame::Outcome;
use rust_decimal::prelude::ToPrimitive as _;

use crate::fault::Fault;
use crate::rejudged::{Group, Seen};

/// How late event loops woke, and what that cost.
pub(super) fn table(page: &mut String, groups: &[Group<'_>]) {
    page.push_str(
        "\n## Frontends without CPU\n\n\
         *Late*: how late the frontend's event loop wakes from a sleep of 10 ms on average, by its own metrics.\n\
         *Throughput*: of the median of the healthy trials of the same setting. On the lab the limit of the frontend's container is cut to\n\
         3 % of a CPU under load; elsewhere it has one CPU, which it shares with processes that never rest. Trials from before 2026-11-23\n\
         have no such reading.\n\n\
         | setting | router | fault | trials | late | throughput | named |\n|---|---|---|---|---|---|---|\n",
    );
    for group in groups {
        let mut rows: BTreeMap<(Fault, Option<u32>), Vec<&Seen<'_>>> = BTreeMap::new();
        for trial in group.trials.iter().filter(|seen| late_ms(seen).is_some()) {
            let key = (trial.run.fault, trial.run.conditions.rivals);
            rows.entry(key).or_default().push(trial);
        }
        let healthy = group.calibration.map(|healthy| healthy.throughput);
        for trials in rows.values() {
            let late: Vec<f64> = trials.iter().filter_map(|seen| late_ms(seen)).collect();
            let part = |seen: &&Seen<'_>| {
                let throughput = seen.value(Metric::OutputTokenThroughput, Statistic::Avg)?;
                Some(throughput / healthy? * 100.0)
            };
            let parts: Vec<f64> = trials.iter().filter_map(part).collect();
            let named = |seen: &&&Seen<'_>| seen.causes.iter().any(|cause| cause == "FrontendBound");
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} ms | {} % | {} |",
                group.setting,
                group.setting.router().flag(),
                trials[0].run.what(),
                trials.len(),
                range(&late, 1),
                range(&parts, 0),
                trials.iter().filter(named).count(),
            );
        }
    }
}

fn late_ms(seen: &Seen<'_>) -> Option<f64> {
    match &seen.trial.record.outcome {
        Outcome::Report(report) => report.frontend.loop_delay_ms?.to_f64(),
        Outcome::Failure(_) => None,
    }
}

/// `1.0 to 1.3`, or one number.
fn range(values: &[f64], digits: usize) -> String {
    let ends = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end));
    let [low, high] = ends.map(|end| end.map_or("–".to_owned(), |end| format!("{end:.digits$}")));
    if low == high { low } else { format!("{low} to {high}") }
}
