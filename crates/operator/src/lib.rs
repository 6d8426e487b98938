//! The operator's process: flags, watch streams, leader lease, metrics. Start reading at [`controller`].

mod announcer;
pub mod blocked;
mod boundary;
pub mod calls;
pub mod cli;
mod clients;
mod commit;
pub mod context;
pub mod controller;
mod decide;
pub mod error;
pub mod event_words;
mod facts_by_uid;
pub mod fence;
pub mod fleet;
pub mod health;
pub mod leader;
mod listen;
mod logging;
mod looks;
mod measured;
pub mod metrics;
mod moment;
mod newcomers;
pub mod objects;
mod own_writes;
mod pace;
pub mod planner;
pub mod process;
mod queue_bell;
pub mod rbac;
pub mod ready;
mod resting;
pub mod rights;
mod room;
mod secure_metrics;
pub mod server_clock;
mod setbacks;
mod shutdown;
mod store_limits;
pub mod stored;
pub mod streams;
pub mod suspects;
pub mod sweeper;
#[cfg(test)]
mod test_object;
pub mod unreadable;
pub mod version;

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::cli::{Command, OperatorCli};
use crate::error::Error;

/// Time for tasks to end. A plan under way must not keep a process that leads no more.
const LAST_TASKS: Duration = Duration::from_secs(2);

/// The program. Exit codes: 0 done or asked to stop, 1 an error, printed with its causes, 2 wrong flags.
pub fn main() -> ExitCode {
    let done = match OperatorCli::parse().command {
        Command::Run(args) => operate(*args),
        Command::Ready(args) => ready::run(&args).map_err(Error::from).and_then(|answer| print(&answer)),
    };
    if let Err(error) = done {
        eprintln!("perfvalidation-operator: {}", error.with_causes());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn operate(args: cli::RunArgs) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let done = runtime.block_on(process::run(args));
    // Tasks remove their passes from the file of passes under way.
    runtime.shutdown_timeout(LAST_TASKS);
    done
}

/// Writes the answer. It is no error if the reader has left (`… | head`).
fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::Answer(error)),
        _ => Ok(()),
    }
}
