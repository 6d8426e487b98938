use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::PlacementStatus;
use perfval_verdict::aiperf::{self, EXPORT_BYTES};
use perfval_verdict::frame::{Failure, Outcome, Part, Payload, TrialRecord};
use perfval_verdict::gate::Share;
use serde::Deserialize;
use serde_json::Value;

use super::bad_input::BadInput;
use crate::input;

/// Largest file that is read (bytes): a trial's payload holds an export and the workers' samples.
const FILE_BYTES: u64 = 2 * EXPORT_BYTES;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What a file holds.
pub struct File {
    /// Its trials, in order.
    pub trials: Vec<Trial>,
    /// The GPUs of the run, where the file says it.
    pub share: Option<Share>,
}

/// One trial and where it came from.
pub struct Trial {
    /// The file, and the key in a ConfigMap.
    pub from: String,
    /// What was measured, or why nothing can be read.
    pub record: TrialRecord,
}

/// Reads a file of any kind that holds trials: AIPerf's export, a payload of the runner (also as gzip), or a results
/// ConfigMap. What cannot be understood is an unusable trial with its reason, never an absent one.
pub fn read(path: &Path) -> Result<File, BadInput> {
    let bytes = input::bytes(path, FILE_BYTES).map_err(|source| BadInput::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let from = path.display().to_string();
    if let Some(results) = config_map(&bytes) {
        return of_config_map(path, &results).map_err(|why| BadInput::Results {
            path: path.to_owned(),
            why,
        });
    }
    let record = record(&bytes);
    Ok(File {
        trials: vec![Trial { from, record }],
        share: None,
    })
}

/// The record of an export or a payload.
fn record(bytes: &[u8]) -> TrialRecord {
    if bytes.starts_with(&GZIP) {
        return match gunzip(bytes) {
            Ok(unpacked) => record(&unpacked),
            Err(error) => unusable(format!("the gzip is broken: {error}")),
        };
    }
    if bytes.len() as u64 > FILE_BYTES {
        return unusable(format!(
            "larger than {FILE_BYTES} bytes; an export of AIPerf has about 40,000"
        ));
    }
    if is_payload(bytes) {
        return serde_json::from_slice::<Payload>(bytes).map_or_else(
            |error| unusable(format!("the trial's payload cannot be read: {error}")),
            |payload| payload.record,
        );
    }
    if bytes.len() as u64 > EXPORT_BYTES {
        return unusable(format!(
            "larger than {EXPORT_BYTES} bytes; an export of AIPerf has about 40,000"
        ));
    }
    match aiperf::parse(bytes) {
        Ok(report) => with(Outcome::Report(Box::new(report))),
        Err(error) => unusable(error.to_string()),
    }
}

fn gunzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).take(FILE_BYTES + 1).read_to_end(&mut unpacked)?;
    if unpacked.starts_with(&GZIP) {
        return Err(std::io::Error::other("packed twice"));
    }
    Ok(unpacked)
}

fn unusable(message: String) -> TrialRecord {
    with(Outcome::Failure(Failure::Malformed { message }))
}

fn with(outcome: Outcome) -> TrialRecord {
    TrialRecord {
        nonce: String::new(),
        exit_code: 0,
        outcome,
        workers: Vec::new(),
        scrape_errors: BTreeMap::new(),
        // A bare export says nothing of the workers; that is not a worker that gave no answer.
        abridged: BTreeSet::from([Part::Workers]),
    }
}

#[derive(Deserialize)]
struct Shape {
    #[serde(default)]
    kind: Value,
    #[serde(default)]
    record: Value,
}

fn is_payload(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Shape>(bytes).is_ok_and(|shape| shape.record.is_object())
}

fn config_map(bytes: &[u8]) -> Option<ConfigMap> {
    let shape = serde_json::from_slice::<Shape>(bytes).ok()?;
    (shape.kind == "ConfigMap")
        .then(|| serde_json::from_slice(bytes).ok())
        .flatten()
}

/// The trials of a run's results ConfigMap (`kubectl get configmap -o json`), from the first on.
fn of_config_map(path: &Path, results: &ConfigMap) -> Result<File, String> {
    let texts = results.data.iter().flatten().collect::<BTreeMap<_, _>>();
    if let Some(omitted) = texts.get(&"omitted.txt".to_owned()) {
        return Err(format!(
            "trials were left out of this ConfigMap, so the verdict cannot be repeated: {}",
            omitted.trim()
        ));
    }
    let number = |key: &str| {
        key.strip_prefix("trial-")?
            .strip_suffix(".json.gz")?
            .parse::<i64>()
            .ok()
    };
    let trials: BTreeMap<i64, Trial> = results
        .binary_data
        .iter()
        .flatten()
        .filter_map(|(key, packed)| {
            let from = format!("{}:{key}", path.display());
            let record = record(&packed.0);
            Some((number(key)?, Trial { from, record }))
        })
        .collect();
    if trials.is_empty() {
        return Err("no key trial-<n>.json.gz in this ConfigMap: give the one that status.resultsRef names".to_owned());
    }
    let share = texts.get(&"summary.json".to_owned()).and_then(|summary| {
        let summary: Value = serde_json::from_str(summary).ok()?;
        let placement = &summary["placement"];
        let number = |field: &str| placement[field].as_i64();
        Some(Share::of(&PlacementStatus {
            gpus: number("gpus")?,
            node_gpus: number("nodeGPUs")?,
            faulty_gpus: number("faultyGPUs").unwrap_or_default(),
            expected: serde_json::from_value(placement["expected"].clone()).ok(),
            ..PlacementStatus::default()
        }))
    });
    Ok(File {
        trials: trials.into_values().collect(),
        share,
    })
}
