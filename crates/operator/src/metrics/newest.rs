//! Newest results of the nodes of policies.
//!
//! A policy keeps several validations of a node, and the node's own series show its recorded run. They do not show a
//! validation that could not be judged, so the series of its verdict stay until a newer one of the node has a result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use perfval_api::{PerfValidation, PerfValidationStatus, Verdict};
use perfval_fleet::policy::HOSTNAME;

use super::last::LastVerdict;

/// Newest results, by the uid of the policy, the namespace and the hostname of the node. A user of another namespace may write the same
/// owner there.
#[derive(Default)]
pub(super) struct NewestResults(BTreeMap<(String, Arc<str>, String), NewestResult>);

struct NewestResult {
    at: DateTime<Utc>,
    unjudged: Option<UnjudgedResult>,
}

/// Result of a validation that could not be judged.
pub(super) struct UnjudgedResult {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) verdict: LastVerdict,
}

impl NewestResults {
    /// Adds the result of a validation, if it is the newest of its node. A skipped run is no result.
    pub(super) fn add(
        &mut self,
        policy: &OwnerReference,
        [namespace, name]: [&Arc<str>; 2],
        object: &PerfValidation,
        status: &PerfValidationStatus,
    ) {
        let last = LastVerdict::from_status(status).filter(|last| last.verdict != Verdict::Skipped);
        let Some(verdict) = last else { return };
        let at = verdict.at.unwrap_or_default();
        let hostname = object.spec.placement.node_selector.get(HOSTNAME);
        let hostname = hostname.cloned().unwrap_or_default();
        let node = (policy.uid.clone(), namespace.clone(), hostname);
        if self.0.get(&node).is_some_and(|known| known.at >= at) {
            return;
        }
        let is_unjudged = matches!(status.verdict, Some(Verdict::Error | Verdict::Inconclusive));
        let unjudged = is_unjudged.then(|| UnjudgedResult {
            namespace: namespace.clone(),
            name: name.clone(),
            // Slow GPUs of a policy are outliers, and their UUIDs would be a series each.
            verdict: LastVerdict {
                slow_gpus: BTreeSet::new(),
                ..verdict
            },
        });
        self.0.insert(node, NewestResult { at, unjudged });
    }

    /// Newest results of their nodes that could not be judged.
    pub(super) fn into_unjudged(self) -> impl Iterator<Item = UnjudgedResult> {
        self.0.into_values().filter_map(|newest| newest.unjudged)
    }
}
