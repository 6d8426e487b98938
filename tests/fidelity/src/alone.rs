//! Every worker of the trials on real GPUs as if it had been the only one: next to the trials before it on the same GPU,
//! which stand in for earlier runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use perfval_api::{
    EarlierRun, Environment, OperatorState, PerfValidationStatus, PlacementStatus, PlanDetails, RunStatus, TrialState,
    Verdict, WorkerPod,
};
use perfval_verdict::close::close;
use perfval_verdict::gate::Share;
use perfval_verdict::history;
use perfval_verdict::trial::{Evidence, judge};
use perfval_verdict::workers::WorkerSummary;

use crate::corpus::{LabRun, LabTrial};
use crate::fault::Fault;
use crate::setting::{Place, Setting};

/// A worker of a trial that was compared with at least three before.
struct Compared {
    /// Share of the time of the foreign load on its GPU; `None`: it was healthy.
    share: Option<f64>,
    named: bool,
}

/// Numbers of named workers that are slower than they were, and of those that are not.
pub(super) fn table(page: &mut String, runs: &[LabRun]) {
    page.push_str(
        "\n### One worker against its own past\n\n\
         The operator's code compares each worker, as if it were alone, with the three to ten healthy trials before it on the same GPU under the same\n\
         load, in place of earlier runs.\n\n\
         | foreign load on its GPU | workers | named |\n|---|---|---|\n",
    );
    let mut rows: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for compared in compared(runs) {
        let what = compared
            .share
            .map_or("none".to_owned(), |share| format!("{:2.0} %", share * 100.0));
        let row = rows.entry(what).or_default();
        row.0 += 1;
        row.1 += usize::from(compared.named);
    }
    for (what, (all, named)) in rows {
        let _ = writeln!(page, "| {} | {all} | {named} |", what.trim());
    }
}

fn compared(runs: &[LabRun]) -> Vec<Compared> {
    let of = |run: &&LabRun| run.place == Place::Silicon && matches!(run.fault, Fault::Healthy | Fault::SlowGpu);
    let mut dated: Vec<(DateTime<Utc>, &LabRun)> = runs
        .iter()
        .filter(of)
        .filter_map(|run| Some((run.recorded?, run)))
        .collect();
    dated.sort_by_key(|(at, _)| *at);
    let mut histories: BTreeMap<(Setting, String), Vec<EarlierRun>> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, run) in dated {
        for (trial, worker, own) in run.trials.iter().flat_map(workers) {
            let history = histories
                .entry((Setting::of(run), worker.devices.join(",")))
                .or_default();
            let status = alone(run, trial, worker, own, history);
            let struck = trial.victim.as_deref() == Some(worker.pod.as_str());
            if status
                .state
                .workers
                .iter()
                .any(|load| load.percent_of_earlier_runs.is_some())
            {
                let named = status
                    .state
                    .trials
                    .iter()
                    .flat_map(|trial| &trial.causes)
                    .any(|cause| cause == "SlowWorker");
                let share = run.conditions.share.filter(|_| struck);
                found.push(Compared { share, named });
            }
            if run.fault == Fault::Healthy {
                *history = history::with_last(&status, at);
            }
        }
    }
    found
}

/// The workers of a trial, each with what it did.
fn workers(trial: &LabTrial) -> impl Iterator<Item = (&LabTrial, &WorkerPod, WorkerSummary)> {
    let all = trial.workers();
    trial.before.iter().filter_map(move |worker| {
        let own = all.iter().find(|own| Some(&own.address) == worker.address.as_ref())?;
        Some((trial, worker, own.clone()))
    })
}

/// The status of a run with this worker alone, after these.
fn alone(
    run: &LabRun,
    trial: &LabTrial,
    worker: &WorkerPod,
    mut own: WorkerSummary,
    history: &[EarlierRun],
) -> PerfValidationStatus {
    own.speed = own
        .speed
        .map(|speed| perfval_verdict::workers::WorkerSpeed { peers: None, ..speed });
    let mut record = trial.record.clone();
    record.workers = vec![own];
    // Only what its engine did counts here.
    record.gpus = None;
    let hardware = run.hardware.clone().unwrap_or_default();
    let held = |device: &&perfval_api::DeviceStatus| {
        let own = worker.devices.first().map_or("", String::as_str);
        device.uuid.as_deref().is_some_and(|uuid| own.ends_with(uuid))
    };
    let devices: Vec<_> = hardware.devices.iter().filter(held).cloned().collect();
    let pods = [worker.clone()];
    let evidence = Evidence {
        before: &pods,
        after: &pods,
        devices: &devices,
        product: Some(&hardware.product),
        ..Evidence::new(&record, Share { gpus: 1, node_gpus: 1 })
    };
    let mut spec = run.spec.clone();
    spec.gates.clear();
    let judged = judge(evidence, &spec);
    let mut status = PerfValidationStatus {
        run: Some(RunStatus {
            number: history.first().map_or(1, |last| last.run + 1),
            ..RunStatus::default()
        }),
        verdict: Some(Verdict::Passed),
        placement: Some(PlacementStatus {
            gpus: 1,
            node_gpus: 1,
            ..PlacementStatus::default()
        }),
        state: Box::new(OperatorState {
            environment: Some(Environment {
                model: run.spec.model.name.clone(),
                image: run.spec.dynamo().image.clone(),
                image_digest: Some("sha256:of-the-rig".to_owned()),
                settings: Some("of-a-setting".to_owned()),
                gpu_product: Some(hardware.product.clone()),
                gpus: Some(1),
                gpu_driver: Some(hardware.driver.clone()),
                ..Environment::default()
            }),
            plan: PlanDetails {
                device_ids: devices.clone(),
                ..PlanDetails::default()
            },
            trials: vec![TrialState {
                number: 1,
                ..TrialState::default()
            }],
            history: history.to_vec(),
            ..OperatorState::default()
        }),
        ..PerfValidationStatus::default()
    };
    close(&spec, &mut status, 1, &judged, DateTime::UNIX_EPOCH);
    status
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::corpus;

    #[test]
    fn a_worker_that_is_as_fast_as_before_is_not_named_and_at_least_one_much_slower_one_is() {
        let runs = corpus::read(Path::new("recorded.jsonl.gz")).expect("the recorded runs");
        let found = compared(&runs);
        let healthy: Vec<&Compared> = found.iter().filter(|compared| compared.share.is_none()).collect();
        assert!(healthy.len() >= 40, "{} workers", healthy.len());
        assert_eq!(healthy.iter().filter(|compared| compared.named).count(), 0);
        let slow = found
            .iter()
            .filter(|compared| compared.share.is_some_and(|share| share >= 0.3));
        let slow: Vec<bool> = slow.map(|compared| compared.named).collect();
        assert!(slow.contains(&true), "{slow:?}");
    }
}
