//! The command line: what exists and which module does it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::dynamo;
use crate::error::Error;

/// A real Kubernetes cluster with simulated GPUs on this machine.
#[derive(Debug, Parser)]
#[command(name = "lab", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Stand in for Dynamo's operator until told to stop (runs under the supervisor).
    DynamoOperator(dynamo::Args),
}

/// Runs one command.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    match cli.command {
        Command::DynamoOperator(args) => {
            let runtime = tokio::runtime::Runtime::new().map_err(Error::Runtime)?;
            runtime.block_on(dynamo::run(args))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
