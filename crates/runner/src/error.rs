use std::io;
use std::path::PathBuf;

/// Fault that keeps the runner itself from working.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The copy for the main container could not be made.
    #[error("cannot copy this program to {}: {source}; mount a writable volume there", to.display())]
    Install { to: PathBuf, source: io::Error },
    /// Nothing could be cleared or written there.
    #[error("artifact directory {} cannot be used: {source}; mount a writable volume there", dir.display())]
    ArtifactDir { dir: PathBuf, source: io::Error },
    /// Signals, pipes or processes of the container are not available.
    #[error("cannot {what}: {source}")]
    Process { what: &'static str, source: io::Error },
    /// The image has no `aiperf` that can be executed.
    #[error("cannot execute `{program}`: {source}; use an image that holds AIPerf")]
    NotExecutable { program: String, source: io::Error },
    /// The record could not be written to the log.
    #[error("cannot write the result: {0}")]
    Frame(io::Error),
}

impl Error {
    /// The shell's convention for a command that cannot be run, 2 for what the runner was given wrong.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotExecutable { .. } => 127,
            Self::ArtifactDir { .. } | Self::Install { .. } => 2,
            Self::Process { .. } | Self::Frame(_) => 1,
        }
    }
}
