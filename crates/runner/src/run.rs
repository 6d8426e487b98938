use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use perfval_verdict::aiperf::Measure;
use perfval_verdict::frame::{Failure, Outcome, Payload, TrialRecord, frame, message};
use perfval_verdict::workers::{WorkerSeries, summarize};

use crate::aiperf::{self, Limits};
use crate::error::Error;
use crate::outcome;
use crate::sampler::{Sampler, Samples};

/// Samples of all workers together that go into the log; thinned beyond it. About 60 KB.
const LOGGED_SAMPLES: usize = 2000;

/// How one trial is run.
#[derive(Args)]
pub struct Options {
    /// The trial's own word: marks its record, so that no other is taken for it.
    #[arg(long)]
    nonce: String,
    /// Directory that AIPerf writes to; the same as its --output-artifact-dir.
    #[arg(long)]
    artifact_dir: PathBuf,
    /// Name of the workers' headless Service; every address behind it is sampled. Absent: no samples.
    #[arg(long)]
    workers_host: Vec<String>,
    /// Port of the workers' metrics.
    #[arg(long, default_value_t = 9090)]
    workers_port: u16,
    /// A statistic that a gate needs, as Metric/Statistic: always part of the termination message.
    #[arg(long)]
    gated: Vec<Measure>,
    /// File that Kubernetes reads the termination message from.
    #[arg(long, default_value = "/dev/termination-log")]
    termination_log: PathBuf,
    #[command(flatten)]
    limits: Limits,
    /// The command and its arguments; no shell touches them.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the trial and hands over its record; answers with the exit code.
pub fn run(options: &Options) -> Result<u8, Error> {
    let (record, export, workers) = match measure(options) {
        Ok(measured) => measured,
        // What stands in the way is told like any other failure: the operator reads records, not exit codes.
        Err(error) => (failed(options, &error), None, Vec::new()),
    };
    if let Err(error) = fs::write(&options.termination_log, message(&record, &options.gated)) {
        eprintln!(
            "perfval-runner: cannot write {}: {error}",
            options.termination_log.display()
        );
    }
    let exit_code = u8::try_from(record.exit_code).unwrap_or(1);
    print_frame(record, export, workers)?;
    Ok(exit_code)
}

type Measured = (TrialRecord, Option<String>, Vec<WorkerSeries>);

fn measure(options: &Options) -> Result<Measured, Error> {
    let export = options.artifact_dir.join(outcome::EXPORT);
    clear(&options.artifact_dir, &export)?;

    let sampler = Sampler::start(&options.workers_host, options.workers_port);
    let ended = aiperf::run(&options.command, &options.limits);
    let Samples { mut series, errors } = sampler.stop();
    let ended = ended?;

    let judged = outcome::of(&ended, &options.artifact_dir);
    let record = TrialRecord {
        nonce: options.nonce.clone(),
        exit_code: judged.exit_code,
        workers: summarize(&series, judged.outcome.measured_seconds()),
        outcome: judged.outcome,
        scrape_errors: errors,
        abridged: BTreeSet::new(),
    };
    let each = LOGGED_SAMPLES / series.len().max(1);
    for worker in &mut series {
        worker.thin(each);
    }
    Ok((record, judged.export, series))
}

/// An export of an earlier run must not be taken for this one's.
fn clear(dir: &Path, export: &Path) -> Result<(), Error> {
    let wrong = |source| Error::ArtifactDir {
        dir: dir.to_owned(),
        source,
    };
    fs::create_dir_all(dir).map_err(wrong)?;
    match fs::remove_file(export) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(wrong(source)),
        _ => Ok(()),
    }
}

fn failed(options: &Options, error: &Error) -> TrialRecord {
    eprintln!("perfval-runner: {error}");
    let message = error.to_string();
    let failure = match error {
        Error::NotExecutable { .. } => Failure::NotExecutable { message },
        _ => Failure::Misconfigured { message },
    };
    TrialRecord {
        nonce: options.nonce.clone(),
        exit_code: error.exit_code().into(),
        outcome: Outcome::Failure(failure),
        workers: Vec::new(),
        scrape_errors: BTreeMap::new(),
        abridged: BTreeSet::new(),
    }
}

/// The last thing in the log, so that it is what rotation cuts last.
fn print_frame(record: TrialRecord, export: Option<String>, workers: Vec<WorkerSeries>) -> Result<(), Error> {
    let mut payload = Payload {
        record,
        aiperf: None,
        workers,
    };
    if let Some(export) = export {
        payload = payload.with_export(&export).map_err(|e| Error::Frame(e.into()))?;
    }
    let frame = frame(&payload).map_err(|e| Error::Frame(e.into()))?;
    let mut out = io::stdout().lock();
    out.write_all(frame.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Error::Frame)
}
