use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use perfval_verdict::aiperf::Measure;
use perfval_verdict::frame::{Failure, Outcome, Payload, TrialRecord, frame, message};
use perfval_verdict::gpus::{self, GpuRecord, GpuSeries, Recorder};
use perfval_verdict::node_facts::NodeFacts;
use perfval_verdict::workers::{MeasuredPhase, WorkerSeries, summarize};
use rust_decimal::Decimal;

use crate::aiperf::{self, Limits};
use crate::cpu::{Cpu, NodeSampler};
use crate::error::Error;
use crate::model;
use crate::outcome;
use crate::progress::ProgressReporter;
use crate::sampler::Sampler;
use crate::telemetry;
use crate::ticker::{Ticker, seconds_since};

/// Samples of all workers together that go into the log; thinned beyond it. Up to 250 KB: 127 bytes each with the counters of
/// vLLM (H200).
const LOGGED_SAMPLES: usize = 2000;

/// Samples of all GPUs together that go into the log; thinned beyond it: a GPU has more numbers.
const LOGGED_GPU_SAMPLES: usize = 800;

/// Options of one trial.
#[derive(Args)]
pub struct Options {
    /// Unique word of the trial: marks its record, so that no other is taken for it.
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
    /// Page of the node's DCGM exporter, such as `http://10.244.0.7:9400/metrics`. Absent: the GPUs are not read.
    #[arg(long, value_name = "URL")]
    gpu_metrics: Option<String>,
    /// Namespace of the run: pods of others that hold a GPU are counted, but their names are not recorded.
    #[arg(long, default_value = "")]
    namespace: String,
    /// A statistic that a gate needs, as Metric/Statistic: always part of the termination message.
    #[arg(long)]
    gated: Vec<Measure>,
    /// File that Kubernetes reads the termination message from.
    #[arg(long, default_value = "/dev/termination-log")]
    termination_log: PathBuf,
    /// Folder of the cgroup whose CPU is the load generator's. Absent: the runner's own.
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// Node under test.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Node of this pod. If it is the node under test, the CPUs of the node are recorded.
    #[arg(long, value_name = "NAME", env = "PERFVAL_NODE")]
    own_node: Option<String>,
    /// Folder above `proc` and `sys`, from which counters and facts of the node are read.
    #[arg(long, default_value = "/", value_name = "DIR")]
    root: PathBuf,
    #[command(flatten)]
    limits: Limits,
    /// The command and its arguments; no shell touches them.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the trial and hands over its record; answers with the exit code.
pub fn run(options: &Options) -> Result<u8, Error> {
    let payload = match measure(options) {
        Ok(payload) => payload,
        // An obstacle is recorded like any other failure: the operator reads records, not exit codes.
        Err(error) => Payload::new(failed(options, &error)),
    };
    let record = &payload.record;
    if let Err(error) = fs::write(&options.termination_log, message(record, &options.gated)) {
        eprintln!(
            "perfval-runner: cannot write {}: {error}",
            options.termination_log.display()
        );
    }
    let exit_code = u8::try_from(record.exit_code).unwrap_or(1);
    print_frame(&payload)?;
    Ok(exit_code)
}

fn measure(options: &Options) -> Result<Payload, Error> {
    for earlier in [outcome::EXPORT, outcome::RECORDS, outcome::SERVER_METRICS] {
        clear(&options.artifact_dir, &options.artifact_dir.join(earlier))?;
    }

    let started = Instant::now();
    let sampler = Sampler::start(&options.workers_host, options.workers_port);
    let gpus = options.gpu_metrics.as_deref();
    let gpus = gpus.map(|url| telemetry::start(url, &options.namespace));
    let reporter = ProgressReporter::start(options.artifact_dir.join(outcome::RECORDS), options.nonce.clone());
    let cpu = Cpu::start(options.cgroup.as_deref());
    let node = NodeSampler::start(
        &options.root.join("proc"),
        options.own_node.as_deref(),
        options.node.as_deref(),
    );
    let ended = aiperf::run(&options.command, &options.limits);
    let over = seconds_since(started);
    reporter.stop();
    let gpus = gpus.map(Ticker::stop);
    let (mut series, errors) = sampler.stop();
    let ended = ended?;

    let mut judged = outcome::judge(&ended, &options.artifact_dir);
    let measured = judged.outcome.measured_seconds();
    let phase = MeasuredPhase::new(&series, measured);
    // Requests that wait for their time-out are not measured, nor are pages that come after AIPerf's end.
    let over = (over - phase.waited()).max(phase.last).min(over);
    let cpu = cpu.and_then(|cpu| cpu.stop(measured, over));
    let node_cpu = node.and_then(|node| node.stop(measured, over));
    if let Outcome::Report(report) = &mut judged.outcome {
        report.generator.cpu = cpu;
    }
    let (record, gpus) = gpus.map(|gpus| gpu_record(gpus, &series, measured)).unzip();
    let variable = |name: &str| std::env::var(name).ok();
    let mut payload = Payload::new(TrialRecord {
        nonce: options.nonce.clone(),
        exit_code: judged.exit_code,
        workers: summarize(&series, measured),
        scrape_errors: errors,
        gpus: record,
        node_cpu,
        commit: model::from_command(&options.command).and_then(|model| model::commit(model, variable)),
        outcome: judged.outcome,
        // All fields, so that none is forgotten.
        abridged: BTreeSet::new(),
    });
    let read = |path: &str| fs::read_to_string(options.root.join(path)).ok();
    payload.node = options.own_node.as_deref().map(|node| NodeFacts::read(node, read));
    let each = LOGGED_SAMPLES / series.len().max(1);
    for worker in &mut series {
        worker.thin(each);
    }
    payload.workers = series;
    payload.gpus = gpus.unwrap_or_default();
    // Last of all: of millions of requests it takes seconds.
    payload.requests = outcome::requests(&options.artifact_dir);
    match judged.export {
        Some(export) => payload.with_export(&export).map_err(|e| Error::Frame(e.into())),
        None => Ok(payload),
    }
}

/// Telemetry of the GPUs, and their samples for the log.
fn gpu_record(telemetry: Recorder, workers: &[WorkerSeries], measured: Option<Decimal>) -> (GpuRecord, Vec<GpuSeries>) {
    let (pages, errors, mut series) = telemetry.finish();
    let record = gpus::summarize(pages, errors, &series, workers, measured);
    let each = LOGGED_GPU_SAMPLES / series.len().max(1);
    for gpu in &mut series {
        gpu.thin(each);
    }
    (record, series)
}

/// Deletes the results of an earlier run, so that they are not taken for this one's.
fn clear(dir: &Path, file: &Path) -> Result<(), Error> {
    let wrong = |source| Error::ArtifactDir {
        dir: dir.to_owned(),
        source,
    };
    fs::create_dir_all(dir).map_err(wrong)?;
    match fs::remove_file(file) {
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
        ..TrialRecord::new(Outcome::Failure(failure))
    }
}

/// The last thing in the log, so that it is what rotation cuts last.
fn print_frame(payload: &Payload) -> Result<(), Error> {
    let frame = frame(payload).map_err(|e| Error::Frame(e.into()))?;
    let mut out = io::stdout().lock();
    out.write_all(frame.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Error::Frame)
}
