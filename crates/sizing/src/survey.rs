//! Nodes that runs of one spec could have, each on its own.

use perfval_api::PerfValidationSpec;

use super::Sizing;
use super::examine::shows_missing_gpus;
use super::fleet::Fleet;
use super::node::HOSTNAME;
use super::report::NodeObstacle;
use crate::HeldNodes;
use crate::inventory::{Node, OfRun};

/// Node with GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedNode {
    /// Name.
    pub name: String,
    /// Label `kubernetes.io/hostname`.
    pub hostname: Option<String>,
    /// Time of its creation (seconds since 1970).
    pub created_at: i64,
    /// True if a run that selects this node alone could have GPUs now.
    pub is_free: bool,
    /// True if it has fewer GPUs than such a run needs, free or not.
    pub is_too_small: bool,
}

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
    ) -> Result<Vec<SurveyedNode>, String> {
        if let Err(Sizing::Wait { message, .. } | Sizing::Refuse { message, .. }) = self.known(of_run) {
            return Err(message);
        }
        let (class, held) = (self.class(of_run, spec), HeldNodes::default());
        let world = self.world(&class, of_run, spec, &held, &[]);
        let obstacle = |node: &Node| {
            let report = world.glance(node);
            // A run that selects the node may have it while it is cordoned, or if GPUs are missing.
            let depends = report.obstacle == Some(NodeObstacle::Cordoned) || shows_missing_gpus(&report);
            if report.obstacle.is_none() || !depends {
                return report.obstacle;
            }
            let mut pinned = spec.clone();
            let hostname = node.label(HOSTNAME).unwrap_or_default().to_owned();
            pinned.placement.node_selector.insert(HOSTNAME.to_owned(), hostname);
            let world = self.world(&class, of_run, &pinned, &held, &[]);
            world.glance(node).obstacle
        };
        let nodes = self.nodes.iter().filter(|node| admits(node) && world.has_gpus(node));
        let nodes = nodes.map(|node| {
            let obstacle = obstacle(node);
            SurveyedNode {
                name: node.name.to_string(),
                hostname: node.label(HOSTNAME).map(str::to_owned),
                created_at: node.created_at,
                is_free: obstacle.is_none(),
                is_too_small: matches!(obstacle, Some(NodeObstacle::TooFew | NodeObstacle::NotWhole)),
            }
        });
        Ok(nodes.collect())
    }
}
