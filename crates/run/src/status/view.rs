//! Fields of the status that follow from the operator's state: whole numbers for people and other programs.

use perfval_api::{
    EarlierRun, Environment, EnvironmentStatus, HistoryEntry, Metrics, MetricsStatus, PerfValidationStatus,
    RelativeSpeed, Speed, TrialState, TrialStatus, Verdict, WorkerPod, WorkerStatus, quantity,
};
use rust_decimal::prelude::ToPrimitive as _;

/// Trials that are published; a run of two straight invalid trials ends, so that few runs have more.
const TRIALS: usize = 16;

/// Computes the fields that follow from the operator's state.
pub fn publish(status: &mut PerfValidationStatus) {
    let state = &status.state;
    let has_passed = status.verdict == Some(Verdict::Passed);
    let loss = state.detectable_loss_percent.as_deref().filter(|_| has_passed);
    status.metrics = state.metrics.as_ref().map(|metrics| metrics_of(metrics, loss));
    let first = state.trials.len().saturating_sub(TRIALS);
    status.trials = state.trials[first..].iter().map(trial).collect();
    status.history = state.history.iter().map(earlier).collect();
    status.environment = state.environment.as_ref().map(environment);
    status.progress = state.progress.as_ref().map(|exact| exact.shown.clone());
    status.workers = workers(status);
}

/// The nearest whole number of a decimal text.
fn whole(text: &str) -> Option<i64> {
    quantity::parse(text.trim_start_matches('+'))?.round().to_i64()
}

fn known(text: Option<&String>) -> Option<i64> {
    whole(text?)
}

/// The next larger whole number: an interval never looks smaller than it is.
fn at_least(text: &str) -> Option<i64> {
    quantity::parse(text)?.ceil().to_i64()
}

fn metrics_of(exact: &Metrics, loss: Option<&str>) -> MetricsStatus {
    MetricsStatus {
        output_tokens_per_second: known(exact.output_token_throughput.as_ref()),
        ttft_p50_milliseconds: known(exact.ttft_p50_ms.as_ref()),
        ttft_p99_milliseconds: known(exact.ttft_p99_ms.as_ref()),
        slowest_worker_percent: known(exact.slowest_worker_percent.as_ref()),
        detectable_slowdown_percent: exact.detectable_slowdown_percent.as_deref().and_then(at_least),
        detectable_loss_percent: loss.and_then(at_least),
    }
}

fn trial(exact: &TrialState) -> TrialStatus {
    TrialStatus {
        number: exact.number,
        outcome: exact.outcome,
        soak: exact.soak,
        output_tokens_per_second: known(exact.throughput.as_ref()),
        ttft_p99_milliseconds: known(exact.ttft_p99_ms.as_ref()),
        failed_requests: exact.errors,
        causes: exact.causes.clone(),
    }
}

fn earlier(exact: &EarlierRun) -> HistoryEntry {
    HistoryEntry {
        run: exact.run,
        verdict: exact.verdict,
        reason: exact.reason.clone(),
        node: exact.node.clone(),
        output_tokens_per_second: known(exact.throughput.as_ref()),
        ttft_p99_milliseconds: known(exact.ttft_p99_ms.as_ref()),
        completed_at: exact.completed_at,
    }
}

fn environment(exact: &Environment) -> EnvironmentStatus {
    EnvironmentStatus {
        digest: exact.digest.clone(),
        aiperf: exact.aiperf.clone(),
        dynamo: exact.dynamo.clone(),
        image_digest: exact.image_digest.clone(),
        revision: exact.revision.clone().or_else(|| exact.commit.clone()),
    }
}

fn speed(exact: &RelativeSpeed) -> Option<Speed> {
    Some(Speed {
        percent: whole(&exact.percent)?,
        plus_minus: at_least(&exact.within)?,
    })
}

/// The workers that measured, in their order, then the others.
fn workers(status: &PerfValidationStatus) -> Vec<WorkerStatus> {
    let (loads, pods) = (&status.state.workers, &status.state.worker_pods);
    let mut workers: Vec<WorkerStatus> = loads
        .iter()
        .map(|load| WorkerStatus {
            name: load.name.clone(),
            output_tokens_per_second: known(load.tokens_per_second.as_ref()),
            speed_of_peers: load.in_run.as_ref().or(load.percent_of_peers.as_ref()).and_then(speed),
            speed_of_own_past: load.percent_of_earlier_runs.as_ref().and_then(speed),
            ..WorkerStatus::default()
        })
        .collect();
    for pod in pods {
        let is_same = |worker: &WorkerStatus| worker.name == pod.pod || Some(&worker.name) == pod.address.as_ref();
        let place = workers.iter().position(is_same);
        let place = place.unwrap_or_else(|| {
            workers.push(WorkerStatus {
                name: pod.pod.clone(),
                ..WorkerStatus::default()
            });
            workers.len() - 1
        });
        let worker = &mut workers[place];
        worker.name.clone_from(&pod.pod);
        worker.gpus = gpus(status, pod);
        worker.restarts = Some(pod.restarts).filter(|restarts| *restarts > 0);
    }
    workers
}

/// UUIDs of a worker's GPUs, or their pools and names.
fn gpus(status: &PerfValidationStatus, pod: &WorkerPod) -> Vec<String> {
    let devices = &status.state.plan.device_ids;
    let uuids: Option<Vec<String>> = pod.held(devices).map(|device| device.uuid.clone()).collect();
    uuids
        .filter(|uuids| uuids.len() == pod.devices.len())
        .unwrap_or_else(|| pod.devices.clone())
}
