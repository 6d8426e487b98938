//! `kubectl perfval`: what people type to run, watch and understand a `PerfValidation`.
//!
//! It decides nothing. Verdicts, causes, words and numbers are those of the status, or of the operator's own crates.

mod approve;
pub mod args;
mod bundle;
mod calibrate;
mod completion;
mod describe;
mod diff;
mod doctor;
mod draw;
mod error;
mod exit;
mod follow;
mod get;
mod history;
mod init;
mod input;
mod judge;
pub mod keys;
mod lifecycle;
mod listed;
mod logs;
mod manifest;
mod nodes;
mod output;
mod preset;
mod registry;
mod report;
mod results;
mod run;
pub mod screen;
pub mod session;
mod shell;
pub mod size;
mod table;
mod verify;

use std::io::{self, BufReader, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use futures::channel::mpsc::unbounded;

use crate::args::{Cli, Target, Verb};
use crate::screen::{Screen, Size};
use crate::session::Session;

pub use crate::error::Error;

/// The program.
pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let asked = words
        .split_first()
        .filter(|(program, _)| completion::is_completion_request(program));
    let cli = asked.is_none().then(Cli::parse);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("kubectl perfval: the runtime cannot be started: {error}");
            return ExitCode::from(4);
        }
    };
    let Some(cli) = cli else {
        let words = asked.map_or(&[][..], |(_, words)| words);
        let found = completion::candidates(words, |target| runtime.block_on(session::names(target)));
        // kubectl takes no answer for no candidates.
        let _ = io::stdout().write_all(found.as_bytes());
        return ExitCode::SUCCESS;
    };
    let code = runtime.block_on(async {
        let mut screen = real_screen();
        Box::pin(execute(cli, &mut screen, Session::open)).await
    });
    ExitCode::from(code)
}

/// Carries out a command, and prints its error on standard error. `open` connects to the cluster when it is needed.
pub async fn execute(cli: Cli, screen: &mut Screen, open: impl AsyncFn(&Target) -> Result<Session, Error>) -> u8 {
    let follows = cli.verb.follows();
    let flags = cli.target.cluster_flags();
    match Box::pin(carry_out(cli, screen, open)).await {
        Ok(code) => code,
        // The reader of the lines left before the verdict: a pipeline must not take that for a pass.
        Err(Error::Closed) if follows => exit::NOT_OVER,
        Err(error) => {
            if !matches!(error, Error::Closed) {
                let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
                let mut said = Vec::new();
                for cause in causes.map(ToString::to_string) {
                    // Some errors repeat their cause.
                    if !said.iter().any(|earlier: &String| earlier.contains(&cause)) {
                        said.push(cause);
                    }
                }
                let text = said.join(": ");
                // Without a cluster, the flags are at fault.
                let text = if matches!(error, Error::NoCluster(_)) {
                    text
                } else {
                    shell::with_flags(&text, &flags)
                };
                screen.note(&format!("kubectl perfval: {text}"));
            }
            error.code()
        }
    }
}

async fn carry_out(
    cli: Cli,
    screen: &mut Screen,
    open: impl AsyncFn(&Target) -> Result<Session, Error>,
) -> Result<u8, Error> {
    let target = &cli.target;
    let namespace = target.namespace();
    match cli.verb {
        Verb::Judge(args) => judge::run(screen, &args),
        Verb::Size(args) => Box::pin(size::run(screen, &args, namespace, async || open(target).await)).await,
        Verb::Report(args) => Box::pin(report::run(screen, &args, async || open(target).await)).await,
        Verb::Verify(args) => verify::run(screen, &args),
        Verb::Completion { shell } => {
            screen.write(&completion::script(shell))?;
            Ok(0)
        }
        Verb::Presets(args) => preset::run(screen, &args),
        Verb::Init(args) => init::run(screen, &args, target),
        Verb::Get(args) => Box::pin(get::run(screen, &open(target).await?, &args)).await,
        Verb::Nodes(args) => Box::pin(nodes::run(screen, &open(target).await?, &args)).await,
        Verb::Approve(args) => Box::pin(approve::run(screen, &open(target).await?, &args)).await,
        Verb::Describe(args) => Box::pin(describe::run(screen, &open(target).await?, &args)).await,
        Verb::History(args) => Box::pin(history::run(screen, &open(target).await?, &args)).await,
        Verb::Watch(args) => Box::pin(follow::run(screen, &open(target).await?, &args)).await,
        Verb::Run(args) => Box::pin(run::run(screen, &args, namespace, async || open(target).await)).await,
        Verb::Calibrate(args) => Box::pin(calibrate::run(screen, &args, namespace, async || open(target).await)).await,
        Verb::Rerun(args) => Box::pin(lifecycle::rerun(screen, &open(target).await?, &args)).await,
        Verb::Suspend(args) => Box::pin(lifecycle::suspend(screen, &open(target).await?, &args)).await,
        Verb::Resume(args) => Box::pin(lifecycle::resume(screen, &open(target).await?, &args)).await,
        Verb::Keep(args) => Box::pin(lifecycle::keep(screen, &open(target).await?, &args)).await,
        Verb::CleanUp(args) => Box::pin(lifecycle::clean_up(screen, &open(target).await?, &args)).await,
        Verb::Diff(args) => Box::pin(diff::run(screen, &open(target).await?, &args)).await,
        Verb::Logs(args) => Box::pin(logs::run(screen, &open(target).await?, &args)).await,
        Verb::Bundle(args) => Box::pin(bundle::run(screen, &open(target).await?, &args)).await,
        Verb::Doctor(args) => Box::pin(doctor::run(screen, &args, namespace, async || open(target).await)).await,
    }
}

/// The streams of the process.
fn real_screen() -> Screen {
    let (interrupt, interrupts) = unbounded();
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    let is_dumb = set("TERM") == "dumb";
    let draws = io::stdout().is_terminal() && !is_dumb;
    let size = move || {
        let (columns, rows) = terminal_size::terminal_size().filter(|_| draws)?;
        Some(Size {
            columns: columns.0.into(),
            rows: rows.0.into(),
        })
    };
    // As glibc chooses: the first that is set.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .map(set)
        .into_iter()
        .find(|name| !name.is_empty());
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    Screen {
        out: Box::new(io::stdout()),
        err: Box::new(io::stderr()),
        input: Box::new(BufReader::new(io::stdin())),
        asks: io::stdin().is_terminal() && io::stderr().is_terminal(),
        size: Box::new(size),
        echoes: draws,
        unicode: !is_dumb && (locale.contains("utf-8") || locale.contains("utf8")),
        interrupts,
        interrupt: Some(interrupt),
        clock: chrono::Utc::now,
    }
}
