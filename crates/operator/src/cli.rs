//! The command line. Every flag has a twin in the environment; the manifests under `config/` set the twins.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use k8s_openapi::api::networking::v1::NetworkPolicyIngressRule;
use perfval_run::Settings;
use perfval_run::settings::{self, names};

use crate::version;

/// Measures a node's GPUs by serving a model on them: the operator of the `PerfValidation` resource.
#[derive(Debug, Parser)]
#[command(name = "perfvalidation-operator", version = version::long())]
pub struct OperatorCli {
    /// Command to carry out.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconcile `PerfValidation`s until asked to stop
    Run(Box<RunArgs>),
    /// Ask a running operator whether it is ready, until it is. Exit code: 0 ready, 1 not in time
    Ready(ReadyArgs),
}

/// Flags of `ready`.
#[derive(Clone, Debug, Args)]
pub struct ReadyArgs {
    /// URL of the operator's readiness
    #[arg(default_value = "http://127.0.0.1:8080/readyz")]
    pub url: String,

    /// Time to keep trying (seconds)
    #[arg(long, default_value_t = 60)]
    pub timeout: u64,
}

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Image with AIPerf, if spec.benchmark.image is empty
    #[arg(long, env = settings::AIPERF_IMAGE, value_parser = non_empty)]
    pub aiperf_image: Option<String>,

    /// Other permitted values of spec.benchmark.image, or path prefixes, comma-separated
    #[arg(long, env = settings::BENCHMARK_IMAGES, value_delimiter = ',', num_args = 0..)]
    pub benchmark_images: Vec<String>,

    /// Image with /perfval-runner: the operator's own
    #[arg(long, env = "PERFVAL_RUNNER_IMAGE", default_value_t = Settings::default().runner_image, value_parser = non_empty)]
    pub runner_image: String,

    /// DNS suffix of the cluster
    #[arg(long, env = "PERFVAL_CLUSTER_DOMAIN", default_value = "cluster.local", value_parser = non_empty)]
    pub cluster_domain: String,

    /// Access to frontends: dns (Service names), service-proxy (needs the right services/proxy) or auto, which is dns in a pod
    #[arg(long, env = "PERFVAL_ENDPOINT_ACCESS", value_enum, default_value_t = FrontendAccess::Auto)]
    pub endpoint_access: FrontendAccess,

    /// Watched namespaces, comma-separated; all when empty
    #[arg(long, env = settings::WATCH_NAMESPACES, value_delimiter = ',', num_args = 0..)]
    pub watch_namespaces: Vec<String>,

    /// Namespaces without runs, comma-separated; by default kube-system and the operator's own; none when empty
    #[arg(long, env = settings::REFUSED_NAMESPACES, value_delimiter = ',', num_args = 0..)]
    pub refused_namespaces: Option<Vec<String>>,

    /// Show pods and claims of other namespaces in messages, not only their number
    #[arg(long, env = "PERFVAL_NAME_FOREIGN_PODS", default_value_t = false, action = clap::ArgAction::Set)]
    pub name_foreign_pods: bool,

    /// Namespaces of DCGM exporters, comma-separated; only administrators may create pods there
    #[arg(long, env = "PERFVAL_DCGM_EXPORTER_NAMESPACES", value_delimiter = ',', num_args = 0..,
        default_values = settings::DCGM_EXPORTER_NAMESPACES)]
    pub dcgm_exporter_namespaces: Vec<String>,

    /// Ingress rules (JSON list) of a network policy for each run, which also admits its own pods
    #[arg(long, env = "PERFVAL_RUN_NETWORK_POLICY", value_parser = ingress_rules)]
    pub run_network_policy: Option<IngressRules>,

    /// Address of /healthz, /readyz and /metrics
    #[arg(long, env = "PERFVAL_METRICS_ADDR", default_value = "0.0.0.0:8080")]
    pub metrics_addr: SocketAddr,

    /// Address of /metrics over TLS, for bearer tokens that may get this path; --metrics-addr has no /metrics then
    #[arg(long, env = "PERFVAL_SECURE_METRICS_ADDR", requires = "metrics_tls_folder")]
    pub secure_metrics_addr: Option<SocketAddr>,

    /// Folder with tls.crt and tls.key
    #[arg(long, env = "PERFVAL_METRICS_TLS_FOLDER", requires = "secure_metrics_addr")]
    pub metrics_tls_folder: Option<PathBuf>,

    /// Series of every object in /metrics
    #[arg(long, env = "PERFVAL_OBJECT_METRICS", default_value_t = true, action = clap::ArgAction::Set)]
    pub object_metrics: bool,

    /// Work only while holding the Lease
    #[arg(long, env = "PERFVAL_LEADER_ELECT", default_value_t = true, action = clap::ArgAction::Set)]
    pub leader_elect: bool,

    /// Namespace of the Lease; by default that of the pod or kubeconfig
    #[arg(long, env = "PERFVAL_LEADER_ELECT_NAMESPACE", value_parser = non_empty)]
    pub leader_elect_namespace: Option<String>,

    /// Name of the Lease
    #[arg(long, env = "PERFVAL_LEADER_ELECT_NAME", default_value = "perfvalidation-operator", value_parser = non_empty)]
    pub leader_elect_name: String,

    /// Name of the process in Lease and events; by default host name and process id
    #[arg(long, env = "PERFVAL_IDENTITY", value_parser = non_empty)]
    pub identity: Option<String>,

    /// With leader election: file of passes under way, which sets aside an object whose pass ends the process twice; on
    /// a volume that outlives the container
    #[arg(long, env = "PERFVAL_IN_FLIGHT_FILE")]
    pub in_flight_file: Option<PathBuf>,

    /// Log format: json, text or auto, which is json in a pod
    #[arg(long, env = "PERFVAL_LOG_FORMAT", value_enum, default_value_t = LogFormat::Auto)]
    pub log_format: LogFormat,

    /// Log level, or directives such as `info,perfval_cluster=debug`
    #[arg(long, env = "PERFVAL_LOG", default_value = "info", value_parser = non_empty)]
    pub log: String,

    /// Parallel reconciliations per watched namespace
    #[arg(long, env = "PERFVAL_WORKERS", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: u16,
}

/// Ingress rules of a `NetworkPolicy`.
#[derive(Clone, Debug)]
pub struct IngressRules(Vec<NetworkPolicyIngressRule>);

/// Access to a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FrontendAccess {
    /// Through the name of its Service.
    Dns,
    /// Through the API server.
    ServiceProxy,
    /// Service DNS in a pod, the API server elsewhere.
    Auto,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
    /// JSON in a pod, text elsewhere.
    Auto,
}

/// Returns true if this process runs in a pod of the cluster; the kubelet sets the variable in every container.
pub fn in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

impl RunArgs {
    /// The part of the flags that decisions depend on. `own_namespace`: the namespace of the operator's pod, if it
    /// runs in one.
    pub fn settings(&self, own_namespace: Option<&str>) -> Settings {
        let refused_namespaces = match &self.refused_namespaces {
            Some(given) => names(given),
            None => settings::refused_by_default(own_namespace),
        };
        Settings {
            refused_namespaces,
            names_foreign_pods: self.name_foreign_pods,
            dcgm_exporter_namespaces: names(&self.dcgm_exporter_namespaces),
            shares_the_cluster: self.scopes() != [None],
            run_network_policy: self.run_network_policy.clone().map(|rules| rules.0),
            runner_image: self.runner_image.clone(),
            aiperf_image: self.aiperf_image.clone(),
            benchmark_images: names(&self.benchmark_images),
            cluster_domain: self.cluster_domain.clone(),
            ..Settings::default()
        }
    }

    /// The namespaces to watch; `None` means all of them.
    pub fn scopes(&self) -> Vec<Option<String>> {
        // Two watches of a namespace would show each of its objects twice.
        let named: BTreeSet<String> = names(&self.watch_namespaces).into_iter().collect();
        if named.is_empty() {
            vec![None]
        } else {
            named.into_iter().map(Some).collect()
        }
    }
}

/// The namespace of this process' pod, as the manifests set it; else of its service account.
pub fn own_namespace(config: &kube::Config) -> Option<String> {
    let named = std::env::var("POD_NAMESPACE").ok().filter(|name| !name.is_empty());
    named.or_else(|| in_pod().then(|| config.default_namespace.clone()))
}

/// The API server checks the rest when the first run creates its policy. A rule with a misspelt field would admit everyone,
/// so each rule must be the same after reading.
fn ingress_rules(text: &str) -> Result<IngressRules, String> {
    let given: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let rules: Vec<NetworkPolicyIngressRule> =
        serde_json::from_value(given.clone()).map_err(|error| error.to_string())?;
    if serde_json::to_value(&rules).is_ok_and(|read| read == given) {
        Ok(IngressRules(rules))
    } else {
        Err(format!(
            "it contains null or a field that ingress rules do not have; without it: {}",
            serde_json::json!(rules)
        ))
    }
}

/// A flag that is set to nothing is a mistake in a manifest, not a choice.
fn non_empty(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("it is empty: give a value or leave it out".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests;
