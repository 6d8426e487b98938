//! Flags of the verbs that need no cluster.

use std::path::PathBuf;

use clap::Args;

use super::evidence::Format;

/// Flags of `judge`.
#[derive(Clone, Debug, Args)]
pub struct JudgeArgs {
    /// One file per trial, in order: AIPerf's export, or a trial of a results ConfigMap; or the ConfigMap
    /// alone, as JSON; - is standard input
    #[arg(required = true, value_name = "EXPORT")]
    pub exports: Vec<PathBuf>,

    /// Manifest of the PerfValidation whose gates and trial rule judge
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub manifest: PathBuf,

    /// GPUs in use, for gates that scale with them
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=1024))]
    pub gpus: Option<i64>,

    /// GPUs of the node, for gates that scale by their share
    #[arg(long, requires = "gpus", value_parser = clap::value_parser!(i64).range(1..=1024))]
    pub node_gpus: Option<i64>,

    /// Format of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Flags of `size`.
#[derive(Clone, Debug, Args)]
pub struct SizeArgs {
    /// Manifest of the PerfValidation to size for; without it, every choice has its default
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub filename: Option<PathBuf>,

    /// Show this node only (may be repeated); the plan stays that of the whole cluster
    #[arg(long = "node", value_name = "NODE")]
    pub nodes: Vec<String>,

    /// Format of the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,

    /// Read what `kubectl get nodes,pods,resourceslices,resourceclaims,deviceclasses -A -o yaml` printed instead of the
    /// cluster; - is standard input
    #[arg(long, value_name = "DUMP")]
    pub from: Option<PathBuf>,
}
