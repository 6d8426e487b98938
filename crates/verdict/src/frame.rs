//! Transport of a trial's result from the runner to the operator; both ends are here.
//!
//! A [`TrialRecord`] goes twice: as the container's termination message, which survives log rotation but holds 4,096
//! bytes, and with AIPerf's whole export and the workers' samples between two lines at the end of the log.

mod abridge;
mod log;

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize};

use crate::aiperf::{ErrorKind, Report};
use crate::gpus::GpuRecord;
use crate::node_cpu::NodeCpu;
use crate::number::{bounded, short};
use crate::workers::WorkerSummary;

pub use abridge::{MESSAGE_BYTES, find_message, message};
pub(crate) use log::check_parts;
pub use log::{FRAME_BYTES, Payload, find, frame};

/// Record that the runner hands over.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TrialRecord {
    /// The trial's own word; a record with another one belongs to another trial.
    pub nonce: String,
    /// Exit code of the runner: AIPerf's own, 128 + n after signal n, 1 without an export, 2 for wrong paths, 124
    /// after `--timeout`, 127 if `aiperf` cannot be executed. Not a verdict.
    pub exit_code: i32,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Work of the workers, in order of their address.
    #[serde(default, deserialize_with = "short", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerSummary>,
    /// Reasons of failed scrapes of workers, with their counts.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "BTreeMap::is_empty")]
    pub scrape_errors: BTreeMap<String, i64>,
    /// Telemetry of the GPUs; absent if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<GpuRecord>,
    /// CPUs of the node under test; absent where the load generator ran on another node, or could not read them.
    #[serde(default, rename = "nodeCpu", skip_serializing_if = "Option::is_none")]
    pub node_cpu: Option<NodeCpu>,
    /// Commit of the model's repository as AIPerf loaded it (40 hex digits); absent if its cache has none.
    #[serde(default, deserialize_with = "commit", skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Parts left out to fit into a termination message; empty in the log. A part that is left out is not absent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub abridged: BTreeSet<Part>,
}

impl TrialRecord {
    /// A record of this outcome alone, with exit code 0 and without a nonce.
    pub fn new(outcome: Outcome) -> Self {
        Self {
            nonce: String::new(),
            exit_code: 0,
            outcome,
            workers: Vec::new(),
            scrape_errors: BTreeMap::new(),
            gpus: None,
            node_cpu: None,
            commit: None,
            abridged: BTreeSet::new(),
        }
    }
}

/// A commit from a record. Anything else is unknown, because every user with pods of their own can forge a record.
fn commit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let commit = serde_json::Value::deserialize(deserializer)?;
    let commit = commit.as_str().map(str::to_owned);
    Ok(commit.filter(|commit| commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())))
}

/// Outcome of a run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// AIPerf wrote an export; it may still be incomplete.
    Report(Box<Report>),
    /// There is nothing to judge.
    Failure(Failure),
}

impl Outcome {
    /// Length of the measured phase (s); unknown without a report.
    pub fn measured_seconds(&self) -> Option<Decimal> {
        match self {
            Self::Report(report) => report.duration_seconds,
            Self::Failure(_) => None,
        }
    }

    /// Texts that AIPerf or a server wrote.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Report(report) => {
                let errors = report.errors.iter_mut().map(|error| &mut error.message);
                errors.chain(&mut report.incomplete_reason).collect()
            }
            Self::Failure(Failure::AllFailed { errors, .. }) => {
                errors.iter_mut().map(|error| &mut error.message).collect()
            }
            Self::Failure(
                Failure::Misconfigured { message: text }
                | Failure::NotExecutable { message: text }
                | Failure::Malformed { message: text }
                | Failure::Exited { tail: text }
                | Failure::NoExport { tail: text },
            ) => vec![text],
            Self::Failure(Failure::Killed { .. } | Failure::Cancelled { .. } | Failure::TimedOut { .. }) => Vec::new(),
        }
    }
}

/// Reason why there is no measurement to judge.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
#[allow(missing_docs)] // `failure_text` shows what the fields are
pub enum Failure {
    /// The runner's own arguments or paths are wrong.
    Misconfigured { message: String },
    /// `aiperf` is not in the image, or not executable.
    NotExecutable { message: String },
    /// Every request failed: AIPerf exits 1 and writes no export.
    AllFailed {
        #[serde(deserialize_with = "bounded")]
        failed: i64,
        #[serde(deserialize_with = "short")]
        errors: Vec<ErrorKind>,
    },
    /// AIPerf exited with an error of its own.
    Exited { tail: String },
    /// AIPerf exited 0 and left no export.
    NoExport { tail: String },
    /// The export cannot be judged.
    Malformed { message: String },
    /// A signal from outside ended AIPerf.
    Killed { signal: i32 },
    /// The runner received a request to stop.
    Cancelled { signal: i32 },
    /// AIPerf was still running at the runner's `--timeout`.
    TimedOut {
        #[serde(deserialize_with = "bounded")]
        seconds: u64,
    },
}

/// Parts that can be left out of a termination message, in the order in which they go.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Statistics that are neither gated nor shown in the status.
    Statistics,
    /// The GPUs.
    Gpus,
    /// Texts of errors, and all but the most frequent error.
    ErrorTexts,
    /// The workers.
    Workers,
    /// The record did not fit at all.
    Everything,
}

/// Result of the search for a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framed<T> {
    /// All of it.
    Complete(T),
    /// Only its beginning or its end: worth reading again, the log may have been cut or rotated.
    Truncated,
    /// Nothing of this trial.
    Missing,
    /// All of it, but it cannot be read.
    Malformed(String),
}
