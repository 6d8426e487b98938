//! The exporter as a program of its own: on a machine with a real driver nothing else is needed.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match gpu_exporter::run(&gpu_exporter::Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu-exporter: {error}");
            ExitCode::FAILURE
        }
    }
}
