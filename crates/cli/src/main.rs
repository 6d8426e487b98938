//! kubectl-perfval: see [`perfval_cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    perfval_cli::main()
}
