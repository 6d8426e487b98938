//! The command `lab`.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match perfval_lab::cli::run(perfval_lab::cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::FAILURE
        }
    }
}
