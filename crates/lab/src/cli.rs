//! The command line: what exists and which module does it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;

/// A real Kubernetes cluster with simulated GPUs on this machine.
#[derive(Debug, Parser)]
#[command(name = "lab", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {}

/// Runs one command.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    match cli.command {}
}
