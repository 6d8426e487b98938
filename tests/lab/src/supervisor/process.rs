//! The supervised processes: one task waits for each, so that no death goes unnoticed.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::plan::{Invocation, Plan, Process};
use super::report::{Report, State};
use crate::command::tail;
use crate::paths::StateDir;

/// The API server takes a minute to leave by itself, which no test wants to wait for: then it is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// How much of a dead process's log a report holds, in bytes.
const LOG_SHOWN: usize = 2000;

/// All processes of a lab and the report about them.
pub struct Processes {
    state: StateDir,
    plan: Plan,
    reports: watch::Sender<Report>,
    /// Processes that were asked to end: their exit is no death.
    stopping: Mutex<BTreeSet<String>>,
}

/// An invocation as a command that reads nothing.
pub fn command(invocation: &Invocation) -> Command {
    let mut command = Command::new(&invocation.program);
    command
        .args(&invocation.args)
        .envs(&invocation.env)
        .stdin(Stdio::null());
    command
}

impl Processes {
    /// None started yet.
    pub fn new(state: StateDir, plan: Plan, reports: watch::Sender<Report>) -> Self {
        Self {
            state,
            plan,
            reports,
            stopping: Mutex::default(),
        }
    }

    /// Follows the report from now on.
    pub fn reports(&self) -> watch::Receiver<Report> {
        self.reports.subscribe()
    }

    /// Prints what is being done.
    pub fn announce(&self, what: &str) {
        println!("{what}");
        self.reports
            .send_modify(|report| report.phase = super::Phase::Starting(what.to_owned()));
    }

    /// Waits for a step, but not past the death of any process.
    pub async fn or_death<T>(&self, step: impl Future<Output = T>) -> Result<T, String> {
        let mut reports = self.reports();
        let death = async move {
            let died = reports.wait_for(|report| report.death().is_some()).await;
            died.ok()
                .and_then(|report| report.death())
                .unwrap_or_else(|| "the supervisor ends".to_owned())
        };
        tokio::select! {
            result = step => Ok(result),
            death = death => Err(death),
        }
    }

    /// Starts a process of the plan that is not running.
    pub fn start(self: &Arc<Self>, name: &str) -> Result<(), String> {
        let process = self.planned(name).ok_or_else(|| self.unknown(name))?;
        if matches!(self.state_of(name), Some(State::Running(_))) {
            return Err(format!("{name} is already running"));
        }
        let child = self
            .spawn(process)
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let pid = child.id().unwrap_or_default();
        self.stopping().remove(name);
        self.set(name, State::Running(pid));
        tokio::spawn(Arc::clone(self).watch_over(name.to_owned(), child));
        Ok(())
    }

    fn spawn(&self, process: &Process) -> std::io::Result<Child> {
        let path = self.state.log(&process.name);
        let log = OpenOptions::new().create(true).append(true).open(path)?;
        let errors = log.try_clone()?;
        command(&process.command).stdout(log).stderr(errors).spawn()
    }

    async fn watch_over(self: Arc<Self>, name: String, mut child: Child) {
        let how = child
            .wait()
            .await
            .map_or_else(|error| error.to_string(), |status: ExitStatus| status.to_string());
        let asked = self.stopping().remove(&name);
        if asked {
            self.set(&name, State::Stopped);
        } else {
            let log = fs::read(self.state.log(&name)).unwrap_or_default();
            let log = tail(&String::from_utf8_lossy(&log), LOG_SHOWN).to_owned();
            eprintln!("{name} died: {how}");
            self.set(&name, State::Died { how, log });
        }
    }

    /// Ends a process and waits until it has ended.
    pub async fn stop(&self, name: &str) -> Result<(), String> {
        self.end(name, Signal::SIGTERM).await
    }

    /// Ends a process that may not say goodbye, and waits until it has ended.
    pub async fn kill(&self, name: &str) -> Result<(), String> {
        self.end(name, Signal::SIGKILL).await
    }

    async fn end(&self, name: &str, by: Signal) -> Result<(), String> {
        let Some(State::Running(pid)) = self.state_of(name) else {
            return Err(match self.planned(name) {
                Some(_) => format!("{name} is not running"),
                None => self.unknown(name),
            });
        };
        self.stopping().insert(name.to_owned());
        let mut reports = self.reports();
        let ended = |report: &Report| !matches!(report.processes.get(name), Some(State::Running(_)));
        signal(pid, by)?;
        if timeout(STOP_DEADLINE, reports.wait_for(ended)).await.is_err() {
            signal(pid, Signal::SIGKILL)?;
            reports.wait_for(ended).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn planned(&self, name: &str) -> Option<&Process> {
        self.plan.processes().find(|process| process.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.plan.processes().map(|process| process.name.as_str()).collect();
        format!("no process {name:?}; there are {}", known.join(", "))
    }

    fn state_of(&self, name: &str) -> Option<State> {
        self.reports.borrow().processes.get(name).cloned()
    }

    fn set(&self, name: &str, state: State) {
        self.reports.send_modify(|report| {
            report.processes.insert(name.to_owned(), state);
        });
    }

    fn stopping(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signal(pid: u32, signal: Signal) -> Result<(), String> {
    let pid = i32::try_from(pid).map_err(|error| error.to_string())?;
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
        Err(error) => Err(format!("cannot send {signal} to {pid}: {error}")),
    }
}
