//! The command line. Flags that kubectl has too have the same names and meanings.

mod evidence;
mod recorded;
mod run;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use evidence::{
    BundleArgs, DiffArgs, DoctorArgs, Form, Format, LogsArgs, OPERATOR_LABEL, OPERATOR_NAMESPACE, ReportArgs, RunPart,
    VerifyArgs,
};
pub use recorded::{JudgeArgs, SizeArgs};
use run::duration;
pub use run::{CalibrateArgs, CommonCase, InitArgs, PresetsArgs, RunCommandArgs, WatchArgs};
pub use target::Target;

/// Measures a node's GPUs by serving a model on them: runs, watches and explains PerfValidation objects.
///
/// A validation has a model and gates: numbers that the GPUs must reach, such as tokens per second. The operator serves the
/// model on the free GPUs of a node, measures in trials, judges by the gates, and removes its objects.
///
/// Begin with `kubectl perfval doctor`, then `presets`, then `run --preset h100-80gb`.
///
/// Exit codes: 0 Passed or Skipped, or done; 1 Failed, or something is missing; 2 wrong flags or bad input; 3 Inconclusive,
/// or not over yet; 4 Error, or something cannot be read; 130 ended by Ctrl-C.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-perfval",
    bin_name = "kubectl perfval",
    version,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Cluster and namespace.
    #[command(flatten, next_help_heading = "Which cluster, as whom")]
    pub target: Target,
    /// Verb to carry out.
    #[command(subcommand)]
    pub verb: Verb,
}

impl Verb {
    /// Returns true if it follows runs, so that a pipeline waits for its exit code.
    pub fn follows(&self) -> bool {
        match self {
            Self::Run(args) => !args.detach,
            Self::Rerun(args) => args.watch,
            Self::Watch(_) | Self::Calibrate(_) => true,
            _ => false,
        }
    }
}

/// Verbs of the plug-in.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create a validation, or run an unchanged one again, and follow it to its verdict
    Run(Box<RunCommandArgs>),
    /// Find the load and the gates for a node that you trust, and print a manifest with them
    Calibrate(CalibrateArgs),
    /// Follow a validation until its run is over
    Watch(WatchArgs),
    /// List validations
    Get(GetArgs),
    /// List the newest measurement of each node, the worst first, and the nodes that were never measured
    Nodes(NodesArgs),
    /// Show what a revision of a baseline changes, and approve it
    Approve(ApproveArgs),
    /// Explain one validation: verdict, gates, trials, workers, causes and what to do about them
    Describe(NameArgs),
    /// Show the free GPUs of every node, and which of them a run would get
    Size(SizeArgs),
    /// Judge recorded results without a cluster
    Judge(JudgeArgs),
    /// Write the report of a run, or of recorded results: a page, test cases, a summary, metrics
    Report(ReportArgs),
    /// Check that the files of a report are as they were written
    Verify(VerifyArgs),
    /// Compare two runs: numbers with their spread, and what differs in what they ran on
    Diff(DiffArgs),
    /// List the runs of a validation
    History(HistoryArgs),
    /// Run a validation again
    Rerun(RerunArgs),
    /// Stop a validation and free its GPUs, until it is resumed
    Suspend(NameArgs),
    /// Let a suspended validation run
    Resume(NameArgs),
    /// Keep pods and GPUs of a run after its end, for a post-mortem, until they are cleaned up
    Keep(NameArgs),
    /// Remove the kept objects of a run, and free its GPUs
    CleanUp(NameArgs),
    /// Print the logs of a run, merged by time: model cache, frontend, workers, load generator, operator
    Logs(LogsArgs),
    /// Write everything for a bug report into one archive, without secrets
    Bundle(BundleArgs),
    /// Check for everything that a first run needs, with the next command for each gap
    Doctor(DoctorArgs),
    /// Write a commented manifest, and ask for missing values
    Init(InitArgs),
    /// List the presets, which are gates for known GPUs, or print one as a manifest
    Presets(PresetsArgs),
    /// Print a script that completes verbs and flags in a shell
    Completion {
        /// Shell of the script.
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// Format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The usual columns.
    #[default]
    Table,
    /// All columns.
    Wide,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// Their names only.
    Name,
}

/// One validation.
#[derive(Clone, Debug, Args)]
pub struct NameArgs {
    /// Name of the validation; optional if the namespace has only one
    pub name: Option<String>,
}

/// Flags of `get`.
#[derive(Clone, Debug, Args)]
pub struct GetArgs {
    /// Name of one validation
    pub name: Option<String>,
    /// List validations of all namespaces
    #[arg(short = 'A', long, conflicts_with = "name")]
    pub all_namespaces: bool,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// Flags of `nodes`.
#[derive(Clone, Debug, Args)]
pub struct NodesArgs {
    /// Labels of the nodes, such as nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,
    /// Format of the answer; json, yaml and name list measured nodes only
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// Write an HTML page about the nodes to this file, and replace an earlier one
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub html: Option<PathBuf>,
}

/// Flags of `approve`.
#[derive(Clone, Debug, Args)]
pub struct ApproveArgs {
    /// Name of the baseline
    pub name: String,
    /// Revision to approve without a question; the newest one when not given
    #[arg(long, value_name = "N")]
    pub revision: Option<i64>,
}

/// Flags of `history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Name of the validation; optional if the namespace has only one
    pub name: Option<String>,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Flags of `rerun`.
#[derive(Clone, Debug, Args)]
pub struct RerunArgs {
    /// Name of the validation; optional if the namespace has only one
    pub name: Option<String>,
    /// Follow it to its verdict
    #[arg(short, long)]
    pub watch: bool,
    /// Longest time to follow it (such as 90s, 30m, 1h); the run goes on
    #[arg(long, requires = "watch", value_parser = duration)]
    pub timeout: Option<Duration>,
}
