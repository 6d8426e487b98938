//! Sizing against the real kube-scheduler: random clusters are written to a real API server, sizing says how many workers
//! each node takes, and then the scheduler is given one worker more than that.

mod ask;
mod compare;
mod generate;
mod kinds;
mod report;
mod schedule;
mod session;
mod shrink;
mod write;

use std::collections::BTreeSet;

use perfval_api::{PerfValidation, PerfValidationSpec};
use serde::Serialize;
use serde_json::{Value, json};

pub use compare::{Judged, Outcome};
pub use generate::cluster;
pub use report::Report;
pub use session::Session;
pub use shrink::shrink;

/// Label of everything that belongs to a random cluster; its value is the cluster's id.
pub const CLUSTER_LABEL: &str = "oracle.perfvalidation.dev/cluster";
/// Label of a random node; its value is the node's name.
pub const NODE_LABEL: &str = "oracle.perfvalidation.dev/node";
/// Annotation of an object that is deleted once everything is there, and that a finalizer keeps.
pub const DELETED: &str = "oracle.perfvalidation.dev/deleted";

/// A random cluster: the manifests of its objects, status included, and what is asked about it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// What it was made from.
    pub seed: u64,
    /// What the names of its objects begin with; nothing else contains it.
    pub id: String,
    /// `spec` of the `PerfValidation` that asks.
    pub spec: Value,
    /// Manifests, without a namespace.
    pub objects: Vec<Value>,
    /// Nodes to ask about.
    pub probes: Vec<Probe>,
    /// Whether nodes share devices, so that only one of them can be tried.
    pub shared: bool,
    /// Whether its objects bear on every cluster of the API server, so that no other one may be there.
    pub alone: bool,
}

/// A node, and what the generator knows about it.
#[derive(Clone, Debug, Serialize)]
pub struct Probe {
    /// Its name.
    pub node: String,
    /// Features of the cluster that bear on it.
    pub features: BTreeSet<&'static str>,
    /// Obstacles for which sizing has to refuse an answer.
    pub refusals: Vec<&'static str>,
    /// Obstacles for which sizing may refuse an answer.
    pub excuses: Vec<&'static str>,
}

impl Cluster {
    /// The same cluster under another name, so that it never meets what is left of an earlier one.
    ///
    /// # Errors
    /// If the id was part of more than names.
    fn renamed(&self, id: &str) -> Result<Self, serde_json::Error> {
        let rename = |text: String| text.replace(&self.id, id);
        let mut probes = self.probes.clone();
        for probe in &mut probes {
            probe.node = rename(std::mem::take(&mut probe.node));
        }
        Ok(Self {
            seed: self.seed,
            id: id.to_owned(),
            spec: serde_json::from_str(&rename(self.spec.to_string()))?,
            objects: serde_json::from_str(&rename(json!(self.objects).to_string()))?,
            probes,
            shared: self.shared,
            alone: self.alone,
        })
    }

    /// The object that asks for this very node, as the API server would hand it out.
    fn validation(&self, namespace: &str, node: Option<&str>) -> Result<PerfValidation, serde_json::Error> {
        let mut spec: PerfValidationSpec = serde_json::from_value(self.spec.clone())?;
        if let Some(node) = node {
            spec.placement
                .node_selector
                .insert(NODE_LABEL.to_owned(), node.to_owned());
        }
        serde_json::from_value(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1",
            "kind": "PerfValidation",
            "metadata": {
                "name": "oracle",
                "namespace": namespace,
                "uid": format!("{}/{}", self.id, node.unwrap_or_default()),
            },
            "spec": spec,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_cluster() {
        for seed in 0..50 {
            assert_eq!(cluster(seed).objects, cluster(seed).objects);
        }
        assert_ne!(cluster(1).objects, cluster(2).objects);
    }

    #[test]
    fn a_renamed_cluster_is_the_same_but_for_its_name() {
        for seed in 0..50 {
            let original = cluster(seed);
            let renamed = original.renamed("elsewhere").unwrap();
            let text = json!([renamed.objects, renamed.spec]).to_string();
            assert!(!text.contains(&original.id), "{text}");
            assert_eq!(renamed.renamed(&original.id).unwrap().objects, original.objects);
        }
    }

    #[test]
    fn five_hundred_clusters_have_every_feature_many_times() {
        let clusters: Vec<Cluster> = (1..=500).map(cluster).collect();
        let sizes: BTreeSet<usize> = clusters.iter().map(|cluster| cluster.probes.len()).collect();
        assert!(
            sizes.contains(&1) && sizes.last() <= Some(&30) && sizes.len() > 10,
            "{sizes:?}"
        );
        let mut count = std::collections::BTreeMap::new();
        for feature in clusters
            .iter()
            .flat_map(|cluster| &cluster.probes)
            .flat_map(|probe| &probe.features)
        {
            *count.entry(*feature).or_insert(0) += 1;
        }
        assert_eq!(count.len(), 58, "{count:?}");
        assert!(count.values().all(|count| *count >= 5), "{count:?}");
    }
}
