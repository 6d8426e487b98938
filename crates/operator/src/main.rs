//! perfvalidation-operator: see [`perfval_operator`].

use std::process::ExitCode;

fn main() -> ExitCode {
    perfval_operator::main()
}
