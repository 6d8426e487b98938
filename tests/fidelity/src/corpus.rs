//! Trials as they were recorded, on the lab or on loopback: enough to judge them again, with later code and other gates.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use chrono::DateTime;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use perfval_api::{
    Gate, PerfValidation, PerfValidationSpec, RouterMode, TrialOutcome, TrialRule, Verdict, WorkerStatus,
};
use perfval_verdict::frame::TrialRecord;
use perfval_verdict::gate::Share;
use perfval_verdict::judge::{self, Recorded};
use perfval_verdict::trial;
use perfval_verdict::workers::{WorkerSeries, summarize};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// Trials of one router under one fault: a run of the operator on the lab, or trials of its runner on loopback.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct LabRun {
    /// How the frontend routed.
    pub router: RouterMode,
    /// What was wrong.
    pub fault: Fault,
    /// What was asked.
    pub spec: PerfValidationSpec,
    /// GPUs in use, and of the node.
    pub gpus: (i64, i64),
    /// What the operator said then; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// Its trials, in order.
    pub trials: Vec<LabTrial>,
    /// From creation to the verdict (s).
    pub seconds: u64,
    /// Processes that wanted a CPU of the machine at its end, mean of five minutes.
    pub load: f64,
}

/// What the operator itself said of a run.
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
    /// What the runner handed over.
    pub record: TrialRecord,
    /// The workers' samples.
    pub series: Vec<WorkerSeries>,
    /// The workers when it began.
    pub before: Vec<WorkerStatus>,
    /// The workers when it ended.
    pub after: Vec<WorkerStatus>,
}

impl LabRun {
    /// Judges each recorded trial by itself with the code of today, under these gates.
    pub fn judge(&self, gates: &[Gate]) -> Vec<trial::JudgedTrial> {
        let mut spec = self.spec.clone();
        spec.gates = gates.to_vec();
        spec.trials.rule = TrialRule::Single;
        let (gpus, node_gpus) = self.gpus;
        let object = PerfValidation::new("recorded", spec);
        let judged = |trial: &LabTrial| {
            let share = Some(Share { gpus, node_gpus });
            judge::judge(&object, share, &[trial.recorded()], DateTime::UNIX_EPOCH).trials
        };
        self.trials.iter().flat_map(judged).collect()
    }
}

impl LabTrial {
    /// The trial with its samples summed up by the code of today.
    fn recorded(&self) -> Recorded {
        let mut record = self.record.clone();
        if !self.series.is_empty() {
            record.workers = summarize(&self.series, record.outcome.measured_seconds());
        }
        Recorded {
            record,
            before: self.before.clone(),
            after: self.after.clone(),
        }
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
