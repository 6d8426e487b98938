//! `perfval-runner`: the command of the benchmark container.
//!
//! It runs `aiperf` with the given arguments, samples the workers meanwhile, and hands one record to the operator: as termination
//! message, and at the very end of the log. It writes to the artifact directory, the install directory and the
//! termination log, nowhere else.

mod aiperf;
mod cpu;
mod error;
mod forward;
mod model;
mod outcome;
mod process;
mod progress;
mod run;
mod sampler;
mod scrape;
mod telemetry;
mod ticker;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Error;

/// Runs AIPerf inside the benchmark Job.
#[derive(Parser)]
#[command(version)]
struct RunnerCli {
    #[command(subcommand)]
    command: RunnerCommand,
}

#[derive(Subcommand)]
enum RunnerCommand {
    /// Copies this program into a directory, so that any image can run it.
    Install {
        /// An existing directory.
        dir: PathBuf,
    },
    /// Runs AIPerf and hands over what came of it.
    Run(Box<run::Options>),
}

fn main() -> ExitCode {
    let done = match RunnerCli::parse().command {
        RunnerCommand::Install { dir } => install(&dir).map(|()| 0),
        RunnerCommand::Run(options) => run::run(&options),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("perfval-runner: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn install(dir: &Path) -> Result<(), Error> {
    let to = dir.join("perfval-runner");
    // /proc/self/exe is this program even in an image without a shell or a PATH.
    fs::copy("/proc/self/exe", &to).map_err(|source| Error::Install { to, source })?;
    Ok(())
}
