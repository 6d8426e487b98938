//! Pods by the node that they take room on.

use foldhash::{HashMap, HashMapExt as _};
use rust_decimal::Decimal;

use crate::inventory::{Node, PodUse};

/// Pods by node.
pub struct PodsByNode<'a>(HashMap<&'a str, NodePods<'a>>);

#[derive(Default)]
struct NodePods<'a> {
    all: Vec<&'a PodUse>,
    users: Vec<&'a PodUse>,
}

impl<'a> PodsByNode<'a> {
    /// Sorts pods by node, and those out that have something of a resource.
    pub fn of(pods: &'a [PodUse], resource: &str) -> Self {
        let mut by_node: HashMap<&str, NodePods<'_>> = HashMap::new();
        for pod in pods {
            let here = by_node.entry(&pod.node).or_default();
            here.all.push(pod);
            if pod.requests.get(resource) > Decimal::ZERO {
                here.users.push(pod);
            }
        }
        Self(by_node)
    }

    /// The pods of one node.
    pub fn on(&self, node: &Node) -> &[&'a PodUse] {
        self.0.get(&*node.name).map_or(&[], |here| &here.all)
    }

    /// Those of them that have something of the resource.
    pub fn users_on(&self, node: &Node) -> &[&'a PodUse] {
        self.0.get(&*node.name).map_or(&[], |here| &here.users)
    }
}
