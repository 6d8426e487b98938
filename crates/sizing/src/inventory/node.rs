use std::sync::Arc;

use k8s_openapi::api::core::v1::{self, Taint};

use super::interned::Label;
use super::{Amounts, Interned};

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// Time of its creation (seconds since 1970).
    pub created_at: i64,
    /// Its labels, sorted by key.
    labels: Box<[Arc<Label>]>,
    /// Its taints.
    pub taints: Box<[Taint]>,
    /// True if its condition `Ready` is `True`.
    pub ready: bool,
    /// True if it is cordoned.
    pub unschedulable: bool,
    /// True if it is being deleted.
    pub deleting: bool,
    /// Amounts available to pods.
    pub allocatable: Arc<Amounts>,
    /// Amounts of the whole machine.
    pub capacity: Arc<Amounts>,
}

impl Node {
    /// Reduces a node to sizing's needs.
    pub fn read(node: &v1::Node, interned: &mut Interned) -> Self {
        let (spec, status) = (node.spec.as_ref(), node.status.as_ref());
        let labels = node.metadata.labels.iter().flatten();
        let mut offered = |quantities| {
            let amounts = Amounts::offered(quantities, interned.texts()).trimmed();
            interned.share_amounts(amounts)
        };
        let allocatable = offered(status.and_then(|status| status.allocatable.as_ref()));
        let capacity = offered(status.and_then(|status| status.capacity.as_ref()));
        let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        Self {
            name: interned.share(node.metadata.name.as_deref().unwrap_or_default()),
            created_at: node
                .metadata
                .creation_timestamp
                .as_ref()
                .map_or(0, |time| time.0.as_second()),
            labels: labels.map(|(key, value)| interned.share_label(key, value)).collect(),
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default().into(),
            ready: conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
            deleting: node.metadata.deletion_timestamp.is_some(),
            allocatable,
            capacity,
        }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let index = self.labels.binary_search_by(|label| (*label.0).cmp(key)).ok()?;
        Some(&self.labels[index].1)
    }
}
