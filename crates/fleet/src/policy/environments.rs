//! Environments of a policy's nodes, for its status.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kube::core::ResourceExt as _;
use perfval_api::fleet::PolicyEnvironment;

use super::facts::SelectedNode;
use super::snapshot::Snapshot;

/// Most environments in a status, so that it stays below 32 KiB.
const MOST: usize = 32;

/// Environments of the newest measurements of these nodes, those with the most nodes first.
pub(super) fn list_environments(nodes: &[&SelectedNode], snapshot: &Snapshot<'_>) -> Vec<PolicyEnvironment> {
    let mut found: BTreeMap<&str, PolicyEnvironment> = BTreeMap::new();
    for status in nodes.iter().filter_map(|node| snapshot.measured.get(&node.name)) {
        let Some(digest) = status.environment.as_deref() else {
            continue;
        };
        let environment = found.entry(digest).or_insert_with(|| PolicyEnvironment {
            digest: digest.to_owned(),
            product: status.product.clone(),
            nodes: 0,
            baseline: snapshot.baselines.get(digest).map(|baseline| baseline.name_any()),
        });
        environment.nodes += 1;
    }
    let mut environments: Vec<PolicyEnvironment> = found.into_values().collect();
    environments.sort_by_key(|environment| Reverse(environment.nodes));
    environments.truncate(MOST);
    environments
}
