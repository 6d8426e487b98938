//! Pods by the node that they take room on.

use foldhash::{HashMap, HashMapExt as _};
use rust_decimal::Decimal;

use crate::inventory::{Node, PodUse};

/// Pods by node.
pub struct PodsByNode<'a>(HashMap<&'a str, Vec<&'a PodUse>>);

impl<'a> PodsByNode<'a> {
    /// Sorts pods by node.
    pub fn new(pods: &'a [PodUse]) -> Self {
        let mut by_node: HashMap<&str, Vec<&PodUse>> = HashMap::new();
        for pod in pods {
            by_node.entry(&pod.node).or_default().push(pod);
        }
        Self(by_node)
    }

    /// The pods of one node.
    pub fn on(&self, node: &Node) -> &[&'a PodUse] {
        self.0.get(&*node.name).map_or(&[], Vec::as_slice)
    }

    /// Those of them that have something of a resource.
    pub fn users_on(&self, node: &Node, resource: &str) -> Vec<&'a PodUse> {
        let has = |pod: &&&PodUse| pod.requests.get(resource) > Decimal::ZERO;
        self.on(node).iter().filter(has).copied().collect()
    }
}
