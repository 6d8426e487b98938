//! One run on the lab: its fault switched on, its trials watched, its records taken from the results ConfigMap.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use perfval_api::{Finding, PerfValidationStatus, Phase, TrialOutcome, Verdict, WorkerPod};
use perfval_e2e::{Gpus, Lab, Validation};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::Payload;
use serde_json::Value;

use crate::corpus::{LabRun, LabTrial, Live};
use crate::fault::Fault;
use crate::load::{strike, workers};
use crate::matrix::Case;
use crate::setting::{Conditions, Place};

const LIMIT: Duration = Duration::from_mins(8);
const LOOK: Duration = Duration::from_millis(300);
/// Interval where the moment to strike, between the final plan and the binding of its pods, is a third of a second long.
const GLANCE: Duration = Duration::from_millis(30);
/// The lab's one real node.
const NODE: &str = "gpu-node-1";

/// The workers around each trial, and which of them was struck, by its number.
type Watched = BTreeMap<i64, Around>;

/// The workers around one trial.
#[derive(Default)]
struct Around {
    before: Vec<WorkerPod>,
    after: Vec<WorkerPod>,
    victim: Option<String>,
}

/// Runs a case until it has its repeats, at most three times; every run of it.
///
/// # Panics
/// If the lab refuses, or a run does not end.
pub async fn run(lab: &Lab, case: &Case, gates: &Value) -> Vec<LabRun> {
    let namespace = lab.namespace(&namespace(case)).await;
    let mut slow = switch_on(lab, case).await;
    let validation = Validation::create(lab, case.manifest(&namespace, gates)).await;
    let mut runs: Vec<LabRun> = Vec::new();
    for number in 1..=3 {
        if number > 1 {
            slow = switch_on(lab, case).await;
            validation
                .annotate("perfvalidation.dev/rerun", Some(&number.to_string()))
                .await;
        }
        let run = follow(lab, case, &validation, number, slow.as_deref()).await;
        runs.push(run);
        switch_off(lab, case).await;
        if case.repeats_in(&runs) >= case.repeats {
            break;
        }
    }
    validation.delete().await;
    lab.kubectl(&["delete", "namespace", &namespace, "--wait=false"]).await;
    runs
}

/// The GPU that is slow from now on, if one is.
async fn switch_on(lab: &Lab, case: &Case) -> Option<String> {
    if case.fault == Fault::StaleDraPlugin {
        lab.run(&["fault", "stale-dra"]).await;
    }
    let speed = case.slow_gpu()?;
    let first = Gpus::count(lab).await.first;
    let gpu = first.trim_start_matches("gpu-");
    lab.run(&["fault", "slow-gpu", gpu, &speed.to_string()]).await;
    Some(first)
}

/// The worker that holds a device.
fn holder(device: &str, workers: &[WorkerPod]) -> Option<String> {
    let holds = |worker: &&WorkerPod| {
        let mut held = worker.devices.iter().filter_map(|held| held.rsplit_once('/'));
        held.any(|(_, name)| name == device)
    };
    workers.iter().find(holds).map(|worker| worker.pod.clone())
}

/// Undoes a case that panicked. Its validation holds the GPUs that the next case needs.
pub async fn clean_up(lab: &Lab, case: &Case) {
    switch_off(lab, case).await;
    let namespace = namespace(case);
    let command = [
        "delete",
        "namespace",
        &namespace,
        "--ignore-not-found",
        "--timeout=120s",
    ];
    if let Err(error) = lab.try_kubectl(&command).await {
        println!("{namespace} stays: {error}");
    }
}

fn namespace(case: &Case) -> String {
    format!("fidelity-{}", case.name())
}

/// Undoes what outlives a run. The workers' patience stays, as Dynamo 1.5 and later have it.
async fn switch_off(lab: &Lab, case: &Case) {
    match case.fault {
        Fault::SlowWorker | Fault::StaleDraPlugin => {
            lab.run(&["fault", "clear"]).await;
            lab.run(&["fault", "dgd", "liveness=3"]).await;
        }
        Fault::Unschedulable => drop(lab.kubectl(&["uncordon", NODE]).await),
        _ => {}
    }
}

/// Follows one run to its end, and strikes where the case says so.
async fn follow(lab: &Lab, case: &Case, validation: &Validation, number: i64, slow: Option<&str>) -> LabRun {
    let began = Instant::now();
    let mut watched = Watched::new();
    let (mut struck, mut cordoned) = (0, false);
    let look = if case.fault == Fault::Unschedulable {
        GLANCE
    } else {
        LOOK
    };
    let status = loop {
        assert!(began.elapsed() < LIMIT, "{}: no verdict within {LIMIT:?}", case.name());
        tokio::time::sleep(look).await;
        let Ok(status) = validation.status().await else {
            continue;
        };
        if status.run.as_ref().is_none_or(|run| run.number != number) {
            continue;
        }
        if status.phase == Some(Phase::Completed) {
            break status;
        }
        if case.fault == Fault::Unschedulable && !cordoned && status.phase == Some(Phase::Deploying) {
            lab.kubectl(&["cordon", NODE]).await;
            cordoned = true;
        }
        let (Some(trial), Some(workload)) = (status.state.trials.last(), &status.workload) else {
            continue;
        };
        let id = workload.name.trim_start_matches("pv-");
        if trial.outcome.is_none() {
            let before = status.state.worker_pods.clone();
            let victim = slow.and_then(|device| holder(device, &before));
            watched.entry(trial.number).or_insert(Around {
                before,
                victim,
                ..Around::default()
            });
            if case.fault.strikes_under_load() && struck < trial.number {
                struck = trial.number;
                let victim = usize::try_from(struck).unwrap_or(0);
                let pod = strike(lab, &validation.namespace, id, case.fault, victim, case.strikes_after()).await;
                if let Some(around) = watched.get_mut(&trial.number)
                    && case.fault != Fault::FrontendBound
                {
                    around.victim = Some(pod.clone());
                }
                watch_end(lab, validation, id, trial.number, &mut watched).await;
                if case.fault == Fault::FrozenForGood {
                    // A stopped process outlives SIGTERM: without this the next trial would wait a minute for the worker.
                    let _ = lab_fault(lab, &["fault", "kill", &format!("{}/{pod}", validation.namespace)]).await;
                }
            } else {
                watch_end(lab, validation, id, trial.number, &mut watched).await;
            }
        }
    };
    collect(lab, case, validation, &status, watched, began.elapsed().as_secs()).await
}

/// A command of the lab that may fail: the pod may be gone by now.
async fn lab_fault(lab: &Lab, arguments: &[&str]) -> bool {
    let mut command = tokio::process::Command::new(&lab.program);
    command
        .args(arguments)
        .output()
        .await
        .is_ok_and(|output| output.status.success())
}

/// Waits for the end of a trial and looks at the workers at once.
async fn watch_end(lab: &Lab, validation: &Validation, run_id: &str, number: i64, watched: &mut Watched) {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        if let Ok(status) = validation.status().await {
            let over = |trial: &perfval_api::TrialState| trial.number == number && trial.outcome.is_some();
            if status.state.trials.iter().any(over) || status.phase != Some(Phase::Benchmarking) {
                break;
            }
        }
        if let (Ok(now), Some(around)) = (
            workers(lab, &validation.namespace, run_id).await,
            watched.get_mut(&number),
        ) {
            around.after = now;
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn collect(
    lab: &Lab,
    case: &Case,
    validation: &Validation,
    status: &PerfValidationStatus,
    mut watched: Watched,
    seconds: u64,
) -> LabRun {
    let object = validation.get().await.expect("the object");
    let placement = status.placement.as_ref();
    let payloads = payloads(lab, validation, status).await;
    let trials = status.state.trials.iter().filter_map(|trial| {
        let payload = payloads.get(&trial.number)?;
        let Around { before, after, victim } = watched.remove(&trial.number).unwrap_or_default();
        Some(LabTrial {
            record: payload.record.clone(),
            series: payload.workers.clone(),
            after: if after.is_empty() { before.clone() } else { after },
            before,
            victim,
        })
    });
    LabRun {
        place: Place::Lab,
        recorded: status.run.as_ref().map(|run| run.started_at),
        deployment: None,
        hardware: None,
        conditions: Conditions::default(),
        router: case.router,
        fault: case.fault,
        spec: object.spec,
        gpus: placement.map_or((0, 0), |plan| (plan.gpus, plan.node_gpus)),
        trials: trials.collect(),
        live: Some(Live {
            verdict: status.verdict.unwrap_or(Verdict::Error),
            reason: status.reason.clone().unwrap_or_default(),
            message: status.message.clone().unwrap_or_default(),
            causes: status.diagnosis.iter().map(name).collect(),
            trials: status
                .state
                .trials
                .iter()
                .map(|trial| (trial.outcome.unwrap_or(TrialOutcome::Invalid), trial.causes.clone()))
                .collect(),
        }),
        seconds,
        load: load(),
    }
}

/// The cause of a finding, finer than its word; the word of anything else.
fn name(finding: &Finding) -> String {
    Cause::from_finding(finding).map_or_else(|| finding.cause.clone(), |cause| cause.name().to_owned())
}

fn load() -> Option<f64> {
    let averages = std::fs::read_to_string("/proc/loadavg").ok()?;
    averages.split_whitespace().nth(1)?.parse().ok()
}

/// Records of the runner, by trial, from the results ConfigMap.
async fn payloads(lab: &Lab, validation: &Validation, status: &PerfValidationStatus) -> BTreeMap<i64, Payload> {
    let Some(results) = &status.results_ref else {
        return BTreeMap::new();
    };
    let api = Api::<ConfigMap>::namespaced(lab.client.clone(), &validation.namespace);
    let saved = api.get(&results.name).await.expect("the results");
    let packed = saved.binary_data.into_iter().flatten();
    packed
        .filter_map(|(key, packed)| {
            let number = key.strip_prefix("trial-")?.strip_suffix(".json.gz")?.parse().ok()?;
            let mut json = String::new();
            GzDecoder::new(packed.0.as_slice()).read_to_string(&mut json).ok()?;
            Some((number, serde_json::from_str(&json).ok()?))
        })
        .collect()
}
