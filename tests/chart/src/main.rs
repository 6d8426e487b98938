//! Writes the files of the chart that are made from others: `just generate`.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

fn main() -> ExitCode {
    match write(Path::new(".")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chart-files: run it from the root of the repository: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(repository: &Path) -> io::Result<()> {
    perfval_chart::files::generated(repository)?
        .into_iter()
        .try_for_each(|(file, text)| fs::write(repository.join(file), text))
}
