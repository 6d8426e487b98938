//! `just bench-line`: what a line of waiting validations costs, and what it does to the run at its head.
//!
//! Each round has a fresh operator: idle, the queue forms, all of it waits behind another user's pod, the operator is
//! killed, the head runs, all are deleted. The first round is what the others are compared with. Only what a user can see is read:
//! statuses, the operator's metrics, the audit log, `/proc`. The ratios are of one run on one machine; nothing is asserted.

mod head;
mod operator;
mod reached;
mod round;
mod table;
mod waiting;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use perfval_e2e::{Lab, Operator};

/// The longest any wait takes. What was reached by then is the figure.
const LIMIT: Duration = Duration::from_mins(3);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A line of waiting validations on the lab.
#[derive(Parser)]
struct Cli {
    /// The lab's program.
    #[arg(long)]
    lab: PathBuf,
    /// The project's config folder.
    #[arg(long)]
    config: PathBuf,
    /// How many wait behind the head, a round each; the first is what the others are compared with.
    #[arg(long, value_delimiter = ',', default_value = "0,1,10,100,1000")]
    waiting: Vec<usize>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match bench(&Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("line: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn bench(cli: &Cli) -> Outcome<()> {
    let lab = Lab::at(cli.lab.clone()).await;
    let operator = Operator::install(&lab, &cli.config.to_string_lossy()).await;

    let mut rounds = Vec::new();
    for &waiting in &cli.waiting {
        rounds.push(round::run(&lab, &operator, waiting).await?);
        table::print(&rounds);
        println!();
        // After the table: what was measured is not lost when something stays.
        if let Some(round) = rounds.last() {
            round::clear(&lab, &operator, round).await?;
        }
    }
    Ok(())
}
