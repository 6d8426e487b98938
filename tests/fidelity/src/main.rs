//! `just fidelity`: how often the verdict is right, on recorded runs and on the lab.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use perfval_e2e::{Lab, Operator};
use perfval_fidelity::corpus::{self, LabRun};
use perfval_fidelity::fault::Fault;
use perfval_fidelity::matrix::{Calibration, Case, cases};
use perfval_fidelity::{lab_run, page, rejudged, whole};
use serde_json::{Value, json};

/// Recorded runs, and the lab's matrix of routers and faults.
#[derive(Parser)]
struct Cli {
    /// The lab's program: records the matrix there. Without it only the recorded runs are judged.
    #[arg(long, requires_all = ["config", "record"])]
    lab: Option<PathBuf>,
    /// The project's config folder.
    #[arg(long)]
    config: Option<PathBuf>,
    /// File that each run of the lab is added to at once (JSON lines).
    #[arg(long)]
    record: Option<PathBuf>,
    /// Trials recorded without a cluster, by tests/fidelity/rig, simulated or on real GPUs.
    #[arg(long, num_args = 1..)]
    add: Vec<PathBuf>,
    /// Start no further case after so many minutes.
    #[arg(long, default_value_t = 40)]
    minutes: u64,
    /// Only these faults.
    #[arg(long, value_enum)]
    fault: Vec<Fault>,
    /// Packed runs of the lab that the page is written from.
    #[arg(long, default_value = "tests/fidelity/recorded.jsonl.gz")]
    runs: PathBuf,
    /// Pack what was recorded or is added, in addition to what is packed.
    #[arg(long)]
    pack: bool,
    /// The page.
    #[arg(long, default_value = "docs/evidence/fidelity.md")]
    page: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fidelity: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<(), String> {
    let complete = match (&cli.lab, &cli.config, &cli.record) {
        (Some(lab), Some(config), Some(record)) => matrix(&cli, lab, config, record).await?,
        _ => true,
    };
    if cli.pack {
        repack(&cli).map_err(|error| named(&cli.runs, &error))?;
    }
    let runs = corpus::read(&cli.runs).map_err(|error| named(&cli.runs, &error))?;
    let (texts, whole) = (page::texts(&runs), whole::page());
    for (name, text) in [
        ("fidelity.md", texts.page),
        ("trials.csv", texts.trials),
        ("simulated.md", whole.page),
        ("runs.csv", whole.runs),
        ("claims.csv", whole.claims),
    ] {
        let path = cli.page.with_file_name(name);
        std::fs::write(&path, text).map_err(|error| named(&path, &error))?;
    }
    if complete {
        return Ok(());
    }
    Err("not every case was run: type it again to go on".to_owned())
}

/// Adds what is not packed yet. Nothing is ever taken out: a trial that does not count stands in `excluded.csv`.
fn repack(cli: &Cli) -> std::io::Result<()> {
    let mut runs = corpus::read(&cli.runs)?;
    for file in cli.record.iter().chain(&cli.add) {
        for run in corpus::read(file)? {
            if !runs.iter().any(|known| known.same_as(&run)) {
                runs.push(run);
            }
        }
    }
    runs.sort_by_key(|run| run.place);
    corpus::pack(&cli.runs, &runs)
}

fn named(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Runs every case that is not recorded yet; whether all are recorded now.
async fn matrix(cli: &Cli, lab: &Path, config: &Path, record: &Path) -> Result<bool, String> {
    let began = Instant::now();
    let lab = Lab::at(lab.to_owned()).await;
    Operator::install(&lab, &config.to_string_lossy()).await;
    lab.run(&["fault", "clear"]).await;
    // A worker that stands still for ten seconds lives on, as with Dynamo 1.5 and later.
    lab.run(&["fault", "dgd", "liveness=3"]).await;
    let mut complete = true;
    for case in cases() {
        if !cli.fault.is_empty() && !cli.fault.contains(&case.fault) {
            continue;
        }
        let known = corpus::read(record).map_err(|error| named(record, &error))?;
        if case.repeats_in(&known) >= case.repeats {
            continue;
        }
        if began.elapsed() > Duration::from_mins(cli.minutes) {
            println!("{:>5} s  the time is up", began.elapsed().as_secs());
            return Ok(false);
        }
        let gates = gates(&known, &case);
        let (lab_of_case, at) = (lab.clone(), case);
        // A case that panics must not take the others along.
        match tokio::spawn(async move { lab_run::run(&lab_of_case, &at, &gates).await }).await {
            Ok(runs) => {
                for run in &runs {
                    corpus::append(record, run).map_err(|error| named(record, &error))?;
                    report(began, run);
                }
            }
            Err(error) => {
                println!("{:>5} s  {}: {error}", began.elapsed().as_secs(), case.name());
                complete = false;
                lab_run::clean_up(&lab, &case).await;
            }
        }
    }
    Ok(complete)
}

/// Healthy runs meet any gate and set those of all others.
fn gates(known: &[LabRun], case: &Case) -> Value {
    let calibrated = rejudged::calibrate(known.iter()).filter(|_| case.fault != Fault::Healthy);
    calibrated.map_or_else(
        || {
            json!([
                {"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"},
                {"name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "60000"},
            ])
        },
        Calibration::gates,
    )
}

fn report(began: Instant, run: &LabRun) {
    let Some(live) = &run.live else { return };
    let trials: Vec<String> = live
        .trials
        .iter()
        .map(|(outcome, causes)| format!("{outcome:?}{causes:?}"))
        .collect();
    println!(
        "{:>5} s  {:<16} {:<34} {:>4} s  {:?} {} {}",
        began.elapsed().as_secs(),
        run.router.flag(),
        run.fault.title(),
        run.seconds,
        live.verdict,
        live.reason,
        trials.join(" ")
    );
}
