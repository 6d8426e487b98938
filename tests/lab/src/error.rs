//! Everything that can go wrong in the lab, in words that say what to do next.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a lab command gave up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// The verb, e.g. `read`.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// The verb and its object, e.g. `mount a tmpfs on /run`.
        doing: String,
        /// The system's answer.
        source: nix::Error,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// The program's name or path.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A program ran and failed.
    #[error("`{command}` failed ({status}):\n{output}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote.
        output: String,
    },
    /// Programs of the distribution are missing.
    #[error("missing on this machine: {missing}\ninstall with: {install}")]
    MissingPrograms {
        /// The programs, comma separated.
        missing: String,
        /// The exact command that brings them.
        install: String,
    },
    /// The lab needs root.
    #[error("the lab makes namespaces, mounts and cgroups: run it as root")]
    NotRoot,
    /// A command needs a running lab.
    #[error("the lab is not up: run `lab up` (or `lab up --control-plane`)")]
    NotUp,
    /// The running lab is another one than was asked for.
    #[error("the lab is already up as {running}: run `lab down` first to get {wanted}")]
    OtherLab {
        /// What runs.
        running: String,
        /// What was asked for.
        wanted: String,
    },
    /// The lab belongs to a person or to another process.
    #[error("a lab is up ({lab}): {advice}")]
    InUse {
        /// What runs, and for how long.
        lab: String,
        /// How to get it out of the way.
        advice: String,
    },
    /// A command is about the node of a lab that has none.
    #[error("this lab has no node: run `lab down`, then `lab up` without --control-plane")]
    NoNode,
    /// The supervisor gave up.
    #[error("the lab is broken: {0}\nlogs: `lab logs NAME`; clean up: `lab down`")]
    DidNotComeUp(String),
    /// The supervisor refused a request or vanished.
    #[error("supervisor: {0}")]
    Supervisor(String),
    /// Something of the lab would not go away.
    #[error("{what} is still there after {seconds} s: {detail}")]
    StillThere {
        /// What was to go.
        what: &'static str,
        /// How long was waited.
        seconds: u64,
        /// What is left.
        detail: String,
    },
    /// Certificates could not be made.
    #[error("cannot make the cluster's certificates: {0}")]
    Certificate(#[from] rcgen::Error),
    /// JSON of another program was not what was expected.
    #[error("cannot understand {what}: {source}")]
    Json {
        /// Where it came from.
        what: String,
        /// What was wrong.
        source: serde_json::Error,
    },
    /// The asynchronous runtime could not be started.
    #[error("cannot start the runtime: {0}")]
    Runtime(io::Error),
    /// The stand-in for NVIDIA's DCGM exporter gave up.
    #[error("gpu-exporter: {0}")]
    GpuExporter(#[from] gpu_exporter::Error),
    /// The stand-in for Dynamo's operator gave up.
    #[error("dynamo-operator: {0}")]
    Dynamo(#[from] crate::dynamo::Error),
    /// A command line names something that does not exist.
    #[error("{0}")]
    Usage(String),
}

/// Gives file errors their verb and path.
pub trait FileResult<T> {
    /// Names what was being done to which path.
    fn file(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T, Error>;
}

impl<T> FileResult<T> for io::Result<T> {
    fn file(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T, Error> {
        self.map_err(|source| Error::File {
            doing,
            path: path.into(),
            source,
        })
    }
}
