//! A trial's numbers as the status shows them.

use perfval_api::{Metric, Metrics, Statistic, WorkerLoad};

use crate::aiperf::Report;
use crate::diagnosis::peers::Worker;
use crate::diagnosis::speed::SpeedSpread;
use crate::gate::show;

/// Workers that status shows; the largest nodes have 16 GPUs.
const WORKERS: usize = 16;

/// The workers as status shows them, the slowest first.
pub(super) fn shown(workers: &[Worker<'_>]) -> Vec<WorkerLoad> {
    let mut workers = workers.to_vec();
    workers.sort_by_key(|worker| worker.load.rate_per_second);
    workers.into_iter().map(load).take(WORKERS).collect()
}

fn load(worker: Worker<'_>) -> WorkerLoad {
    let (load, positive) = (worker.load, |n: i64| Some(n).filter(|n| *n > 0));
    let sampled = load.samples > 0;
    WorkerLoad {
        name: worker.name.to_owned(),
        served: sampled.then_some(load.served),
        requests_per_second: sampled.then(|| show(load.rate_per_second)),
        mean_in_flight: sampled.then(|| show(load.mean_in_flight)),
        seconds_per_request: load.seconds_per_request.map(show),
        tokens_per_second: load.tokens_per_second().map(show),
        token_ms: load.speed.as_ref().map(|speed| show(speed.token_ms)),
        batch: load.speed.as_ref().map(|speed| show(speed.batch)),
        percent_of_peers: load.speed.as_ref().and_then(|speed| Some(speed.peers?.shown(1))),
        still_seconds: positive(load.still_seconds.max(load.frozen_seconds)),
        timeouts: positive(load.timeouts),
        ..WorkerLoad::default()
    }
}

/// The headline numbers.
pub(super) fn headline(report: &Report, spread: Option<SpeedSpread>) -> Metrics {
    let value = |metric, statistic| report.value(metric, statistic).map(show);
    Metrics {
        output_token_throughput: value(Metric::OutputTokenThroughput, Statistic::Avg),
        ttft_p50_ms: value(Metric::TimeToFirstToken, Statistic::P50),
        ttft_p90_ms: value(Metric::TimeToFirstToken, Statistic::P90),
        ttft_p99_ms: value(Metric::TimeToFirstToken, Statistic::P99),
        ttft_max_ms: value(Metric::TimeToFirstToken, Statistic::Max),
        request_error_percent: Some(show(report.error_percent())),
        concurrency: Some(report.concurrency),
        slowest_worker_percent: spread.map(|spread| show(spread.slowest)),
        detectable_slowdown_percent: spread.and_then(|spread| spread.detectable).map(show),
    }
}
