//! The command line. Flags that kubectl has are named and mean as there.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use perfval_commands::args::{JudgeArgs, SizeArgs};

/// Measures a node's GPUs by serving a model on them: runs, watches and explains `PerfValidation`s.
///
/// Exit codes: 0 Passed or Skipped, or done; 1 Failed, or something is missing; 2 wrong flags or bad input; 3 Inconclusive,
/// or not over yet; 4 Error, or the cluster cannot be read.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-perfval",
    bin_name = "kubectl perfval",
    version,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Which cluster and namespace.
    #[command(flatten)]
    pub target: Target,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Which cluster and namespace.
#[derive(Clone, Debug, Default, Args)]
pub struct Target {
    /// Namespace; that of the kubeconfig's context when not given
    #[arg(short, long, global = true)]
    pub namespace: Option<String>,
    /// Context of the kubeconfig
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// File with the kubeconfig; KUBECONFIG, then ~/.kube/config when not given
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create a validation and follow it to its verdict; an unchanged one that exists is run again
    Run(Box<RunArgs>),
    /// Follow a validation until its run is over
    Watch(WatchArgs),
    /// List validations
    Get(GetArgs),
    /// Explain one validation: verdict, gates, trials, workers, causes and what to do about them
    Describe(NameArgs),
    /// Show what every node has for a run, and the plan that a run would get
    Size(SizeArgs),
    /// Judge recorded results without a cluster
    Judge(JudgeArgs),
    /// Write the report of a run, or of recorded results: a page, test cases, a summary, metrics
    Report(ReportArgs),
    /// Compare two runs: numbers with their spread, and what differs in what they ran on
    Diff(DiffArgs),
    /// List the runs of a validation
    History(NameArgs),
    /// Run a validation again
    Rerun(RerunArgs),
    /// Stop a validation and free its GPUs
    Suspend(NameArgs),
    /// Let a suspended validation run
    Resume(NameArgs),
    /// Keep everything of a run for a post-mortem, GPUs included
    Keep(NameArgs),
    /// Remove what was kept
    CleanUp(NameArgs),
    /// Print the logs of a run, merged by time: frontend, workers, load generator, operator
    Logs(LogsArgs),
    /// Write everything for a bug report into one archive, without secrets
    Bundle(BundleArgs),
    /// Tell what is missing for a first run, and what to type next
    Doctor(DoctorArgs),
    /// Write a commented manifest; asks for what no flag says
    Init(InitArgs),
    /// List the gates that ship for known GPUs, or print one as a manifest
    Presets(PresetsArgs),
    /// Print the completions of a shell
    Completion {
        /// Which shell.
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// How an answer is printed.
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
    /// Name of the validation; may be left out where the namespace has one only
    pub name: Option<String>,
}

/// Flags of `get`.
#[derive(Clone, Debug, Args)]
pub struct GetArgs {
    /// Name of one validation
    pub name: Option<String>,
    /// Of all namespaces
    #[arg(short = 'A', long, conflicts_with = "name")]
    pub all_namespaces: bool,
    /// How the answer is printed
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Manifest of the validation; - is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["preset", "model", "image"])]
    pub filename: Option<PathBuf>,
    /// The common case, without a manifest.
    #[command(flatten)]
    pub common: CommonCase,
    /// Write the report into this folder once it is over: a page, test cases, a summary, metrics
    #[arg(long, value_name = "DIR", conflicts_with = "detach")]
    pub report: Option<PathBuf>,
    /// Create it and do not follow
    #[arg(long)]
    pub detach: bool,
    /// Longest time to follow it (such as 90s, 30m, 1h)
    #[arg(long, value_parser = duration)]
    pub timeout: Option<std::time::Duration>,
}

/// A validation by a preset.
#[derive(Clone, Debug, Default, Args)]
pub struct CommonCase {
    /// Gates and load for this GPU: see `presets`
    #[arg(long, value_name = "GPU")]
    pub preset: Option<String>,
    /// Name of the validation
    #[arg(long)]
    pub name: Option<String>,
    /// Model to serve
    #[arg(long)]
    pub model: Option<String>,
    /// Image of the workers, of the minor version of Dynamo's operator
    #[arg(long)]
    pub image: Option<String>,
    /// At most this many GPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=64))]
    pub max_gpus: Option<i64>,
    /// The node under test
    #[arg(long)]
    pub node: Option<String>,
}

/// Flags of `watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Name of the validation; may be left out where the namespace has one only
    pub name: Option<String>,
    /// Longest time to follow it (such as 90s, 30m, 1h)
    #[arg(long, value_parser = duration)]
    pub timeout: Option<std::time::Duration>,
}

/// Flags of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// A run: NAME, or NAME/RUN for an earlier one; with -f AIPerf's exports, one file for each trial
    #[arg(value_name = "RUN or EXPORT")]
    pub what: Vec<String>,
    /// Manifest whose gates judge the exports
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// GPUs in use, for gates that scale with them
    #[arg(long, requires = "manifest", value_parser = clap::value_parser!(i64).range(1..=1024))]
    pub gpus: Option<i64>,
    /// GPUs of the node, for gates that scale by their share
    #[arg(long, requires = "gpus", value_parser = clap::value_parser!(i64).range(1..=1024))]
    pub node_gpus: Option<i64>,
    /// Print it in this form
    #[arg(short, long, value_enum, conflicts_with = "directory")]
    pub output: Option<Form>,
    /// Write every form into this folder
    #[arg(short, long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One page, for people.
    Html,
    /// Test cases as XML.
    Junit,
    /// Test cases as JSON.
    Ctrf,
    /// For the summary of a job.
    Markdown,
    /// For a push gateway, or a file that a node exporter reads.
    Openmetrics,
}

/// Flags of `diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// The run before: NAME, or NAME/RUN for an earlier run
    pub before: String,
    /// The run after; when not given, the last run of the first name, against the one before it
    pub after: Option<String>,
}

/// Flags of `rerun`.
#[derive(Clone, Debug, Args)]
pub struct RerunArgs {
    /// Name of the validation; may be left out where the namespace has one only
    pub name: Option<String>,
    /// Follow it to its verdict
    #[arg(short, long)]
    pub watch: bool,
}

/// Flags of `logs`.
#[derive(Clone, Debug, Args)]
pub struct LogsArgs {
    /// Name of the validation; may be left out where the namespace has one only
    pub name: Option<String>,
    /// Only these parts
    #[arg(short, long = "part", value_enum)]
    pub parts: Vec<Part>,
    /// Only the workers on these GPUs, by device name
    #[arg(long = "gpu", value_name = "GPU")]
    pub gpus: Vec<String>,
    /// Lines of each container, from the end
    #[arg(long, default_value_t = 200, value_name = "LINES", value_parser = clap::value_parser!(i64).range(1..))]
    pub tail: i64,
    /// Namespace of the operator
    #[arg(long, default_value = OPERATOR_NAMESPACE, value_name = "NAMESPACE")]
    pub operator_namespace: String,
}

/// Where the manifests and the chart install the operator.
pub const OPERATOR_NAMESPACE: &str = "perfvalidation-system";

/// A part of a run that prints a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Takes the requests.
    Frontend,
    /// Hold the GPUs.
    Worker,
    /// Sends the requests.
    Benchmark,
    /// What the operator says of this validation.
    Operator,
}

/// Flags of `bundle`.
#[derive(Clone, Debug, Args)]
pub struct BundleArgs {
    /// Name of the validation; may be left out where the namespace has one only
    pub name: Option<String>,
    /// File to write; perfval-NAME.tar.gz when not given, - is standard output
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub filename: Option<PathBuf>,
    /// Namespace of the operator
    #[arg(long, default_value = OPERATOR_NAMESPACE, value_name = "NAMESPACE")]
    pub operator_namespace: String,
}

/// Flags of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Manifest to be run; without it, one that leaves every choice to its default
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub filename: Option<PathBuf>,
    /// Namespace of the operator
    #[arg(long, default_value = OPERATOR_NAMESPACE, value_name = "NAMESPACE")]
    pub operator_namespace: String,
}

/// Flags of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// The common case, without a manifest.
    #[command(flatten)]
    pub common: CommonCase,
    /// File to write; standard output when not given
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub filename: Option<PathBuf>,
}

/// Flags of `presets`.
#[derive(Clone, Debug, Args)]
pub struct PresetsArgs {
    /// Print this one as a manifest
    pub name: Option<String>,
}

/// A duration as the manifests have them: `90s`, `30m`, `1h30m`.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let duration = perfval_run::time::duration(text);
    if duration.is_zero() {
        return Err("write a duration such as 90s, 30m or 1h".to_owned());
    }
    Ok(duration)
}
