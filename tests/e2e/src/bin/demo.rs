//! `just demo`: one whole run on the lab, shown as it happens.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use chrono::Utc;
use clap::Parser;
use perfval_api::{GateResult, PerfValidationStatus, Phase, TrialProgress, Verdict, condition};
use perfval_e2e::{Audit, Gpus, Lab, Operator, Validation, leftovers};

/// Longest the demo waits for its verdict.
const LIMIT: Duration = Duration::from_mins(10);
/// Longest that nothing is printed.
const SILENCE: Duration = Duration::from_secs(8);
const NAMESPACE: &str = "perf";
const NAME: &str = "demo";

/// One whole run on the lab.
#[derive(Parser)]
struct Cli {
    /// The lab's program.
    #[arg(long)]
    lab: PathBuf,
    /// The project's config folder.
    #[arg(long)]
    config: PathBuf,
    /// Leave the object in place for exploring.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let lab = Lab::at(cli.lab.clone()).await;
    let config = cli.config.to_string_lossy().into_owned();

    title("install the operator: kubectl apply -k config/lab");
    Operator::install(&lab, &config).await;
    lab.namespace(NAMESPACE).await;

    title("kubectl apply -f config/samples/demo.yaml");
    let since = Utc::now();
    print!(
        "{}",
        lab.kubectl(&["apply", "-f", &format!("{config}/samples/demo.yaml")])
            .await
    );
    let run = Validation::existing(&lab, NAMESPACE, NAME);
    let Some(status) = follow(&run).await else {
        eprintln!("no verdict within {LIMIT:?}: kubectl describe perfval -n {NAMESPACE} {NAME}");
        return ExitCode::FAILURE;
    };

    title("kubectl get perfvalidations");
    print!("{}", lab.kubectl(&["get", "perfvalidations", "-n", NAMESPACE]).await);
    show_gates(&status);
    show_trials(&status);
    show_findings(&status);
    show_writes(&lab, since).await;
    let clean = show_cleanup(&lab, &status).await;
    println!(
        "\nVERDICT  {}  {}",
        verdict(&status),
        status.message.as_deref().unwrap_or_default()
    );
    if cli.keep {
        explain_keep(&status);
    } else {
        run.delete().await;
    }
    if clean && status.verdict == Some(Verdict::Passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn title(text: &str) {
    println!("\n── {text}");
}

/// Prints a line for every phase and message, and one at least every [`SILENCE`], until the run is over.
async fn follow(run: &Validation) -> Option<PerfValidationStatus> {
    let began = Instant::now();
    let (mut shown, mut printed) = ((None, String::new()), Instant::now());
    while began.elapsed() < LIMIT {
        if let Ok(status) = run.status().await {
            let line = (status.phase, status.message.clone().unwrap_or_default());
            if status.phase.is_some() && (line != shown || printed.elapsed() >= SILENCE) {
                let progress = status.state.progress.as_ref().filter(|_| line == shown);
                let text = progress.map_or(line.1.clone(), |progress| {
                    let TrialProgress {
                        trial,
                        requests,
                        seconds,
                        ..
                    } = progress;
                    format!("trial {trial}: {requests} requests answered in {seconds} s")
                });
                let phase = status.phase.map_or("", Phase::as_str);
                println!("{:>6.1} s  {phase:<16} {text}", began.elapsed().as_secs_f64());
                let _ = io::stdout().flush();
                (shown, printed) = (line, Instant::now());
            }
            if status.phase == Some(Phase::Completed) {
                return Some(status);
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    None
}

fn verdict(status: &PerfValidationStatus) -> &'static str {
    status.verdict.map_or("none", Verdict::as_str)
}

fn show_gates(status: &PerfValidationStatus) {
    title("gates");
    println!(
        "{:<16} {:>12} {:>12} {:>12}  result",
        "gate", "observed", "threshold", "effective"
    );
    for gate in &status.gates {
        let observed = gate.observed.as_deref().unwrap_or("-");
        let threshold = status.state.thresholds.get(&gate.name).map_or("-", String::as_str);
        let result = match gate.result {
            GateResult::Met => "met",
            GateResult::Missed => "MISSED",
            GateResult::Warned => "missed (warn only)",
            GateResult::Unmeasured => "not measured",
        };
        println!(
            "{:<16} {observed:>12} {:>12} {:>12}  {result}",
            gate.name, threshold, gate.effective
        );
    }
}

fn show_trials(status: &PerfValidationStatus) {
    title("trials");
    println!(
        "{:<6} {:<8} {:>12} {:>14} {:>9} {:>8}  causes",
        "trial", "outcome", "tok/s", "TTFT p99 ms", "requests", "errors"
    );
    for trial in &status.state.trials {
        let number = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
        println!(
            "{:<6} {:<8} {:>12} {:>14} {:>9} {:>8}  {}",
            trial.number,
            trial.outcome.map_or("-".to_owned(), |outcome| format!("{outcome:?}")),
            trial.throughput.as_deref().unwrap_or("-"),
            trial.ttft_p99_ms.as_deref().unwrap_or("-"),
            number(trial.requests),
            number(trial.errors),
            trial.causes.join(", ")
        );
    }
}

fn show_findings(status: &PerfValidationStatus) {
    for finding in &status.diagnosis {
        println!(
            "{:?} {}: {}\n  → {}",
            finding.severity, finding.cause, finding.evidence, finding.remedy
        );
    }
}

async fn show_writes(lab: &Lab, since: chrono::DateTime<Utc>) {
    title("what it cost (audit log)");
    let audit = Audit::read(lab, NAMESPACE, since).await;
    let each: Vec<String> = audit
        .writes
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    println!(
        "API writes of the operator, lease renewals aside: {} ({})",
        audit.total(),
        each.join(", ")
    );
    if let Some(median) = audit.reactions.median_seconds() {
        println!("from a change of a trial's Job to the operator's next write: median {median:.3} s");
    }
}

async fn show_cleanup(lab: &Lab, status: &PerfValidationStatus) -> bool {
    title("cleanup");
    let cleaned = condition::find(status, condition::CLEANED_UP);
    println!(
        "{}",
        cleaned.map_or("no CleanedUp condition", |cleaned| cleaned.message.as_str())
    );
    let left = leftovers(lab, NAMESPACE, NAME).await;
    let gpus = Gpus::count(lab).await;
    println!(
        "objects, pods and claims left: {}",
        if left.is_empty() {
            "none".to_owned()
        } else {
            left.join(", ")
        }
    );
    println!("{} of {} GPUs are free", gpus.free(), gpus.all);
    left.is_empty() && gpus.held.is_empty()
}

/// The number of a GPU that the run had, as `lab fault slow-gpu` takes it.
fn a_gpu_of(status: &PerfValidationStatus) -> Option<&str> {
    let worker = status.state.worker_pods.first()?;
    Some(worker.devices.first()?.rsplit_once('-')?.1)
}

fn explain_keep(status: &PerfValidationStatus) {
    title("explore (the lab stays up)");
    println!(".ci/just lab-exec kubectl perfval describe {NAME} -n {NAMESPACE}      # the verdict, and why");
    println!(
        ".ci/just lab-exec kubectl perfval report {NAME} -n {NAMESPACE}        # the same as a page for a browser"
    );
    println!(".ci/just lab-exec kubectl perfval rerun {NAME} -n {NAMESPACE} --watch # measure again, and follow it");
    if let Some(gpu) = a_gpu_of(status) {
        println!(".ci/just lab fault slow-gpu {gpu} 0.4                               # make one of its GPUs slow");
    }
    println!(".ci/just lab-exec kubectl get perfvalidations -A                # what plain kubectl shows");
    println!(".ci/just lab-down                                               # ends it and removes every trace");
}
