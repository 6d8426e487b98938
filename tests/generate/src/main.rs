//! Writes the generated files: `just generate`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match perfval_generate::write(Path::new(".")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generate (from the root of the repository): {error}");
            ExitCode::FAILURE
        }
    }
}
