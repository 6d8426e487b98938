//! What the Justfile runs on a fresh lab: whole runs in two labs side by side, and programs and tests in one. A lab is
//! taken down again whatever happens, unless it is to be kept.

mod build;
mod fresh;
mod runs;
mod single;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::build::Built;
use crate::fresh::Fresh;

/// Exit code of a command that a signal ended, as shells have it.
const INTERRUPTED: u8 = 130;

/// Programs and tests on fresh labs.
#[derive(Parser)]
struct Cli {
    /// Where the lab and the other programs of the tests are.
    #[arg(long)]
    debug: PathBuf,
    /// Where the release binaries of the operator and the runner are.
    #[arg(long)]
    release: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Bring a fresh lab up and leave it up.
    Up {
        /// Flags of `lab up`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Whole runs.
    Runs {
        /// Only the tests whose name holds this.
        #[arg(default_value = "")]
        name: String,
        /// All tests, also those that only maintainers run.
        #[arg(long)]
        all: bool,
        /// Labs side by side; default: two on a machine with four cores or more, else one.
        #[arg(long)]
        labs: Option<usize>,
    },
    /// What needs a real API server only.
    Admission,
    /// Ten validations at once on one node.
    Races,
    /// Runs in a row on one lab.
    Soak {
        /// How many.
        runs: usize,
    },
    /// Every failure that a run names.
    Failures {
        /// Only the rows or tests whose name holds this.
        #[arg(default_value = "")]
        name: String,
    },
    /// Whole runs on each release of Dynamo.
    Versions,
    /// Helm: install, upgrade, roll back and uninstall.
    Chart,
    /// What a new user does, by the commands of the pages.
    Walk {
        /// Folder of Debian's `prometheus` and `promtool`.
        #[arg(long)]
        prometheus: PathBuf,
        /// `release`, `helm` or `kustomize`.
        #[arg(long)]
        only: Option<String>,
    },
    /// One whole run, shown as it happens.
    Demo {
        /// Leave the lab up.
        #[arg(long)]
        keep: bool,
    },
    /// A policy over several nodes.
    Policy {
        /// Validations that have to end with a verdict.
        validations: usize,
    },
    /// Sizing against the real scheduler.
    Oracle {
        /// Arguments of the program.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Random worlds, and the laws that hold in all of them.
    Worlds {
        /// Arguments of the program.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// What a line of waiting validations costs.
    Line {
        /// How many wait, separated by commas.
        waiting: String,
    },
    /// The operator beside others.
    Peers {
        /// Folder with the bare operator and AIPerf's environment.
        #[arg(long)]
        files: PathBuf,
        /// The definition of `JobSets`.
        #[arg(long)]
        jobset: PathBuf,
        /// Objects of each.
        objects: String,
    },
    /// What sizing costs on a real API server.
    Scale {
        /// Nodes of the cluster.
        nodes: String,
    },
    /// A policy over simulated nodes on a real control plane.
    Fleet {
        /// Nodes, speed-up, and nodes after which it stops.
        #[arg(num_args = 3)]
        size: Vec<String>,
    },
    /// Every router and fault on the lab.
    Fidelity {
        /// Where runs are recorded until all are there.
        #[arg(long)]
        record: PathBuf,
        /// Arguments of the program.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(cli).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("suite: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(cli: Cli) -> io::Result<u8> {
    let built = Built::new(cli.debug, cli.release);
    let stays = matches!(cli.what, What::Up { .. } | What::Demo { keep: true });
    let lab = Fresh::new(&built);
    let one = [if stays { lab.staying() } else { lab }];
    let lab = &one[0];
    match cli.what {
        What::Up { flags } => {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            lab.up_with_flags(&flags).await.map(|()| 0)
        }
        What::Runs { name, all, labs } => {
            let labs = runs::labs(&built, labs);
            guarded(&labs, runs::run(&built, &labs, &name, all)).await
        }
        What::Demo { keep: true } => single::demo(&built, lab, true).await,
        What::Demo { keep: false } => guarded(&one, single::demo(&built, lab, false)).await,
        What::Admission => guarded(&one, single::admission(&built, lab)).await,
        What::Chart => guarded(&one, single::chart(&built, lab)).await,
        What::Walk { prometheus, only } => guarded(&one, single::walk(&built, lab, &prometheus, only.as_deref())).await,
        What::Failures { name } => guarded(&one, single::failures(&built, lab, &name)).await,
        What::Soak { runs } => guarded(&one, single::soak(&built, lab, runs)).await,
        What::Versions => guarded(&one, single::versions(&built, lab)).await,
        What::Races => guarded(&one, single::races(&built, lab)).await,
        What::Policy { validations } => guarded(&one, single::policy(&built, lab, validations)).await,
        What::Oracle { arguments } => guarded(&one, single::oracle(&built, lab, &arguments)).await,
        What::Worlds { arguments } => guarded(&one, single::worlds(&built, lab, &arguments)).await,
        What::Line { waiting } => guarded(&one, single::line(&built, lab, &waiting)).await,
        What::Peers { files, jobset, objects } => {
            guarded(&one, single::peers(&built, lab, &files, &jobset, &objects)).await
        }
        What::Fleet { size } => guarded(&one, single::fleet(&built, lab, &size)).await,
        What::Scale { nodes } => guarded(&one, single::scale(&built, lab, &nodes)).await,
        What::Fidelity { record, arguments } => guarded(&one, single::fidelity(&built, lab, &record, &arguments)).await,
    }
}

/// Takes the labs down after the work, also where a signal ends it.
async fn guarded(labs: &[Fresh], work: impl Future<Output = io::Result<u8>>) -> io::Result<u8> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let done = tokio::select! {
        done = work => done,
        _ = interrupt.recv() => Ok(INTERRUPTED),
        _ = terminate.recv() => Ok(INTERRUPTED),
    };
    let mut down: io::Result<()> = Ok(());
    for lab in labs {
        down = down.and(lab.down().await);
    }
    let code = done?;
    down.map(|()| code)
}
