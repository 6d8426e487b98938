//! What the supervisor does: a list of steps that knows nothing of Kubernetes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How long a part of a cluster may take to come up. An emulated machine needs 20 times the three seconds of the API server;
/// a death ends the wait at once.
pub const PATIENCE_SECONDS: u64 = 300;

/// A whole lab, in the order in which it is brought up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What this lab is, e.g. `control plane only, Dynamo 1.4.2`. Another plan with the same title is the same lab.
    pub title: String,
    /// One after the other; the lab is up after the last.
    pub steps: Vec<Step>,
}

/// One step to a running lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Starts a process that is to run until the lab ends.
    Start(Process),
    /// Runs a command that must succeed the first time.
    Run {
        /// Said to the user, e.g. `importing images`.
        what: String,
        /// The command.
        command: Invocation,
    },
    /// Runs a command again and again until it succeeds.
    Await {
        /// Said to the user, e.g. `waiting for the API server`.
        what: String,
        /// The command.
        command: Invocation,
        /// After how many seconds to give up.
        deadline_seconds: u64,
    },
}

/// A process under supervision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Also the name of its log.
    pub name: String,
    /// What to run.
    pub command: Invocation,
}

/// A program with its arguments and additional environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// A path, or a name in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Added to the supervisor's environment.
    pub env: BTreeMap<String, String>,
}

impl Invocation {
    /// A program with arguments.
    pub fn new<A: Into<String>>(program: impl Into<PathBuf>, args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
        }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }
}

impl Plan {
    /// The processes that run until the lab ends.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.steps.iter().filter_map(|step| {
            if let Step::Start(process) = step {
                Some(process)
            } else {
                None
            }
        })
    }
}
