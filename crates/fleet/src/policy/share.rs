//! Nodes that several policies select: each belongs to one of them.

use std::collections::HashMap;

use kube::core::ResourceExt as _;
use perfval_api::fleet::PerfValidationPolicy;

use super::facts::SelectedNode;
use super::snapshot::PolicyFacts;
use crate::condition::created_at;

/// Nodes of a policy.
#[derive(Default)]
pub(super) struct NodeShare<'a> {
    /// Nodes of no older policy, sorted by name.
    pub(super) own: Vec<&'a SelectedNode>,
    pub(super) overlap: Option<Overlap<'a>>,
}

/// Nodes that belong to an older policy.
#[derive(Clone, Copy)]
pub(super) struct Overlap<'a> {
    pub(super) nodes: usize,
    pub(super) example: &'a str,
    pub(super) policy: &'a PerfValidationPolicy,
}

/// Gives each node to the oldest policy that selects it; of equally old ones to the first by name.
pub(super) fn share<'a>(policies: &'a [PolicyFacts<'a>]) -> Vec<NodeShare<'a>> {
    let mut by_age: Vec<usize> = (0..policies.len()).collect();
    by_age.sort_by_key(|at| {
        let policy = policies[*at].policy;
        (created_at(&policy.metadata), policy.name_any())
    });
    let mut owners: HashMap<&str, usize> = HashMap::new();
    let mut shares: Vec<NodeShare<'a>> = policies.iter().map(|_| NodeShare::default()).collect();
    for at in by_age {
        let mut nodes: Vec<&SelectedNode> = policies[at].nodes.iter().collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        for node in nodes {
            let owner = *owners.entry(&node.name).or_insert(at);
            if owner == at {
                shares[at].own.push(node);
                continue;
            }
            let overlap = shares[at].overlap.get_or_insert(Overlap {
                nodes: 0,
                example: &node.name,
                policy: policies[owner].policy,
            });
            overlap.nodes += 1;
        }
    }
    shares
}
