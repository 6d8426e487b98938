//! Recorded trials, judged and saved as a run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta};
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{
    DeploymentState, DeviceStatus, Environment, PerfValidation, PerfValidationSpec, PlacementStatus, ResultsRef,
    RunStatus, Verdict, Why, WorkerPod, WorkloadStatus,
};
use perfval_run::build::PackedTrial;
use perfval_run::{Run, Settings, build};
use perfval_verdict::frame::{Payload, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::gpus::GpuSeries;
use perfval_verdict::judge::judge;
use perfval_verdict::requests::RequestTimes;
use perfval_verdict::trial::Evidence;
use perfval_verdict::workers::{WorkerSeries, summarize};
use serde::Deserialize;
use serde_json::Value;

/// A line of the recorded trials, as far as it is used here.
#[derive(Deserialize, Clone)]
pub struct Line {
    pub place: String,
    pub router: String,
    pub fault: String,
    #[serde(default)]
    pub conditions: Value,
    #[serde(default)]
    pub hardware: Option<Hardware>,
    pub spec: PerfValidationSpec,
    pub gpus: (i64, i64),
    pub trials: Vec<Trial>,
}

#[derive(Deserialize, Clone)]
pub struct Hardware {
    pub product: String,
    pub driver: String,
    pub devices: Vec<DeviceStatus>,
}

#[derive(Deserialize, Clone)]
pub struct Trial {
    pub record: TrialRecord,
    pub series: Vec<WorkerSeries>,
    pub before: Vec<WorkerPod>,
    pub after: Vec<WorkerPod>,
    #[serde(skip)]
    pub gpus: Vec<GpuSeries>,
    #[serde(skip)]
    pub requests: Option<RequestTimes>,
}

/// A run as a cluster holds it.
pub struct Saved {
    pub object: PerfValidation,
    pub results: ConfigMap,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The recorded trials that match, in the order of the file.
pub fn lines(matches: impl Fn(&Line) -> bool) -> Vec<Line> {
    static ALL: LazyLock<Vec<Line>> = LazyLock::new(|| {
        let file = File::open(root().join("tests/fidelity/recorded.jsonl.gz")).expect("recorded trials");
        let lines = BufReader::new(GzDecoder::new(file)).lines();
        let line = |line: std::io::Result<String>| serde_json::from_str::<Line>(&line.expect("text")).expect("a line");
        lines.map(line).collect()
    });
    ALL.iter().filter(|line| matches(line)).cloned().collect()
}

/// Lines of one kind as one run with the trials of all.
pub fn one_run(lines: Vec<Line>) -> Line {
    let mut all = lines.into_iter();
    let mut first = all.next().expect("a recorded line");
    first.trials.extend(all.flat_map(|line| line.trials));
    first
}

/// Judged under these gates, saved, and put into the status of an object.
pub fn saved(name: &str, line: &Line, gates: &Value, rule: &Value) -> Saved {
    let mut spec = line.spec.clone();
    spec.gates = serde_json::from_value(gates.clone()).expect("gates");
    spec.trials = serde_json::from_value(rule.clone()).expect("a rule");
    let mut object = PerfValidation::new(name, spec);
    object.metadata.namespace = Some("perf".to_owned());
    object.metadata.uid = Some("0c0ffee0-0000-4000-8000-000000000001".to_owned());
    object.metadata.generation = Some(1);
    let hardware = line.hardware.clone();
    let devices = hardware
        .as_ref()
        .map_or_else(Vec::new, |hardware| hardware.devices.clone());
    let product = hardware.as_ref().map(|hardware| hardware.product.clone());
    let trials: Vec<Trial> = line.trials.iter().map(|trial| on_devices(trial, &devices)).collect();
    let records: Vec<TrialRecord> = trials.iter().map(record).collect();
    let recorded: Vec<Evidence<'_>> = (trials.iter().zip(&records))
        .map(|(trial, record)| Evidence {
            before: &trial.before,
            after: &trial.after,
            devices: &devices,
            product: product.as_deref(),
            ..Evidence::new(record, Share::UNSCALED)
        })
        .collect();
    let (gpus, node_gpus) = line.gpus;
    let began = DateTime::from_timestamp(1_795_340_000, 0).expect("a time");
    let judgement = judge(&object, Some(Share { gpus, node_gpus }), &recorded, began);

    let mut status = judgement.status;
    let mut ended = began + TimeDelta::seconds(70);
    for trial in &mut status.state.trials {
        trial.started_at = ended;
        ended += TimeDelta::seconds(45);
        trial.completed_at = Some(ended);
    }
    status.run = Some(RunStatus {
        number: 1,
        generation: 1,
        started_at: began,
        completed_at: Some(ended),
        ..RunStatus::default()
    });
    status.placement = Some(PlacementStatus {
        node: "gpu-node-1".to_owned(),
        allocation: perfval_api::Allocation::Dra,
        gpus,
        node_gpus,
        product: product.clone(),
        devices: devices.iter().map(DeviceStatus::label).collect(),
        ..PlacementStatus::default()
    });
    status.workload = Some(WorkloadStatus {
        name: "perfval-5e1f0a2b".to_owned(),
        ..WorkloadStatus::default()
    });
    status.state.plan.device_ids = devices;
    status.state.deployment = Some(DeploymentState {
        router_mode: line.router.clone(),
        ..DeploymentState::default()
    });
    status.state.worker_pods = trials.last().map_or_else(Vec::new, |trial| trial.after.clone());
    status.state.environment = Some(Environment {
        model: object.spec.model.name.clone(),
        image: object.spec.dynamo().image.clone(),
        gpu_product: product,
        gpus: Some(gpus),
        aiperf: Some("0.13.0".to_owned()),
        gpu_driver: hardware.map(|hardware| hardware.driver),
        ..Environment::default()
    });
    status.verdict = Some(judgement.verdict);
    status.reason = Some(judgement.reason.as_str().to_owned());
    status.message = Some(judgement.message.clone());
    object.status = Some(status);
    let why = Why::new(judgement.reason, judgement.message);
    let results = results(&mut object, judgement.verdict, &why, &trials);
    Saved { object, results }
}

/// The rig writes a GPU's UUID where a claim has the device's name.
fn on_devices(trial: &Trial, devices: &[DeviceStatus]) -> Trial {
    let mut trial = trial.clone();
    for worker in trial.before.iter_mut().chain(&mut trial.after) {
        let held = worker.devices.first().map_or("", String::as_str);
        let device = devices
            .iter()
            .find(|device| device.uuid.as_deref().is_some_and(|uuid| held.ends_with(uuid)));
        worker.devices = device
            .map(|device| format!("{}/{}", device.pool, device.name))
            .into_iter()
            .collect();
    }
    trial
}

fn record(trial: &Trial) -> TrialRecord {
    let mut record = trial.record.clone();
    if !trial.series.is_empty() {
        record.workers = summarize(&trial.series, record.outcome.measured_seconds());
    }
    record
}

fn results(object: &mut PerfValidation, verdict: Verdict, why: &Why, trials: &[Trial]) -> ConfigMap {
    let judged = object.status.as_ref().map_or(0, |status| status.state.trials.len());
    // Of another run: only AIPerf's own command is read from it.
    let export = root().join("crates/verdict/tests/fixtures/aiperf-success.json");
    let export = std::fs::read_to_string(export).expect("an export");
    let payload = |trial: &Trial| {
        let mut payload = Payload::new(record(trial)).with_export(&export).expect("JSON");
        payload.workers.clone_from(&trial.series);
        payload.gpus.clone_from(&trial.gpus);
        payload.requests.clone_from(&trial.requests);
        serde_json::to_string(&payload).expect("JSON")
    };
    let packed = trials
        .iter()
        .take(judged)
        .map(|trial| PackedTrial::new(&payload(trial)));
    let packed: BTreeMap<i64, PackedTrial> = (1..).zip(packed).collect();
    let settings = Settings::default();
    let results = build::results(&Run::new(object, &settings), verdict, why, &packed, &BTreeMap::new());
    let named = ResultsRef {
        name: results.metadata.name.clone().expect("a name"),
        sha256: build::results_sha256(&results),
    };
    object.status.as_mut().expect("a status").results_ref = Some(named);
    results
}
