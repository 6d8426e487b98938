//! Flags of the verbs that show what a run left behind.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use perfval_api::admission::is_label;

/// Format of an answer that is no list of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For scripts, as JSON.
    Json,
    /// For scripts, as YAML.
    Yaml,
}

/// Flags of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// A run: NAME, or NAME/RUN for an earlier one; with -f AIPerf's exports, one file for each trial
    #[arg(value_name = "RUN or EXPORT")]
    pub what: Vec<String>,
    /// Manifest whose gates judge the exports; without it, the report is of a run in the cluster
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
    /// Write every form into this folder; without -o and -d, perfval-NAME-RUN.html or perfval-exports.html is written.
    /// Earlier reports are replaced
    #[arg(short, long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// Flags of `verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// Folder that `report --directory` or `run --report` wrote
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
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
    /// Format of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Flags of `logs`.
#[derive(Clone, Debug, Args)]
pub struct LogsArgs {
    /// Name of the validation; optional if the namespace has only one
    pub name: Option<String>,
    /// Only these parts
    #[arg(short, long = "part", value_enum)]
    pub parts: Vec<RunPart>,
    /// Only the workers on these GPUs, by device name (`describe` shows it)
    #[arg(long = "gpu", value_name = "GPU")]
    pub gpus: Vec<String>,
    /// Follow the log until the run is over
    #[arg(short, long)]
    pub follow: bool,
    /// Lines of each container, from the end
    #[arg(long, default_value_t = 200, value_name = "LINES", value_parser = clap::value_parser!(i64).range(1..))]
    pub tail: i64,
    /// Namespace of the operator
    #[arg(long, default_value = OPERATOR_NAMESPACE, value_name = "NAMESPACE", value_parser = namespace_name)]
    pub operator_namespace: String,
}

/// Namespace in which the manifests and the chart install the operator.
pub const OPERATOR_NAMESPACE: &str = "perfvalidation-system";
/// Label of the operator's pods. The chart's `nameOverride` does not change it.
pub const OPERATOR_LABEL: &str = "app.kubernetes.io/part-of=perfvalidation-operator";

/// A part of a run that prints a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunPart {
    /// Downloads the model.
    ModelCache,
    /// Takes the requests and passes them to the workers.
    Frontend,
    /// Serves the model on its own GPUs.
    Worker,
    /// Sends the requests and measures (AIPerf).
    Benchmark,
    /// Lines of the operator's log about this validation.
    Operator,
}

/// Flags of `bundle`.
#[derive(Clone, Debug, Args)]
pub struct BundleArgs {
    /// Name of the validation; optional if the namespace has only one
    pub name: Option<String>,
    /// New file to write; perfval-NAME.tar.gz when not given, - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Namespace of the operator
    #[arg(long, default_value = OPERATOR_NAMESPACE, value_name = "NAMESPACE", value_parser = namespace_name)]
    pub operator_namespace: String,
}

/// Flags of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Manifest to be run; without it, every choice has its default
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub filename: Option<PathBuf>,
    /// Namespace of the operator
    #[arg(long, default_value = OPERATOR_NAMESPACE, value_name = "NAMESPACE", value_parser = namespace_name)]
    pub operator_namespace: String,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Name of a namespace.
pub(super) fn namespace_name(text: &str) -> Result<String, String> {
    if is_label(text) {
        return Ok(text.to_owned());
    }
    Err("write lower-case letters, digits and '-'".to_owned())
}
