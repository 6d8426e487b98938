//! What the operator asked of the API server, by its audit log.

use std::collections::BTreeSet;

use super::Use;
use crate::audit::{OPERATOR, entries};

/// A request, as authorisation sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with its subresource.
    pub resource: String,
    /// Verb.
    pub verb: String,
    /// Namespace; none: the whole cluster.
    pub namespace: Option<String>,
    /// The one object it is about.
    pub name: Option<String>,
    /// Whether the authoriser refused it.
    pub refused: bool,
}

impl Request {
    pub(super) fn what(&self) -> Use {
        Use {
            group: self.group.clone(),
            resource: self.resource.clone(),
            verb: self.verb.clone(),
            cluster_wide: self.namespace.is_none(),
        }
    }
}

/// Every different request of the installed operator in a log: one JSON object a line. A line that was cut off by the end of
/// the API server is left out.
pub fn read_log(log: &str) -> BTreeSet<Request> {
    // Half a million lines of others: their JSON is not read.
    let ours = log.lines().filter(|line| line.contains(OPERATOR));
    ours.flat_map(entries)
        .filter(|entry| entry.user.username == OPERATOR)
        .filter_map(|entry| {
            // Discovery and the version have no object.
            let object = entry.object_ref.filter(|object| !object.resource.is_empty())?;
            let resource = object.kind();
            let given = |text: String| Some(text).filter(|text| !text.is_empty());
            Some(Request {
                group: object.api_group,
                resource,
                verb: entry.verb,
                namespace: given(object.namespace),
                name: given(object.name),
                refused: entry.annotations.decision == "forbid",
            })
        })
        .collect()
}
