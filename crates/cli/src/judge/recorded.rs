//! Files with recorded trials.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{PerfValidationStatus, TrialState};
use perfval_run::build::{SUMMARY, read_summary};
use perfval_verdict::frame::{Outcome, TrialRecord};
use perfval_verdict::rejudge::left_no_measurement;
use perfval_verdict::saved::{self, FILE_BYTES, SavedRun};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::input;

/// Contents of a file.
pub enum RecordedFile {
    /// One trial.
    Trial(Box<RecordedTrial>),
    /// All trials of a run of the operator.
    Run(Box<RecordedRun>),
}

/// Run as its results ConfigMap contains it.
pub struct RecordedRun {
    /// Status of the summary; it has a placement.
    pub status: PerfValidationStatus,
    pub saved: SavedRun,
    /// Origin of each finished trial, in order.
    pub from: Vec<String>,
}

/// One trial and where it came from.
pub struct RecordedTrial {
    pub from: String,
    /// The measurement, or the reason why there is none.
    pub record: TrialRecord,
    /// Value that is equal only if the same trial is given twice; `None` without a measurement.
    pub fingerprint: Option<String>,
}

impl RecordedTrial {
    /// Reads AIPerf's export, or a payload of the runner, also as gzip.
    pub fn new(from: String, bytes: &[u8]) -> Self {
        let record = saved::recorded(bytes).record;
        let fingerprint = match &record.outcome {
            // No two trials have the same times to the last digit.
            Outcome::Report(report) => serde_json::to_string(&(&report.metrics, report.duration_seconds)).ok(),
            Outcome::Failure(_) => None,
        };
        Self {
            from,
            record,
            fingerprint,
        }
    }
}

/// Reads a file of any kind that holds trials: AIPerf's export, a payload of the runner (also as gzip), or a results
/// ConfigMap. A broken trial is an unusable one with its reason, never an absent one. Another file, or a ConfigMap that
/// is incomplete, is bad input.
pub fn read(path: &Path) -> Result<RecordedFile, Error> {
    let bytes = input::bytes(path, FILE_BYTES)?;
    let from = path.display().to_string();
    if let Some(results) = config_map(&bytes) {
        let run = from_config_map(&from, &results).map_err(|why| Error::BadInput(format!("{from}: {why}")))?;
        return Ok(RecordedFile::Run(Box::new(run)));
    }
    if is_of_another_kind(&bytes) {
        return Err(Error::BadInput(format!(
            "{from} holds no trial: give AIPerf's profile_export_aiperf.json, or the ConfigMap in status.resultsRef as JSON"
        )));
    }
    Ok(RecordedFile::Trial(Box::new(RecordedTrial::new(from, &bytes))))
}

#[derive(Deserialize)]
struct FileShape {
    #[serde(default)]
    kind: Value,
    aiperf_version: Option<Value>,
    record: Option<Value>,
}

/// Returns true for a file that is no export and no payload, not even a broken one: the benchmark is not to blame for it.
pub fn is_of_another_kind(bytes: &[u8]) -> bool {
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    let is_packed = bytes.starts_with(&[0x1f, 0x8b]);
    let shape = serde_json::from_slice::<FileShape>(bytes);
    let is_other = shape.is_ok_and(|shape| shape.aiperf_version.is_none() && shape.record.is_none());
    is_other || !(is_object || is_packed || bytes.len() as u64 > FILE_BYTES)
}

fn config_map(bytes: &[u8]) -> Option<ConfigMap> {
    let shape = serde_json::from_slice::<FileShape>(bytes).ok()?;
    (shape.kind == "ConfigMap")
        .then(|| serde_json::from_slice(bytes).ok())
        .flatten()
}

/// The run of a results ConfigMap (`kubectl get configmap -o json`). Fails with the reason if it does not contain all that
/// decided the verdict.
fn from_config_map(path: &str, results: &ConfigMap) -> Result<RecordedRun, String> {
    let text = |key: &str| results.data.as_ref().and_then(|data| data.get(key));
    if let Some(omitted) = text("omitted.txt") {
        return Err(format!(
            "trials were left out of this ConfigMap, so the verdict cannot be repeated: {}",
            omitted.trim()
        ));
    }
    let packed = || results.binary_data.iter().flatten();
    let present: BTreeSet<i64> = packed().filter_map(|(key, _)| saved::trial_number(key)).collect();
    if present.is_empty() && text(SUMMARY).is_none() {
        return Err(format!(
            "no {SUMMARY} and no key trial-<n>.json.gz in this ConfigMap: give the ConfigMap in status.resultsRef"
        ));
    }
    let status = read_summary(results)?.status;
    let finished = || status.state.trials.iter().filter(|trial| trial.outcome.is_some());
    let lacks = |trial: &&TrialState| !present.contains(&trial.number) && !left_no_measurement(trial);
    let missing: Vec<String> = finished().filter(lacks).map(|trial| trial.number.to_string()).collect();
    if !missing.is_empty() {
        return Err(format!(
            "{SUMMARY} lists trials that are not in this ConfigMap, so the verdict cannot be repeated: {}",
            missing.join(", ")
        ));
    }
    let listed: BTreeSet<i64> = finished().map(|trial| trial.number).collect();
    if let Some(unlisted) = present.difference(&listed).next() {
        return Err(format!(
            "{SUMMARY} has no outcome of trial {unlisted}, so the verdict cannot be repeated"
        ));
    }
    if listed.is_empty() || status.placement.is_none() {
        return Err(format!(
            "{SUMMARY} has no finished trial or no placement: there is nothing to judge"
        ));
    }
    let from = |trial: &TrialState| match (trial.number, present.contains(&trial.number)) {
        (number, true) => format!("{path}:trial-{number}.json.gz"),
        (number, false) => format!("{path}: trial {number} left no measurement"),
    };
    let from = finished().map(from).collect();
    let packed = packed().map(|(key, bytes)| (key.as_str(), bytes.0.as_slice()));
    let saved = SavedRun {
        trials: status.state.trials.clone(),
        diagnosis: status.diagnosis.clone(),
        ..SavedRun::default()
    };
    let saved = saved.with(packed)?;
    Ok(RecordedRun { status, saved, from })
}
