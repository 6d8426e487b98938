//! What the supervisor says: to `lab up` while it starts, to `lab status` ever after, and to `state.json`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of the whole lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The plan's title.
    pub title: String,
    /// How far it is.
    pub phase: Phase,
    /// Every process started so far, by name.
    pub processes: BTreeMap<String, State>,
}

/// How far a lab is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Doing this step.
    Starting(String),
    /// All steps are done.
    Up,
    /// A step failed, or a process died before all steps were done.
    Failed(String),
}

/// The state of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Alive, with its number inside the lab's pid namespace.
    Running(u32),
    /// Ended because it was asked to.
    Stopped,
    /// Ended by itself.
    Died {
        /// How, e.g. `exit status: 1`.
        how: String,
        /// The end of its log.
        log: String,
    },
}

impl Report {
    /// A lab of which nothing has been started.
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            phase: Phase::Starting("starting".to_owned()),
            processes: BTreeMap::new(),
        }
    }

    /// The first process that ended by itself, in words.
    pub fn death(&self) -> Option<String> {
        self.processes.iter().find_map(|(name, state)| match state {
            State::Died { how, .. } => Some(format!("{name} died ({how})")),
            _ => None,
        })
    }

    /// Whether a process ended by itself.
    pub fn has_ended(&self, process: &str) -> bool {
        matches!(self.processes.get(process), Some(State::Died { .. }))
    }

    /// Up, and everything that was started still runs or was stopped on purpose.
    pub fn is_healthy(&self) -> bool {
        self.phase == Phase::Up && self.death().is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.phase {
            Phase::Starting(step) => writeln!(f, "starting ({}): {step}", self.title)?,
            Phase::Up => writeln!(f, "up ({})", self.title)?,
            Phase::Failed(reason) => writeln!(f, "failed ({}): {reason}", self.title)?,
        }
        for (name, state) in &self.processes {
            match state {
                State::Running(pid) => writeln!(f, "  {name:<26} running, pid {pid}")?,
                State::Stopped => writeln!(f, "  {name:<26} stopped on request")?,
                State::Died { how, log } => {
                    writeln!(f, "  {name:<26} DIED: {how}; its log ends:")?;
                    log.lines().try_for_each(|line| writeln!(f, "    {line}"))?;
                }
            }
        }
        Ok(())
    }
}

/// What a client may ask, one JSON line per connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// One report.
    Status,
    /// A report at every change until the lab is up or failed.
    Follow,
    /// Ends a process; the reply comes when it has ended.
    Stop(String),
    /// The same by SIGKILL.
    Kill(String),
    /// Starts a stopped or dead process again.
    Start(String),
}

/// One JSON line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The state of the lab.
    Report(Report),
    /// The request is done.
    Done,
    /// The request cannot be done.
    Refused(String),
}
