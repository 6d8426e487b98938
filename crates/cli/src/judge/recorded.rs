//! Files with recorded trials.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use perfval_run::build::read_summary;
use perfval_verdict::frame::{Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::saved::{self, FILE_BYTES};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::input;

/// Contents of a file.
pub struct RecordedFile {
    /// Its trials, in order.
    pub trials: Vec<RecordedTrial>,
    /// The GPUs of the run, if the file has their number.
    pub share: Option<Share>,
}

/// One trial and where it came from.
pub struct RecordedTrial {
    /// The file, and the key in a ConfigMap.
    pub from: String,
    /// The measurement, or the reason why there is none.
    pub record: TrialRecord,
    /// Value that is equal only if the same trial is given twice; `None` without a measurement.
    pub fingerprint: Option<String>,
}

impl RecordedTrial {
    fn new(from: String, bytes: &[u8]) -> Self {
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
/// ConfigMap. A broken one is an unusable trial with its reason, never an absent one; another file is bad input.
pub fn read(path: &Path) -> Result<RecordedFile, Error> {
    let bytes = input::bytes(path, FILE_BYTES)?;
    let from = path.display().to_string();
    if let Some(results) = config_map(&bytes) {
        return from_config_map(path, &results).map_err(|why| Error::BadInput(format!("{from}: {why}")));
    }
    if is_of_another_kind(&bytes) {
        return Err(Error::BadInput(format!(
            "{from} holds no trial: give AIPerf's profile_export_aiperf.json, or the ConfigMap in status.resultsRef as JSON"
        )));
    }
    Ok(RecordedFile {
        trials: vec![RecordedTrial::new(from, &bytes)],
        share: None,
    })
}

#[derive(Deserialize)]
struct FileShape {
    #[serde(default)]
    kind: Value,
    aiperf_version: Option<Value>,
    record: Option<Value>,
}

/// Returns true for a file that is no export and no payload, not even a broken one: the benchmark is not to blame for it.
fn is_of_another_kind(bytes: &[u8]) -> bool {
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

/// The trials of a run's results ConfigMap (`kubectl get configmap -o json`), from the first on.
fn from_config_map(path: &Path, results: &ConfigMap) -> Result<RecordedFile, String> {
    if let Some(omitted) = results.data.as_ref().and_then(|data| data.get("omitted.txt")) {
        return Err(format!(
            "trials were left out of this ConfigMap, so the verdict cannot be repeated: {}",
            omitted.trim()
        ));
    }
    let trials: BTreeMap<i64, RecordedTrial> = results
        .binary_data
        .iter()
        .flatten()
        .filter_map(|(key, packed)| {
            let from = format!("{}:{key}", path.display());
            Some((saved::trial_number(key)?, RecordedTrial::new(from, &packed.0)))
        })
        .collect();
    if trials.is_empty() {
        return Err("no key trial-<n>.json.gz in this ConfigMap: give the ConfigMap in status.resultsRef".to_owned());
    }
    let status = read_summary(results)?.status;
    let finished = status.state.trials.iter().filter(|trial| trial.outcome.is_some());
    let missing: Vec<String> = finished
        .filter(|trial| !trials.contains_key(&trial.number))
        .map(|trial| trial.number.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "summary.json lists trials that are not in this ConfigMap, so the verdict cannot be repeated: {}",
            missing.join(", ")
        ));
    }
    let share = |placement| Share::new(placement, &status.state.plan);
    Ok(RecordedFile {
        trials: trials.into_values().collect(),
        share: status.placement.as_ref().map(share),
    })
}
