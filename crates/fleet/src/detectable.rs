//! Losses that a comparison would report.

use crate::centre::median;
use crate::evidence::{DetectionLimits, NodeEvidence};
use crate::numbers::percent;

/// Smallest losses (percent, above 0) that at least nine of ten passes report. `None` if no loss is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DetectableLoss {
    /// Of one GPU.
    pub gpu: Option<f64>,
    /// Of all GPUs of a node.
    pub node: Option<f64>,
}

impl DetectableLoss {
    /// Median of some nodes, each as if it had a confirmation now.
    pub(crate) fn new(nodes: &[NodeEvidence<'_>], limits: DetectionLimits) -> Self {
        let of = |is_gpu: bool| {
            let losses: Vec<f64> = nodes
                .iter()
                .filter_map(|node| node.detectable(is_gpu, limits))
                .collect();
            // Half of the nodes have no answer.
            let is_known = 2 * losses.len() > nodes.len();
            median(&losses).filter(|_| is_known).map(|loss| -percent(-loss))
        };
        Self {
            gpu: of(true),
            node: of(false),
        }
    }

    /// The larger of two losses: a policy has several environments.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let larger = |a: Option<f64>, b: Option<f64>| Some(a?.max(b?));
        Self {
            gpu: larger(self.gpu, other.gpu),
            node: larger(self.node, other.node),
        }
    }
}
