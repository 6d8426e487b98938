//! Facts between two looks at the policies. A new leader starts without them; it then only looks again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt as _;
use perfval_api::fleet::{PerfValidationPolicy, PerfValidationPolicyStatus};
use perfval_fleet::policy::{CreateRefusal, NodeComparison, ValidationFacts};
use tokio::time::Instant;

use super::baseline::Baselines;
use super::survey::Surveyed;

/// Time for which the watch may be behind a creation.
const BEHIND: Duration = Duration::from_mins(5);
/// Time for which a node stays at the back, if it had no free GPUs or the name of its validation is taken.
const SET_BACK: TimeDelta = TimeDelta::hours(24);
/// First pause after a refusal. Each further one doubles it.
const PAUSE: TimeDelta = TimeDelta::seconds(30);
/// Longest pause.
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(5);

/// Everything that is kept between two looks.
#[derive(Default)]
pub(super) struct Memory {
    /// Nodes of each policy, as last read.
    pub(super) surveyed: Option<Surveyed>,
    /// Validations that the watch does not show yet, by uid.
    created: HashMap<String, (Instant, ValidationFacts)>,
    policies: HashMap<String, OfPolicy>,
    /// Baselines.
    pub(super) baselines: Baselines,
    /// Fingerprint of the norms of the last comparisons.
    norms: u64,
}

/// Facts about one policy.
#[derive(Default)]
pub(super) struct OfPolicy {
    generation: Option<i64>,
    pub(super) refusal: Option<CreateRefusal>,
    refusals: u32,
    pub(super) set_back: BTreeMap<String, DateTime<Utc>>,
    /// Fingerprint of the measurements behind the comparison, and the time of the comparison.
    pub(super) compared: Option<(u64, Instant)>,
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

    /// Facts about a policy.
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
    /// Records the refusal of a validation.
    pub(super) fn refuse(&mut self, message: String, is_namespace_missing: bool, now: DateTime<Utc>) {
        let pause = (PAUSE * (1 << self.refusals.min(8))).min(LONGEST_PAUSE);
        self.refusals += 1;
        self.refusal = Some(CreateRefusal {
            is_namespace_missing,
            message,
            until: now + pause,
        });
    }

    /// Forgets refusals, because a validation was created.
    pub(super) fn allow(&mut self) {
        (self.refusal, self.refusals) = (None, 0);
    }
}
