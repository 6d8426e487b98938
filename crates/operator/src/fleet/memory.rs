//! Facts between two looks at the policies. A new leader starts without them; it then only looks again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt as _;
use perfval_api::fleet::{ComparisonRules, NodePerformanceStatus, PerfValidationPolicy, PerfValidationPolicyStatus};
use perfval_fleet::baseline::Approved;
use perfval_fleet::policy::{CreateRefusal, NodeComparison, SelectedNode, ValidationFacts, compare_nodes};
use tokio::time::Instant;

use super::baseline::Baselines;
use super::fingerprint::fingerprint;
use super::survey::Surveyed;
use crate::unreadable::MarkedPolicies;

/// Time for which the watch may be behind a creation.
const BEHIND: Duration = Duration::from_mins(5);
/// Time for which a node stays at the back, if its validation got no GPUs or could not be created.
const SET_BACK: TimeDelta = TimeDelta::hours(24);
/// First pause after a refusal. Each further one doubles it.
const PAUSE: TimeDelta = TimeDelta::seconds(30);
/// Failures in a row that may pass by themselves, such as that of a webhook, before they count as a refusal.
const FAILURES: u32 = 2;
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(5);

/// Least time between two comparisons of all nodes: with 5,000 of them one takes a good part of a second.
const COMPARE: Duration = Duration::from_mins(1);

/// Everything that is kept between two looks.
#[derive(Default)]
pub(super) struct Memory {
    /// Nodes of each policy, as last read.
    pub(super) surveyed: Option<Surveyed>,
    /// Validations that the watch does not show yet, by uid.
    created: HashMap<String, (Instant, ValidationFacts)>,
    policies: HashMap<String, OfPolicy>,
    pub(super) baselines: Baselines,
    /// Policies that cannot be parsed and show it.
    pub(super) marked: MarkedPolicies,
    /// Fingerprint of the norms of the last comparisons.
    norms: u64,
}

#[derive(Default)]
pub(super) struct OfPolicy {
    generation: Option<i64>,
    pub(super) refusal: Option<CreateRefusal>,
    refusals: u32,
    /// Failures that were tolerated.
    failures: u32,
    pub(super) set_back: BTreeMap<String, DateTime<Utc>>,
    /// Times at which nodes of its validations were first missed, by hostname.
    pub(super) missed_since: BTreeMap<String, DateTime<Utc>>,
    /// Fingerprint of the measurements and nodes behind the comparison, and its time.
    compared: Option<(u64, Instant)>,
    pub(super) comparison: NodeComparison,
    /// Own write of the status, which the watch may not show yet.
    pub(super) written: Option<(Instant, PerfValidationPolicyStatus)>,
}

impl Memory {
    /// Forgets policies that are gone, and refusals of a spec that has changed.
    pub(super) fn retain(&mut self, policies: &[Arc<PerfValidationPolicy>], now: DateTime<Utc>) {
        let uids: HashSet<String> = policies.iter().filter_map(|policy| policy.uid()).collect();
        self.policies.retain(|uid, _| uids.contains(uid));
        for policy in policies {
            let generation = policy.metadata.generation;
            let known = self.policy(policy);
            known.set_back.retain(|_, at| now - *at < SET_BACK);
            if known.generation != generation {
                known.generation = generation;
                known.compared = None;
                known.allow();
            }
        }
    }

    /// Lets nodes be compared at once after an approval, because a person waits for it.
    pub(super) fn compare_with_new_norms(&mut self) {
        let norms = self.baselines.fingerprint();
        if self.norms != norms {
            self.norms = norms;
            self.policies.values_mut().for_each(|known| known.compared = None);
        }
    }

    pub(super) fn policy(&mut self, policy: &PerfValidationPolicy) -> &mut OfPolicy {
        self.policies.entry(policy.uid().unwrap_or_default()).or_default()
    }

    /// Facts about a policy that is known.
    pub(super) fn known(&self, policy: &PerfValidationPolicy) -> Option<&OfPolicy> {
        self.policies.get(policy.metadata.uid.as_deref()?)
    }

    /// Remembers a validation until the watch shows it.
    pub(super) fn add(&mut self, validation: ValidationFacts) {
        self.created
            .insert(validation.uid.clone(), (Instant::now(), validation));
    }

    /// Validations that the watch does not show. `known` are the uids of the others.
    pub(super) fn unseen(&mut self, known: &HashSet<String>) -> Vec<ValidationFacts> {
        self.created
            .retain(|uid, (at, _)| !known.contains(uid) && at.elapsed() < BEHIND);
        self.created
            .values()
            .map(|(_, validation)| validation.clone())
            .collect()
    }
}

impl OfPolicy {
    /// Compares the nodes of the policy, if a measurement or one of them is new. `objects` is the fingerprint of the measurements.
    pub(super) fn compare(
        &mut self,
        rules: &ComparisonRules,
        nodes: &[SelectedNode],
        (measured, approved): (&BTreeMap<String, &NodePerformanceStatus>, &Approved),
        objects: u64,
    ) {
        let names: HashSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let fingerprint = objects.wrapping_add(fingerprint(&names));
        let is_done = |(done, at): (u64, Instant)| done == fingerprint || at.elapsed() < COMPARE;
        if self.compared.is_some_and(is_done) {
            return;
        }
        self.comparison = compare_nodes(rules, measured, approved, |name| names.contains(name));
        self.compared = Some((fingerprint, Instant::now()));
    }

    pub(super) fn refuse(&mut self, message: String, is_namespace_missing: bool, now: DateTime<Utc>) {
        let pause = (PAUSE * (1 << self.refusals.min(8))).min(LONGEST_PAUSE);
        self.refusals += 1;
        self.refusal = Some(CreateRefusal {
            is_namespace_missing,
            message,
            until: now + pause,
        });
    }

    /// Records a failure that may pass by itself.
    pub(super) fn fail(&mut self, message: String, now: DateTime<Utc>) {
        if self.failures < FAILURES {
            self.failures += 1;
        } else {
            self.refuse(message, false, now);
        }
    }

    /// Forgets refusals, because a validation was created.
    pub(super) fn allow(&mut self) {
        (self.refusal, self.refusals, self.failures) = (None, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failures_that_are_tolerated_make_no_pause_longer() {
        let (mut known, now) = (OfPolicy::default(), DateTime::UNIX_EPOCH);
        let mut pause = || {
            known.fail("away".to_owned(), now);
            known.refusal.as_ref().map(|refusal| refusal.until - now)
        };
        let pauses = [pause(), pause(), pause(), pause()];
        assert_eq!(pauses, [None, None, Some(PAUSE), Some(PAUSE * 2)]);
        known.allow();
        known.fail("away".to_owned(), now);
        assert_eq!(known.refusal, None, "it is tolerated again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_moves_to_another_policy_is_compared_there() {
        let failed: NodePerformanceStatus = serde_json::from_value(json!({
            "verdict": "Failed", "measuredAt": "2026-11-20T12:00:00Z",
            "validation": {"namespace": "perf", "name": "v", "uid": "u", "run": 1, "policy": "p"},
        }))
        .expect("a status");
        let measured = BTreeMap::from([("n1".to_owned(), &failed), ("n2".to_owned(), &failed)]);
        let mut known = OfPolicy::default();
        let mut outliers = |name: &str| {
            let node = SelectedNode {
                name: name.to_owned(),
                ..SelectedNode::default()
            };
            known.compare(&ComparisonRules::default(), &[node], (&measured, &Approved::new()), 7);
            let outliers = known.comparison.outliers.iter();
            outliers.map(|outlier| outlier.node.clone()).collect::<Vec<_>>()
        };
        assert_eq!(outliers("n1"), ["n1"]);
        tokio::time::advance(COMPARE).await;
        assert_eq!(outliers("n2"), ["n2"], "no measurement is new");
    }
}
