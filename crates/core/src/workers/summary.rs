use std::collections::BTreeSet;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::{Reading, Silence, WorkerSeries};

/// What one worker did in one trial, warm-up included.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSummary {
    /// IP address, the pod's.
    pub address: String,
    /// The worker's id in its own metrics (hex).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Samples with counters. With none, the numbers below are not zero but unknown.
    pub samples: i64,
    /// Samples without an answer in time.
    pub timeouts: i64,
    /// Samples refused or not understood.
    pub failures: i64,
    /// Times its counters began anew: its process restarted.
    pub resets: i64,
    /// Requests it finished.
    pub served: i64,
    /// Most requests it had in flight in any sample.
    pub peak_in_flight: i64,
    /// Requests it had in flight on average while any worker was busy.
    pub mean_in_flight: Decimal,
    /// Requests it finished per second while any worker was busy; the same span for all workers, so that rates compare.
    pub rate_per_second: Decimal,
    /// Longest span in which it had requests and none of them moved (s): no token where the engine counts tokens, else
    /// no finished request, which long answers in step can show too.
    pub zero_rate_seconds: i64,
    /// Whether `zero_rate_seconds` is about tokens.
    pub counts_tokens: bool,
}

/// Sums up what the workers did, in order of their address.
pub fn summarize(series: &[WorkerSeries]) -> Vec<WorkerSummary> {
    let busy = busy_seconds(series);
    let span = match (busy.first(), busy.last()) {
        // A burst within one sample still took up to a second.
        (Some(first), Some(last)) => Decimal::from((last - first).max(1)),
        _ => Decimal::ONE,
    };
    let mut summaries: Vec<_> = series.iter().map(|s| summary(s, &busy, span)).collect();
    summaries.sort_by(|a, b| a.address.cmp(&b.address));
    summaries
}

/// Seconds in which any worker had requests or finished some.
fn busy_seconds(series: &[WorkerSeries]) -> BTreeSet<i64> {
    let mut busy = BTreeSet::new();
    for worker in series {
        let mut before = None;
        for (second, reading) in worker.readings() {
            let moved = before.is_some_and(|b: Reading| b.finished != reading.finished);
            if reading.in_flight > 0 || moved {
                busy.insert(second);
            }
            before = Some(reading);
        }
    }
    busy
}

fn summary(series: &WorkerSeries, busy: &BTreeSet<i64>, span: Decimal) -> WorkerSummary {
    let mut summary = WorkerSummary {
        address: series.address.clone(),
        worker_id: series.worker_id.clone(),
        timeouts: series.silences(Silence::TimedOut),
        failures: series.silences(Silence::Failed),
        ..WorkerSummary::default()
    };
    let (mut before, mut still_since): (Option<Reading>, Option<i64>) = (None, None);
    let (mut in_flight, mut busy_samples) = (0, 0);

    for (second, now) in series.readings() {
        summary.samples += 1;
        summary.peak_in_flight = summary.peak_in_flight.max(now.in_flight);
        summary.counts_tokens = now.tokens.is_some();
        if busy.contains(&second) {
            in_flight += now.in_flight;
            busy_samples += 1;
        }
        if let Some(before) = before {
            // A counter that fell belongs to a new process, which counted from zero.
            let restarted = now.finished < before.finished || now.started < before.started;
            summary.resets += i64::from(restarted);
            summary.served += now.finished - if restarted { 0 } else { before.finished };
            let still = before.in_flight > 0 && now.in_flight > 0 && progress(before) == progress(now);
            still_since = still_since.filter(|_| still);
        }
        let since = *still_since.get_or_insert(second);
        summary.zero_rate_seconds = summary.zero_rate_seconds.max(second - since);
        before = Some(now);
    }
    summary.mean_in_flight = (Decimal::from(in_flight) / Decimal::from(busy_samples.max(1))).round_dp(2);
    summary.rate_per_second = (Decimal::from(summary.served) / span).round_dp(3);
    summary
}

fn progress(reading: Reading) -> i64 {
    reading.tokens.unwrap_or(reading.finished)
}
