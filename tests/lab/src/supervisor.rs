//! Keeps the lab's processes: starts them in order, notices every death, stops and restarts on request.

mod control;
mod plan;
mod process;
mod report;
#[cfg(test)]
mod tests;

pub mod client;

use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

pub use plan::{Invocation, PATIENCE_SECONDS, Plan, Process, Step};
pub use report::{Phase, Reply, Report, Request, State};

use process::Processes;

use crate::command::tail;
use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;

/// How soon an `Await` tries again.
const RETRY: Duration = Duration::from_millis(250);
/// How long one try of an `Await` may take.
const TRY: Duration = Duration::from_secs(30);

/// The body of `lab supervise`: runs the plan of a state folder and serves requests until it is killed.
pub fn run(state: &StateDir) -> Result<(), Error> {
    let file = state.plan();
    let plan = fs::read_to_string(&file).file("read", &file)?;
    let plan: Plan = serde_json::from_str(&plan).map_err(|source| Error::Json {
        what: file.display().to_string(),
        source,
    })?;
    let runtime = tokio::runtime::Runtime::new().map_err(Error::Runtime)?;
    runtime.block_on(supervise(state, plan))
}

async fn supervise(state: &StateDir, plan: Plan) -> Result<(), Error> {
    let (reports, _) = watch::channel(Report::new(&plan.title));
    let processes = Arc::new(Processes::new(state.clone(), plan.clone(), reports.clone()));
    let listener = tokio::net::UnixListener::bind(state.socket()).file("listen on", state.socket())?;
    tokio::spawn(control::serve(listener, Arc::clone(&processes)));
    tokio::spawn(remember(state.clone(), reports.subscribe()));

    let outcome = bring_up(&plan, &processes).await;
    let phase = outcome.map_or_else(Phase::Failed, |()| Phase::Up);
    println!("{phase:?}");
    reports.send_modify(|report| report.phase = phase);
    // Only a kill ends the lab: `lab down` and a crash take the same way.
    std::future::pending().await
}

/// Keeps the last report on disk for whoever comes after a crash.
async fn remember(state: StateDir, mut reports: watch::Receiver<Report>) {
    while reports.changed().await.is_ok() {
        let report = reports.borrow_and_update().clone();
        let text = serde_json::to_string_pretty(&report).map_err(io::Error::from);
        if let Err(error) = text.and_then(|text| fs::write(state.status(), text)) {
            eprintln!("cannot write {}: {error}", state.status().display());
        }
    }
}

async fn bring_up(plan: &Plan, processes: &Arc<Processes>) -> Result<(), String> {
    for step in &plan.steps {
        match step {
            Step::Start(process) => {
                processes.announce(&format!("starting {}", process.name));
                processes.start(&process.name)?;
            }
            Step::Run { what, command } => {
                processes.announce(what);
                processes
                    .or_death(run_once(command))
                    .await?
                    .map_err(|said| format!("{what}: {said}"))?;
            }
            Step::Await {
                what,
                command,
                deadline_seconds,
            } => {
                processes.announce(what);
                let deadline = Duration::from_secs(*deadline_seconds);
                processes
                    .or_death(run_until_success(command, deadline))
                    .await?
                    .map_err(|said| format!("{what}: {said}"))?;
            }
        }
    }
    Ok(())
}

async fn run_once(invocation: &Invocation) -> Result<(), String> {
    let output = process::command(invocation).kill_on_drop(true).output().await;
    let output = output.map_err(|error| format!("cannot start {}: {error}", invocation.program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Err(format!(
        "{} {}: {}",
        invocation.program.display(),
        output.status,
        tail(&said, 2000)
    ))
}

async fn run_until_success(invocation: &Invocation, deadline: Duration) -> Result<(), String> {
    let started = Instant::now();
    loop {
        let said = match timeout(TRY, run_once(invocation)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(said)) => said,
            Err(_) => format!("{} took longer than {} s", invocation.program.display(), TRY.as_secs()),
        };
        if started.elapsed() > deadline {
            return Err(format!("not within {} s; last: {said}", deadline.as_secs()));
        }
        sleep(RETRY).await;
    }
}
