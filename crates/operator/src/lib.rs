//! The operator's process: flags, watch streams, leader lease, metrics. Start reading at [`controller`].

mod announcer;
pub mod blocked;
mod boundary;
pub mod calls;
pub mod cli;
mod clients;
pub mod controller;
pub mod docs;
pub mod error;
mod event_words;
pub mod fence;
pub mod health;
pub mod leader;
mod logging;
pub mod metrics;
mod moment;
mod newcomers;
pub mod objects;
pub mod own_writes;
pub mod planner;
pub mod process;
mod queue_bell;
pub mod rbac;
pub mod ready;
mod resting;
pub mod rights;
mod room;
pub mod server_clock;
mod setbacks;
mod shutdown;
mod store_limits;
pub mod stored;
pub mod streams;
pub mod suspects;
pub mod sweeper;
pub mod unreadable;
pub mod version;

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::Parser;
use perfval_commands::answer::Answer;
use perfval_commands::{judge, size};

use crate::cli::{Cli, Command, Page};
use crate::error::Error;

/// The program. Exit codes: 0 done or asked to stop, 1 an error, printed with its causes, 2 wrong flags or bad input;
/// `judge` and `size` answer with them.
pub fn main() -> ExitCode {
    match execute(Cli::parse().command).and_then(print) {
        Ok(code) => code,
        Err(error) => {
            let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            let messages: Vec<_> = causes.map(ToString::to_string).collect();
            eprintln!("perfvalidation-operator: {}", messages.join(": "));
            match error {
                Error::BadInput(_) => ExitCode::from(2),
                Error::Size(error) => ExitCode::from(error.code()),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn execute(command: Command) -> Result<Answer, Error> {
    let text = match command {
        Command::Run(args) => {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .map_err(|source| Error::Runtime { source })?
                .block_on(process::run(*args))?;
            String::new()
        }
        Command::Crd => perfval_api::crd_yaml().map_err(|source| Error::Render {
            what: "the CRD",
            source,
        })?,
        Command::Rbac {
            directory: Some(directory),
        } => {
            rbac::write(&directory)?;
            String::new()
        }
        Command::Rbac { directory: None } => rbac::manifest(),
        Command::Docs { page: Page::Reference } => docs::reference(),
        Command::Docs { page: Page::Reasons } => docs::reasons(),
        Command::Docs { page: Page::Metrics } => docs::metrics(),
        Command::Docs { page: Page::Api } => docs::api(),
        Command::Judge(args) => return Ok(judge::run(&args)?),
        Command::Size(args) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|source| Error::Runtime { source })?;
            return Ok(runtime.block_on(size::run(&args, infer))?);
        }
        Command::Ready(args) => return Ok(ready::run(&args)?),
    };
    Ok((text, 0))
}

/// The cluster of the pod or of the kubeconfig, and the namespace where kubectl would create an object.
async fn infer() -> Result<(kube::Client, String), String> {
    let config = kube::Config::infer()
        .await
        .map_err(|error| format!("{error}; set KUBECONFIG, or give saved objects with --from"))?;
    let namespace = config.default_namespace.clone();
    let client = kube::Client::try_from(config).map_err(|error| error.to_string())?;
    Ok((client, namespace))
}

/// Writes the answer. A reader that has left (`… | head`) wants no more of it, and the exit code is still the answer's.
fn print((text, code): Answer) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => Err(Error::Answer { source }),
        _ => Ok(ExitCode::from(code)),
    }
}
