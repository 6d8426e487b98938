//! Node selector of a policy.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};

/// Node selector, ready to match nodes.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Labels that decide.
    keys: BTreeSet<String>,
    /// `None` if the selector has an unknown operator; it matches nothing then.
    selector: Option<Selector>,
}

impl Selection {
    /// Reads a selector.
    pub fn new(selector: &LabelSelector) -> Self {
        let labels = selector.match_labels.iter().flat_map(BTreeMap::keys).cloned();
        let expressions = selector.match_expressions.iter().flatten();
        Self {
            keys: labels
                .chain(expressions.map(|expression| expression.key.clone()))
                .collect(),
            selector: Selector::try_from(selector.clone()).ok(),
        }
    }

    /// Returns true if it matches a node. `label` returns the value of a label of the node.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let labels = self
            .keys
            .iter()
            .filter_map(|key| Some((key.clone(), label(key)?.to_owned())));
        let labels: BTreeMap<String, String> = labels.collect();
        self.selector.as_ref().is_some_and(|selector| selector.matches(&labels))
    }
}
