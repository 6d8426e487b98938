//! The nodes and their environments.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use perfval_api::Verdict;
use perfval_api::fleet::{
    GpuPerformance, NodePerformance, NodePerformanceStatus, OutlierConfidence, PerfValidationPolicy,
    PerfValidationPolicyStatus,
};

/// Fewest GPUs of one environment that give a median worth comparing with.
const ALIKE: usize = 3;

/// Nodes with their newest measurements.
#[derive(Clone, Debug)]
pub struct FleetReport {
    /// Measured nodes, the worst first.
    pub(super) measured: Vec<(String, NodePerformanceStatus)>,
    /// Nodes with GPUs and without a measurement, each with the obstacle.
    pub(super) never: BTreeMap<String, String>,
    /// Policies by name, each with its status.
    pub(super) policies: BTreeMap<String, PerfValidationPolicyStatus>,
    /// Number of policies that could not be parsed.
    pub(super) unparsed_policies: usize,
    /// Versions and labels of nodes; `None` if they could not be read.
    pub(super) properties: Option<BTreeMap<String, BTreeMap<String, String>>>,
    /// Number of nodes whose measurement could not be parsed.
    pub(super) unparsed: usize,
    pub(super) now: DateTime<Utc>,
}

/// Nodes with the same environment.
pub(super) struct FleetEnvironment<'a> {
    pub digest: &'a str,
    pub product: Option<&'a str>,
    pub nodes: usize,
    pub verdicts: BTreeMap<&'static str, usize>,
    /// Median of the nodes' output tokens per second.
    pub throughput: Option<i64>,
    /// Median of the GPUs' times from token to token (µs), if there are enough of them.
    pub token_microseconds: Option<i64>,
}

impl FleetReport {
    /// Takes measured nodes in the order in which the page lists them, nodes without a measurement with their obstacles,
    /// policies with the outliers that they found, and nodes, so that outliers can be compared with nodes that pass. Each
    /// number is of objects that could not be parsed.
    pub fn new(
        (rows, unparsed): (&[NodePerformance], usize),
        never: BTreeMap<String, String>,
        (policies, unparsed_policies): (&[PerfValidationPolicy], usize),
        nodes: Option<&[Node]>,
        now: DateTime<Utc>,
    ) -> Self {
        let row = |row: &NodePerformance| Some((row.name_any(), row.status.clone()?));
        let policy = |policy: &PerfValidationPolicy| Some((policy.name_any(), policy.status.clone()?));
        let node = |node: &Node| (node.name_any(), properties(node));
        Self {
            measured: rows.iter().filter_map(row).collect(),
            never,
            policies: policies.iter().filter_map(policy).collect(),
            unparsed_policies,
            properties: nodes.map(|nodes| nodes.iter().map(node).collect()),
            unparsed,
            now,
        }
    }

    /// Nodes that missed a gate or that new deployments confirmed as slow.
    pub(super) fn odd_nodes(&self) -> BTreeSet<&str> {
        let outliers = self.policies.values().flat_map(|status| &status.outliers);
        let sure = outliers.filter(|outlier| outlier.confidence != Some(OutlierConfidence::Suspected));
        let failed = self
            .measured
            .iter()
            .filter(|(_, status)| status.verdict == Verdict::Failed);
        let names = sure.map(|outlier| outlier.node.as_str());
        names.chain(failed.map(|(name, _)| name.as_str())).collect()
    }

    /// Number of measured nodes with a verdict.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let rows = self.measured.iter();
        rows.filter(|(_, status)| status.verdict == verdict).count()
    }

    /// Environments, the one with most nodes first.
    pub(super) fn environments(&self) -> Vec<FleetEnvironment<'_>> {
        let mut groups: BTreeMap<&str, Vec<&NodePerformanceStatus>> = BTreeMap::new();
        for (_, status) in &self.measured {
            groups.entry(digest(status)).or_default().push(status);
        }
        let environments = groups.into_iter().map(|(digest, rows)| {
            let mut verdicts = BTreeMap::new();
            for status in &rows {
                *verdicts.entry(status.verdict.as_str()).or_default() += 1;
            }
            let rates = rows.iter().filter_map(|status| status.output_tokens_per_second);
            let gpus = rows.iter().flat_map(|status| &status.gpus);
            let times: Vec<i64> = gpus.filter_map(|gpu| gpu.token_microseconds).collect();
            FleetEnvironment {
                digest,
                product: rows.iter().find_map(|status| status.product.as_deref()),
                nodes: rows.len(),
                verdicts,
                throughput: median(rates.collect()),
                token_microseconds: Some(times).filter(|times| times.len() >= ALIKE).and_then(median),
            }
        });
        let mut all: Vec<FleetEnvironment<'_>> = environments.collect();
        all.sort_by_key(|environment| (std::cmp::Reverse(environment.nodes), environment.digest));
        all
    }
}

/// Labels and versions of a node.
fn properties(node: &Node) -> BTreeMap<String, String> {
    let mut found = node.metadata.labels.clone().unwrap_or_default();
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    for (name, value) in info.into_iter().flat_map(|info| {
        [
            ("kernel", &info.kernel_version),
            ("operating system", &info.os_image),
            ("kubelet", &info.kubelet_version),
            ("container runtime", &info.container_runtime_version),
        ]
    }) {
        found.insert(name.to_owned(), value.clone());
    }
    found
}

pub(super) fn digest(status: &NodePerformanceStatus) -> &str {
    status.environment.as_deref().unwrap_or_default()
}

/// Decode speed of a GPU (percent of the median of all GPUs of its environment).
pub(super) fn percent_of_median(gpu: &GpuPerformance, median: i64) -> Option<i64> {
    let own = gpu.token_microseconds.filter(|time| *time > 0)?;
    Some((100 * median + own / 2) / own)
}

/// The middle value; the lower one of two.
fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}
