//! Reader of the trials that a run saved.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use flate2::read::GzDecoder;
use perfval_api::{Finding, TrialState};
use serde::Deserialize;
use serde_json::Value;

use crate::aiperf::{self, EXPORT_BYTES};
use crate::frame::{Failure, Outcome, Part, Payload, TrialRecord, check_parts};

/// Largest file or payload that is read (bytes): a trial's payload holds an export and the workers' samples.
pub const FILE_BYTES: u64 = 2 * EXPORT_BYTES;
/// More trials than any run has: users of the namespace can change its results.
pub const MOST_TRIALS: usize = 100;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A run's trials, as its results ConfigMap holds them.
#[derive(Deserialize, Clone, Debug, Default)]
pub struct SavedRun {
    /// The trials as they were judged.
    pub trials: Vec<TrialState>,
    /// Findings of the run.
    pub diagnosis: Vec<Finding>,
    /// Records that the runner handed over, by the trial's number.
    #[serde(skip)]
    pub records: BTreeMap<i64, TrialRecord>,
}

impl SavedRun {
    /// Adds the trials' payloads under their keys to a summary that was read. An unreadable payload is an error and never
    /// left out.
    pub fn with<'a>(mut self, packed: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self, String> {
        for (key, bytes) in packed {
            if let Some(number) = trial_number(key) {
                if self.records.len() >= MOST_TRIALS {
                    return Err(format!("it has more than {MOST_TRIALS} trials"));
                }
                let payload = payload(bytes).map_err(|error| format!("{key} cannot be read: {error}"))?;
                self.records.insert(number, payload.record);
            }
        }
        Ok(self)
    }
}

/// The number in a payload's key, `trial-<n>.json.gz`.
pub fn trial_number(key: &str) -> Option<i64> {
    key.strip_prefix("trial-")?.strip_suffix(".json.gz")?.parse().ok()
}

fn payload(packed: &[u8]) -> Result<Payload, String> {
    let unpacked = gunzip(packed).map_err(|error| format!("the gzip is broken: {error}"))?;
    if unpacked.len() as u64 > FILE_BYTES {
        return Err(too_large(FILE_BYTES));
    }
    check_parts(&unpacked)?;
    serde_json::from_slice(&unpacked).map_err(|error| error.to_string())
}

/// The record of AIPerf's export or of a payload of the runner, also as gzip, with everything that came with it: the export
/// itself, and the samples of a payload. What cannot be understood is an unusable trial with its reason, never an absent one.
pub fn recorded(bytes: &[u8]) -> Payload {
    if bytes.starts_with(&GZIP) {
        return match gunzip(bytes) {
            Ok(unpacked) => recorded(&unpacked),
            Err(error) => unusable(format!("the gzip is broken: {error}")),
        };
    }
    if bytes.len() as u64 > FILE_BYTES {
        return unusable(too_large(FILE_BYTES));
    }
    if let Err(why) = check_parts(bytes) {
        return unusable(why);
    }
    if is_payload(bytes) {
        return serde_json::from_slice::<Payload>(bytes)
            .unwrap_or_else(|error| unusable(format!("the trial's payload cannot be read: {error}")));
    }
    if bytes.len() as u64 > EXPORT_BYTES {
        return unusable(too_large(EXPORT_BYTES));
    }
    match aiperf::parse(bytes) {
        Ok(report) => {
            let payload = Payload::new(with(Outcome::Report(Box::new(report))));
            let export = String::from_utf8_lossy(bytes);
            payload.clone().with_export(&export).unwrap_or(payload)
        }
        Err(error) => unusable(error.to_string()),
    }
}

fn too_large(limit: u64) -> String {
    format!("larger than {limit} bytes; an export of AIPerf has about 40,000")
}

fn gunzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).take(FILE_BYTES + 1).read_to_end(&mut unpacked)?;
    if unpacked.starts_with(&GZIP) {
        return Err(std::io::Error::other("packed twice"));
    }
    Ok(unpacked)
}

fn unusable(message: String) -> Payload {
    Payload::new(with(Outcome::Failure(Failure::Malformed { message })))
}

fn with(outcome: Outcome) -> TrialRecord {
    TrialRecord {
        // A bare export has no data of the workers, which differs from a worker that gave no answer.
        abridged: BTreeSet::from([Part::Workers]),
        ..TrialRecord::new(outcome)
    }
}

fn is_payload(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Shape {
        #[serde(default)]
        record: Value,
    }
    serde_json::from_slice::<Shape>(bytes).is_ok_and(|shape| shape.record.is_object())
}
