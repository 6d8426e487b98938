//! `just rbac`: the shipped roles against what the operator used, by the API server's audit log.
//!
//! Exit code 1: a difference that no written reason explains.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use perfval_e2e::rbac::{Comparison, read_log, read_roles};

/// Compares roles with audit logs.
#[derive(Parser)]
struct Cli {
    /// Folder of the roles.
    #[arg(long, default_value = "config/rbac")]
    roles: PathBuf,
    /// Audit logs, or folders of them.
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match compare(&Cli::parse()) {
        Ok(comparison) => {
            print!("{comparison}");
            let unexplained = comparison.unexplained();
            if unexplained.is_empty() {
                println!("the roles are what is used");
                return ExitCode::SUCCESS;
            }
            println!("unexplained: {}", unexplained.len());
            for difference in unexplained {
                println!("  {difference}");
            }
            println!(
                "correct the tables in crates/cluster/src/rbac.rs and crates/operator/src/rbac.rs, or give the reason in tests/e2e/src/rbac/exceptions.rs"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("rbac: {error}");
            ExitCode::from(2)
        }
    }
}

fn compare(cli: &Cli) -> Result<Comparison, Box<dyn std::error::Error>> {
    let mut requests = BTreeSet::new();
    for path in &cli.logs {
        for file in files(path)? {
            let log = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            requests.extend(read_log(&String::from_utf8_lossy(&log)));
        }
    }
    if requests.is_empty() {
        return Err("no request of the operator is in these logs".into());
    }
    Ok(Comparison::of(&read_roles(&cli.roles)?, &requests))
}

/// The logs of a folder; a log with those that the API server moved aside.
fn files(path: &Path) -> Result<Vec<PathBuf>, Box<dyn std::error::Error>> {
    let is_log = |file: &Path| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.contains("audit") && name.ends_with(".log")
    };
    let folder = match (path.is_dir(), path.file_name(), path.parent()) {
        (true, _, _) => path,
        (false, Some(name), Some(folder)) if name == "audit.log" => folder,
        _ => return Ok(vec![path.to_owned()]),
    };
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let all = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    Ok(all.into_iter().filter(|file| is_log(file)).collect())
}
