//! Policies, and the outliers that they found.

use std::collections::BTreeSet;

use kube::Client;
use kube::api::{Api, ListParams};
use perfval_api::fleet::{Outlier, OutlierConfidence, OutlierReason, PerfValidationPolicy};

use crate::error::{Error, is_missing_kind};
use crate::screen::Screen;

/// All policies of the cluster.
#[derive(Default)]
pub struct Policies {
    pub all: Vec<PerfValidationPolicy>,
}

impl Policies {
    /// Reads them. A person who may not read them sees the measurements without the outliers, and a note.
    pub async fn read(screen: &mut Screen, client: &Client) -> Self {
        let api: Api<PerfValidationPolicy> = Api::all(client.clone());
        let all = match api.list(&ListParams::default()).await {
            Ok(list) => list.items,
            Err(kube::Error::Api(status)) if is_missing_kind(&status) => Vec::new(),
            Err(error) => {
                let why = Error::from_call("read PerfValidationPolicies", error);
                screen.note(&format!("Outliers are not shown: {why}"));
                Vec::new()
            }
        };
        Self { all }
    }

    /// Drops outliers of nodes that are not listed.
    pub fn retain(&mut self, nodes: &BTreeSet<String>) {
        for status in self.all.iter_mut().filter_map(|policy| policy.status.as_mut()) {
            status.outliers.retain(|outlier| nodes.contains(&outlier.node));
        }
    }

    /// Highest confidence with which a comparison calls a node slow.
    pub fn confidence(&self, node: &str) -> Option<OutlierConfidence> {
        self.outliers(node).filter_map(|outlier| outlier.confidence).max()
    }

    /// The worst comparison that a node lost, such as `Confirmed: 88% of peers`. A missed gate is in the verdict.
    pub fn words(&self, node: &str) -> Option<String> {
        let compared = self.outliers(node).filter(|outlier| outlier.confidence.is_some());
        let worst = compared.max_by_key(|outlier| (outlier.confidence, outlier.percent.map(|percent| -percent)))?;
        let subject = if worst.gpu.is_some() { "GPU " } else { "" };
        let reference = match worst.reason {
            OutlierReason::SlowerThanItself => "past",
            OutlierReason::SlowerThanPeers => "peers",
            OutlierReason::BelowGate => "gate",
        };
        let percent = worst.percent.map_or_else(String::new, |percent| format!("{percent}% "));
        let confidence: &str = worst.confidence?.into();
        Some(format!("{confidence}: {subject}{percent}of {reference}"))
    }

    fn outliers<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Outlier> {
        let statuses = self.all.iter().filter_map(|policy| policy.status.as_ref());
        let outliers = statuses.flat_map(|status| &status.outliers);
        outliers.filter(move |outlier| outlier.node == node)
    }
}
