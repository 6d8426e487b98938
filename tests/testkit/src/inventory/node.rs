use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::json;

use super::build;

/// A node.
#[derive(Clone, Debug)]
pub struct NodeBuilder(pub(super) Node);

impl NodeBuilder {
    /// A Ready node with ample room.
    pub fn named(name: &str) -> Self {
        Self(build(json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64" } },
            "spec": {},
            "status": {
                "allocatable": { "cpu": "256", "memory": "2Ti", "pods": "110" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        })))
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0
            .metadata
            .labels
            .get_or_insert_default()
            .insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets what the node offers of a resource.
    #[must_use]
    pub fn offers(mut self, resource: &str, amount: &str) -> Self {
        let status = self.0.status.get_or_insert_default();
        let amount = Quantity(amount.to_owned());
        status
            .allocatable
            .get_or_insert_default()
            .insert(resource.to_owned(), amount);
        self
    }

    /// Sets what the node has of a resource, allocatable or not.
    #[must_use]
    pub fn has_in_all(mut self, resource: &str, amount: &str) -> Self {
        let status = self.0.status.get_or_insert_default();
        let amount = Quantity(amount.to_owned());
        status
            .capacity
            .get_or_insert_default()
            .insert(resource.to_owned(), amount);
        self
    }

    /// Adds a taint, given as `key` or `key=value`.
    #[must_use]
    pub fn taint(mut self, key: &str, effect: &str) -> Self {
        let (key, value) = key
            .split_once('=')
            .map_or((key, None), |(key, value)| (key, Some(value)));
        let taint = build(json!({ "key": key, "value": value, "effect": effect }));
        self.0
            .spec
            .get_or_insert_default()
            .taints
            .get_or_insert_default()
            .push(taint);
        self
    }

    /// Cordons it.
    #[must_use]
    pub fn cordoned(mut self) -> Self {
        self.0.spec.get_or_insert_default().unschedulable = Some(true);
        self
    }

    /// Makes it not Ready.
    #[must_use]
    pub fn not_ready(mut self) -> Self {
        self.0.status.get_or_insert_default().conditions =
            Some(vec![build(json!({ "type": "Ready", "status": "Unknown" }))]);
        self
    }
}
