//! Trials as they were recorded, on the lab or on loopback: enough to judge them again, with later code and other gates.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use chrono::{DateTime, Utc};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use perfval_api::{Gate, PerfValidation, PerfValidationSpec, RouterMode, TrialOutcome, TrialRule, Verdict, WorkerPod};
use perfval_verdict::frame::TrialRecord;
use perfval_verdict::gate::Share;
use perfval_verdict::judge;
use perfval_verdict::trial;
use perfval_verdict::workers::{WorkerSeries, WorkerSummary, summarize};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::setting::{Conditions, Hardware, Place};

/// Trials of one router under one fault: a run of the operator on the lab, or trials of its runner on loopback.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct LabRun {
    /// Place of the engines.
    pub place: Place,
    /// Begin; runs older than this field have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<DateTime<Utc>>,
    /// Start of the engines: trials of one differ by chance only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// The machine, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Strength of the fault.
    #[serde(default)]
    pub conditions: Conditions,
    /// Router of the frontend.
    pub router: RouterMode,
    /// Injected fault.
    pub fault: Fault,
    /// Spec of the run.
    pub spec: PerfValidationSpec,
    /// GPUs in use, and of the node.
    pub gpus: (i64, i64),
    /// Result of the operator at that time; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// Its trials, in order.
    pub trials: Vec<LabTrial>,
    /// From creation to the verdict (s).
    pub seconds: u64,
    /// Processes that wanted a CPU of the machine at its end, mean of five minutes; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
}

/// The operator's own result of a run.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// Its verdict.
    pub verdict: Verdict,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// Causes in `status.diagnosis`.
    pub causes: Vec<String>,
    /// Outcome and causes of each trial.
    pub trials: Vec<(TrialOutcome, Vec<String>)>,
}

/// One trial.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct LabTrial {
    /// Record of the runner.
    pub record: TrialRecord,
    /// The workers' samples.
    pub series: Vec<WorkerSeries>,
    /// The workers when it began.
    pub before: Vec<WorkerPod>,
    /// The workers when it ended.
    pub after: Vec<WorkerPod>,
    /// The pod of the worker that the fault struck, where it struck one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victim: Option<String>,
}

impl LabRun {
    /// Judges each recorded trial by itself with the code of today, its samples summed up anew, under these gates.
    pub fn judge(&self, gates: &[Gate]) -> Vec<trial::JudgedTrial> {
        let mut spec = self.spec.clone();
        spec.gates = gates.to_vec();
        spec.trials.rule = TrialRule::Single;
        let (gpus, node_gpus) = self.gpus;
        let object = PerfValidation::new("recorded", spec);
        let hardware = self.hardware.as_ref().filter(|_| self.place == Place::Silicon);
        let judged = |trial: &LabTrial| {
            let mut record = trial.record.clone();
            record.workers = trial.workers();
            let share = Share { gpus, node_gpus };
            let evidence = trial::Evidence {
                before: &trial.before,
                after: &trial.after,
                devices: hardware.map_or(&[], |hardware| hardware.devices.as_slice()),
                product: hardware.map(|hardware| hardware.product.as_str()),
                ..trial::Evidence::new(&record, share)
            };
            judge::judge(&object, Some(share), &[evidence], DateTime::UNIX_EPOCH).trials
        };
        self.trials.iter().flat_map(judged).collect()
    }
}

impl LabRun {
    /// True if both are the same recording, brought back twice.
    pub fn same_as(&self, other: &Self) -> bool {
        let identity = |run: &Self| (run.place, run.recorded, run.deployment.clone(), run.router, run.fault);
        // A run may have had a fault of its own in each trial.
        self.recorded.is_some() && identity(self) == identity(other) && self.conditions == other.conditions
    }
}

impl LabTrial {
    /// Work of each worker, summed up by the code of today.
    pub fn workers(&self) -> Vec<WorkerSummary> {
        if self.series.is_empty() {
            return self.record.workers.clone();
        }
        summarize(&self.series, self.record.outcome.measured_seconds())
    }
}

/// Reads recorded runs, one JSON object a line, packed or not. A missing file holds none.
///
/// # Errors
/// If a line cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<LabRun>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines: Box<dyn io::BufRead> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(BufReader::new(GzDecoder::new(file)))
    } else {
        Box::new(BufReader::new(file))
    };
    lines
        .lines()
        .map(|line| serde_json::from_str(&line?).map_err(io::Error::other))
        .collect()
}

/// Adds a run to an unpacked file at once, so that an interrupted matrix is worth what it has.
///
/// # Errors
/// If the file cannot be written.
pub fn append(path: &Path, run: &LabRun) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    writeln!(file, "{}", serde_json::to_string(run)?)
}

/// Packs runs into one file; equal runs give equal bytes.
///
/// # Errors
/// If the file cannot be written.
pub fn pack(path: &Path, runs: &[LabRun]) -> io::Result<()> {
    let mut packed = GzBuilder::new()
        .mtime(0)
        .write(File::create(path)?, Compression::best());
    for run in runs {
        writeln!(packed, "{}", serde_json::to_string(run)?)?;
    }
    packed.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_single_trials_of_one_run_are_recordings_of_their_own() {
        let runs = read(Path::new("recorded.jsonl.gz")).expect("the recorded runs");
        let of_four = |run: &&LabRun| run.hardware.as_ref().is_some_and(|hardware| hardware.gpus == 4);
        let slow: Vec<&LabRun> = runs
            .iter()
            .filter(of_four)
            .filter(|run| run.fault == Fault::SlowGpu)
            .collect();
        let same = |one: &LabRun| slow.iter().filter(|other| one.same_as(other)).count();
        assert!(
            slow.len() >= 4 && slow.iter().all(|one| same(one) == 1),
            "{}",
            slow.len()
        );
    }
}
