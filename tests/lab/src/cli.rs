//! The command line: what exists and which module does it.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{self, ExitCode};

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use crate::error::{Error, FileResult as _};
use crate::fault::{self, Fault};
use crate::images::{self, Image};
use crate::node::Node;
use crate::options::Options;
use crate::paths::StateDir;
use crate::programs::{self, MANIFEST_FAMILIES};
use crate::supervisor::{self, Report, client};
use crate::{command, down, dynamo, enter, holder, namespace, node, up};

/// A real Kubernetes cluster with simulated GPUs on this machine.
#[derive(Debug, Parser)]
#[command(name = "lab", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the lab up: minutes the first time (programs are built from source), seconds after.
    Up(Options),
    /// Build the programs and images of a lab that the cache lacks, and start nothing.
    Prepare(Options),
    /// End the lab and remove every trace of it but the cache.
    Down {
        /// End it only if this process holds it or its holder has ended.
        #[arg(long, value_name = "PID")]
        holder: Option<u32>,
    },
    /// Show every process; fails unless the lab is up and nothing died.
    Status,
    /// Run a command inside the lab, e.g. `lab exec -- kubectl get pods -A`.
    Exec {
        /// Enter the lab's network only: files, processes and the `lab` command stay those of the machine.
        #[arg(long)]
        network_only: bool,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Print the path of the admin's kubeconfig; it works inside the lab only.
    Kubeconfig,
    /// Print the path of the API server's audit log.
    AuditLog,
    /// Make a container image, unless the cache has it, and print the path of its archive.
    #[command(subcommand)]
    Image(Image),
    /// Import an image archive into each node.
    LoadImage {
        /// A docker-archive or OCI tar file.
        file: PathBuf,
    },
    /// Build a program that works on manifests, unless the cache has it, and print its path.
    Program {
        /// Which one.
        #[arg(value_parser = PossibleValuesParser::new(MANIFEST_FAMILIES.iter().map(|family| family.name)))]
        name: String,
    },
    /// Print the log of a process (names: `lab status`, and `supervisor`).
    Logs {
        /// The process.
        name: String,
    },
    /// Make something go wrong, or right again: on the first node, except `slow-gpu`, which takes the number of any GPU.
    #[command(subcommand)]
    Fault(Fault),
    /// Stand in for Dynamo's operator until asked to stop (runs under the supervisor).
    DynamoOperator(dynamo::Args),
    /// Serve the metrics of the node's GPUs as NVIDIA's DCGM exporter does (runs under the supervisor).
    GpuExporter(gpu_exporter::Options),
    /// The process that holds the namespaces of a node beside the first (runs under the supervisor).
    #[command(hide = true)]
    HoldNode {
        /// The state folder.
        state: PathBuf,
        /// The node.
        number: u8,
    },
    /// Become a command in the namespaces of such a node.
    #[command(hide = true)]
    OnNode {
        /// The state folder.
        state: PathBuf,
        /// The node.
        number: u8,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Process 1 of the lab's namespace.
    #[command(hide = true)]
    Init {
        /// The state folder.
        state: PathBuf,
    },
    /// The supervisor inside the lab's namespace.
    #[command(hide = true)]
    Supervise {
        /// The state folder.
        state: PathBuf,
    },
}

impl Command {
    /// Without root these see no lab: its socket and its namespaces are root's.
    fn needs_root(&self) -> bool {
        matches!(
            self,
            Self::Up(_)
                | Self::Prepare(_)
                | Self::Down { .. }
                | Self::Status
                | Self::Exec { .. }
                | Self::LoadImage { .. }
                | Self::Fault(_)
        )
    }
}

/// Runs one command.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    if cli.command.needs_root() && !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    let state = StateDir::from_env();
    match cli.command {
        Command::Up(options) => up::up(&state, &options)?,
        Command::Prepare(options) => up::prepare(&options)?,
        Command::Down { holder } => {
            if let Some(pid) = holder {
                holder::refuse_if_used(&state, pid)?;
            }
            down::down(&state)?;
        }
        Command::Status => return status(&state),
        Command::Exec { network_only, command } => {
            let enter = if network_only { enter::network } else { enter::command };
            return Err(replace_with(enter(&state, &command)?));
        }
        Command::Kubeconfig => println!("{}", state.kubeconfig("admin").display()),
        Command::AuditLog => println!("{}", state.audit_log().display()),
        Command::Image(image) => {
            let archive = images::build(&image, &mut |text| eprintln!("{text}"))?;
            println!("{}", archive.display());
        }
        Command::LoadImage { file } => load_image(&state, file)?,
        Command::Program { name } => print_program(&name)?,
        Command::Logs { name } => print_log(&state, &name)?,
        Command::Fault(fault) => fault::apply(&state, &fault)?,
        Command::DynamoOperator(arguments) => {
            let runtime = tokio::runtime::Runtime::new().map_err(Error::Runtime)?;
            runtime.block_on(dynamo::run(arguments))?;
        }
        Command::GpuExporter(options) => gpu_exporter::run(&options)?,
        Command::HoldNode { state, number } => match node::hold(&StateDir::at(state), number)? {},
        Command::OnNode { state, number, command } => match node::enter(&StateDir::at(state), number, &command)? {},
        Command::Init { state } => namespace::init(&StateDir::at(state))?,
        Command::Supervise { state } => supervisor::run(&StateDir::at(state))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn status(state: &StateDir) -> Result<ExitCode, Error> {
    if let Some(report) = client::status(state)? {
        print!("{report}");
        return Ok(if report.is_healthy() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    println!("down");
    if let Some(report) = last_report(state) {
        print!("the supervisor is gone without `lab down`; the last it knew:\n{report}");
    }
    Ok(ExitCode::FAILURE)
}

/// What a dead supervisor left on disk.
fn last_report(state: &StateDir) -> Option<Report> {
    serde_json::from_str(&fs::read_to_string(state.status()).ok()?).ok()
}

/// Becomes the command; returns only if that fails.
fn replace_with(mut command: process::Command) -> Error {
    let source = command.exec();
    Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    }
}

fn load_image(state: &StateDir, file: PathBuf) -> Result<(), Error> {
    let file = fs::canonicalize(&file).file("find", file)?;
    let mut nodes = Node::all(state).peekable();
    nodes.peek().ok_or(Error::NoNode)?;
    for node in nodes {
        let import = node.import(&file);
        let words = std::iter::once(import.program.to_string_lossy().into_owned()).chain(import.args);
        let said = command::output(&mut enter::command(state, &words.collect::<Vec<_>>())?)?;
        print!("{said}");
    }
    Ok(())
}

fn print_program(name: &str) -> Result<(), Error> {
    for family in MANIFEST_FAMILIES.iter().filter(|family| family.name == name) {
        let folder = programs::build(family, &mut |text| eprintln!("{text}"))?;
        println!("{}", folder.join(family.name).display());
    }
    Ok(())
}

fn print_log(state: &StateDir, name: &str) -> Result<(), Error> {
    let path = state.log(name);
    let mut log = fs::File::open(&path).file("read", &path)?;
    std::io::copy(&mut log, &mut std::io::stdout())
        .map(drop)
        .file("print", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_looks_at_the_lab_needs_root() {
        let needs_root = |line: &str| {
            let words = ["lab"].into_iter().chain(line.split(' '));
            Cli::try_parse_from(words).unwrap().command.needs_root()
        };
        for line in [
            "up",
            "prepare",
            "down",
            "status",
            "exec true",
            "load-image x",
            "fault clear",
        ] {
            assert!(needs_root(line), "{line}");
        }
        for line in ["kubeconfig", "audit-log", "logs etcd", "program helm"] {
            assert!(!needs_root(line), "{line}");
        }
    }
}
