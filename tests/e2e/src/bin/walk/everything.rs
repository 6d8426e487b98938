//! All objects of the cluster, of every kind that it serves.

use std::collections::BTreeSet;

use perfval_e2e::Lab;

use crate::Outcome;

/// Kinds that come and go by themselves.
const PASSING: [&str; 3] = ["events", "events.events.k8s.io", "leases.coordination.k8s.io"];

/// Kind, namespace and name of every object.
pub struct Everything(BTreeSet<String>);

impl Everything {
    /// Lists them.
    pub async fn list(lab: &Lab) -> Outcome<Self> {
        let kinds = lab
            .try_kubectl(&["api-resources", "--verbs=list", "-o", "name"])
            .await?;
        let mut all = BTreeSet::new();
        for kind in kinds.lines().filter(|kind| !PASSING.contains(kind)) {
            let path = r#"jsonpath={range .items[*]}{.metadata.namespace}{"/"}{.metadata.name}{"\n"}{end}"#;
            let listed = lab.try_kubectl(&["get", kind, "-A", "-o", path]).await?;
            all.extend(listed.lines().map(|name| format!("{kind} {name}")));
        }
        Ok(Self(all))
    }

    /// What is here and was not there.
    pub fn beyond(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }
}
