//! Nodes that runs of one spec could have, each on its own.

use chrono::DateTime;
use perfval_api::fleet::SelectedNode;
use perfval_api::{AllocationMode, PerfValidationSpec};

use super::Sizing;
use super::examine::shows_missing_gpus;
use super::fleet::Fleet;
use super::node::HOSTNAME;
use super::report::{NodeObstacle, NodeReport};
use crate::HeldNodes;
use crate::inventory::{Node, OfRun};

impl Fleet<'_> {
    /// Returns the nodes with GPUs that `admits` accepts.
    ///
    /// # Errors
    /// Returns the reason if a part of the cluster is unknown.
    pub fn survey(
        &self,
        of_run: OfRun<'_>,
        spec: &PerfValidationSpec,
        admits: impl Fn(&Node) -> bool,
    ) -> Result<Vec<SelectedNode>, String> {
        if let Err(Sizing::Wait { message, .. } | Sizing::Refuse { message, .. }) = self.known(of_run) {
            return Err(message);
        }
        let (class, held) = (self.class(of_run, spec), HeldNodes::default());
        let world = self.world(&class, of_run, spec, &held, &[]);
        let examine = |node: &Node| {
            let report = world.glance(node);
            // A run that selects the node may have it while it is cordoned, or if GPUs are missing.
            let depends = report.obstacle == Some(NodeObstacle::Cordoned) || shows_missing_gpus(&report);
            if report.obstacle.is_none() || !depends {
                return report;
            }
            let mut pinned = spec.clone();
            let hostname = node.label(HOSTNAME).unwrap_or_default().to_owned();
            pinned.placement.node_selector.insert(HOSTNAME.to_owned(), hostname);
            let world = self.world(&class, of_run, &pinned, &held, &[]);
            world.glance(node)
        };
        let nodes = self.nodes.iter().filter(|node| admits(node) && world.has_gpus(node));
        let nodes = nodes.map(|node| {
            let report = examine(node);
            // A cordoned node waits for a person.
            let is_unusable = !node.unschedulable && lasts(&report, spec);
            SelectedNode {
                name: node.name.to_string(),
                hostname: node.label(HOSTNAME).map(str::to_owned),
                created_at: DateTime::from_timestamp(node.created_at, 0).unwrap_or_default(),
                is_free: report.obstacle.is_none(),
                is_too_small: matches!(report.obstacle, Some(NodeObstacle::TooFew | NodeObstacle::NotWhole)),
                unusable: is_unusable.then(|| report.summary().into()),
            }
        });
        Ok(nodes.collect())
    }
}

/// Returns true if only a change of the spec, the node or its drivers removes the obstacle.
fn lasts(report: &NodeReport, spec: &PerfValidationSpec) -> bool {
    match report.obstacle {
        Some(
            NodeObstacle::NotTolerated { .. }
            | NodeObstacle::OnlyByClaims { .. }
            | NodeObstacle::OnlyByPlugin { .. }
            | NodeObstacle::SharedGpus { .. }
            | NodeObstacle::ClassMissing { .. }
            | NodeObstacle::NothingPublished { .. }
            | NodeObstacle::NotOfClass { .. }
            | NodeObstacle::NotEvaluable { .. },
        ) => true,
        // If the spec chooses one of the two ways, the node is usable once nothing has GPUs the other way.
        Some(NodeObstacle::TwoLedgers { .. }) => matches!(spec.placement.allocation, AllocationMode::Auto),
        _ => false,
    }
}
