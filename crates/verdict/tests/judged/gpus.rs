//! Evidence of the GPUs beside the other causes of a trial.

use perfval_api::{Metric, PerfValidationStatus, Statistic, TrialOutcome};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::TrialRecord;
use perfval_verdict::gpus::{GpuRecord, GpuSummary, Mark};
use perfval_verdict::trial::{Evidence, JudgedTrial, judge};
use perfval_verdict::workers::Drift;
use rust_decimal::Decimal;

use super::{
    balanced, causes, close_next, device, evidence, odd_one, peers, pods, report, sample, set, spec, speed,
    spend_the_latency_in_workers, worker,
};

/// Worker `c` runs on a GPU that is too hot.
fn hot(mut record: TrialRecord) -> TrialRecord {
    let gpu = |name: &str| GpuSummary {
        uuid: format!("GPU-{name}"),
        readings: 20,
        slowed: (name == "c").then_some(Mark { value: 9, at: Some(14) }),
        reasons: Some(if name == "c" { 0x48 } else { 0x4 }),
        ..GpuSummary::default()
    };
    record.gpus = Some(GpuRecord {
        pages: 30,
        gpus: ["a", "b", "c", "d"].map(gpu).into(),
        ..GpuRecord::default()
    });
    record
}

fn judged(record: &TrialRecord) -> JudgedTrial {
    let (pods, devices) = (pods(), ["a", "b", "c", "d"].map(device));
    let evidence = Evidence {
        devices: &devices,
        ..evidence(record, &pods)
    };
    judge(evidence, &spec())
}

#[test]
fn a_hot_gpu_is_reported_of_a_trial_that_passes() {
    let mut record = sample("success", balanced());
    spend_the_latency_in_workers(&mut record);
    assert_eq!(causes(&judged(&record)), []);
    let trial = judged(&hot(record));
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (TrialOutcome::Pass, vec![Cause::GPUThrottled])
    );
    assert_eq!(
        trial.findings[0].1.evidence,
        "worker c (GPU-c): hardware thermal slowdown in 9 of 20 readings under load, first in second 14"
    );
}

#[test]
fn a_hot_gpu_explains_a_worker_that_is_slow() {
    let slow = odd_one(worker("c", 1, 64), |name| worker(name, 10, 32));
    let trial = judged(&hot(sample("success", slow)));
    assert_eq!(trial.outcome, TrialOutcome::Miss);
    assert_eq!(causes(&trial)[..2], [Cause::WorkerStall, Cause::GPUThrottled]);

    // A long trial that became slower leaves no room for all causes.
    let mut slow = long_with_late_requests();
    for worker in &mut slow.workers {
        let percent = if worker.address == "c" { 85 } else { 100 };
        worker.speed = Some(speed(10, Some(peers(percent, 1))));
    }
    assert_eq!(
        causes(&judged(&slow)),
        [Cause::SlowWorker, Cause::KneeJitter, Cause::ThroughputDecay]
    );
    assert_eq!(
        causes(&judged(&hot(slow))),
        [Cause::SlowWorker, Cause::GPUThrottled, Cause::KneeJitter]
    );
}

/// Four workers that became slower by a tenth, and first tokens that come a fifth too late.
fn long_with_late_requests() -> TrialRecord {
    let mut record = sample("success", balanced());
    spend_the_latency_in_workers(&mut record);
    for statistic in [Statistic::P90, Statistic::P99] {
        set(report(&mut record), Metric::TimeToFirstToken, statistic, 2400);
    }
    for worker in &mut record.workers {
        worker.drift = Some(Drift {
            first: Decimal::from(1000),
            last_but_one: Some(Decimal::from(900)),
            last: Decimal::from(900),
        });
    }
    record
}

#[test]
fn a_hot_gpu_of_the_only_worker_replaces_what_all_workers_share() {
    let instead = |mut record: TrialRecord| {
        record.workers.retain(|worker| worker.address == "c");
        let (pods, devices) = (pods(), [device("c")]);
        let evidence = Evidence {
            devices: &devices,
            ..evidence(&record, &pods[2..3])
        };
        let trial = judge(evidence, &spec());
        assert!(causes(&trial).contains(&Cause::KneeJitter), "{:?}", trial.findings);
        trial.instead_of_jitter.map(|(cause, _)| cause)
    };
    assert_eq!(instead(long_with_late_requests()), Some(Cause::BalancedDegradation));
    assert_eq!(instead(hot(long_with_late_requests())), None);
}

#[test]
fn missing_telemetry_is_reported_once_and_not_for_every_trial() {
    let mut record = hot(sample("success", balanced()));
    spend_the_latency_in_workers(&mut record);
    let silent = GpuRecord {
        errors: [("connection refused".to_owned(), 30)].into(),
        ..GpuRecord::default()
    };
    record.gpus = Some(silent);
    let trial = judged(&record);
    assert_eq!(causes(&trial), [], "no cause of a trial");
    let mut status = PerfValidationStatus::default();
    for _ in 0..2 {
        close_next(&spec(), &mut status, &trial);
    }
    let found: Vec<_> = status.diagnosis.iter().filter_map(Cause::from_finding).collect();
    assert_eq!(found, [Cause::WorkersNotCompared, Cause::GPUsNotSampled]);
    assert!(status.diagnosis.iter().all(|finding| finding.cause == "NotSampled"));
    assert!(status.state.trials.iter().all(|trial| trial.causes.is_empty()));
}

#[test]
fn gpus_without_a_reading_under_load_are_reported_beside_sampled_workers_only() {
    let mut record = hot(sample("success", balanced()));
    spend_the_latency_in_workers(&mut record);
    for gpu in record.gpus.iter_mut().flat_map(|record| &mut record.gpus) {
        gpu.readings = 0;
        gpu.slowed = None;
    }
    let unseen = |record: &TrialRecord| {
        let unseen = judged(record).unseen.into_iter();
        unseen
            .filter(|(cause, _)| *cause == Cause::GPUsNotSampled)
            .collect::<Vec<_>>()
    };
    let [(_, why)] = &unseen(&record)[..] else {
        panic!("the gap is not reported");
    };
    assert!(why.contains("showed a GPU under load (half busy or more)"), "{why}");
    // The time under load is not known.
    for worker in &mut record.workers {
        worker.samples = 0;
    }
    assert_eq!(unseen(&record), []);
}
