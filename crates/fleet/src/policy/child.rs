//! Validations of a policy: their names, their objects and the pauses after errors.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{Resource as _, ResourceExt as _};
use perfval_api::fleet::{DueReason, PerfValidationPolicy};
use perfval_api::meta::{DUE_REASON, ERRORS_BEFORE, NODE_LABEL, POLICY_LABEL};
use perfval_api::{PerfValidation, TrialRule};

use super::facts::{HOSTNAME, ValidationFacts};
use super::schedule::duration;
use crate::measurement::CONFIRMATION_TRIALS;

/// Pause after the first validation without a measurement. Each further one doubles it.
const PAUSE: TimeDelta = TimeDelta::minutes(10);
/// Longest pause.
const LONGEST_PAUSE: TimeDelta = TimeDelta::hours(24);
/// Time-out of the wait for GPUs. The policy gives up earlier and tries other nodes; an Error would pause the node.
const SIZING: &str = "30m";
/// Longest wait for the prerequisites. The policy deletes a validation that waits for ten minutes, and an Error after that time could
/// not show the obstacle.
const PREREQUISITES: &str = "5m";
/// Longest part of a name that comes from the policy, and from the node.
const PART: usize = 20;

/// Validations of one policy on one node.
#[derive(Default)]
pub(super) struct NodeHistory<'a> {
    pub(super) all: Vec<&'a ValidationFacts>,
    /// Time of the node's creation: its machine may have replaced another one of the same name.
    pub(super) created_at: DateTime<Utc>,
}

impl<'a> NodeHistory<'a> {
    /// Those that are over, newest first.
    pub(super) fn ended(&self) -> Vec<&'a ValidationFacts> {
        let all = self.all.iter().copied();
        let mut ended: Vec<&ValidationFacts> = all.filter(|validation| validation.ended().is_some()).collect();
        let key = |validation: &ValidationFacts| (validation.ended().map(|(at, _)| at), attempt(&validation.name));
        ended.sort_by_key(|validation| Reverse(key(validation)));
        ended
    }

    /// Newest validation that is over, if it is of the node's present machine.
    fn last(&self) -> Option<&'a ValidationFacts> {
        let newest = self.ended().first().copied();
        newest.filter(|newest| newest.began_after(self.created_at))
    }

    /// Number of validations in a row that ended in vain.
    fn errors(&self) -> u32 {
        let last = self.last().filter(|last| last.is_in_vain());
        last.map_or(0, |last| last.errors_before.saturating_add(1))
    }

    /// Time before which the node gets no validation: a run that cannot measure must not become a loop.
    pub(super) fn rests_until(&self) -> Option<DateTime<Utc>> {
        let (at, _) = self.last()?.ended()?;
        let errors = self.errors().checked_sub(1)?;
        // Eight doublings are more than a day.
        Some(at + (PAUSE * (1 << errors.min(8))).min(LONGEST_PAUSE))
    }

    fn next_attempt(&self) -> u64 {
        let attempts = self.all.iter().map(|validation| attempt(&validation.name));
        attempts.max().unwrap_or_default().saturating_add(1)
    }

    /// Next validation of the node. A confirmation is an ordinary validation: its deployment is new, as every one is. A decisive
    /// one has more trials.
    pub(super) fn next(
        &self,
        policy: &PerfValidationPolicy,
        hostname: &str,
        (reason, is_decisive): (DueReason, bool),
    ) -> PerfValidation {
        let template = &policy.spec.validation_template;
        let mut labels = template.metadata.labels.clone();
        labels.insert(POLICY_LABEL.to_owned(), policy.name_any());
        labels.insert(NODE_LABEL.to_owned(), hostname.to_owned());
        let mut annotations = template.metadata.annotations.clone();
        annotations.insert(ERRORS_BEFORE.to_owned(), self.errors().to_string());
        annotations.insert(DUE_REASON.to_owned(), reason.as_str().to_owned());
        let mut spec = template.spec.clone();
        spec.placement.node_selector = BTreeMap::from([(HOSTNAME.to_owned(), hostname.to_owned())]);
        SIZING.clone_into(&mut spec.timeouts.sizing);
        if duration(&spec.timeouts.prerequisites) > duration(PREREQUISITES) {
            PREREQUISITES.clone_into(&mut spec.timeouts.prerequisites);
        }
        if reason == DueReason::Confirmation && is_decisive {
            let (trials, least) = (&mut spec.trials, i32::from(CONFIRMATION_TRIALS));
            // Under All, `max` is the number of passes that are needed.
            if trials.rule != TrialRule::All {
                trials.max = trials.max.max(least);
            }
            trials.min = Some(trials.min.unwrap_or(1).max(least).min(trials.max));
        }
        PerfValidation {
            metadata: ObjectMeta {
                name: Some(name(policy, hostname, self.next_attempt())),
                namespace: Some(template.metadata.namespace.clone()),
                labels: Some(labels),
                annotations: Some(annotations),
                owner_references: Some(vec![OwnerReference {
                    api_version: PerfValidationPolicy::api_version(&()).into_owned(),
                    kind: PerfValidationPolicy::kind(&()).into_owned(),
                    name: policy.name_any(),
                    uid: policy.uid().unwrap_or_default(),
                    controller: Some(true),
                    block_owner_deletion: Some(false),
                }]),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }
}

/// Name of a validation. The same attempt has the same name, so a repeated creation makes no second object. It differs from the names
/// of a deleted policy of the same name, because that one's validations may still exist.
fn name(policy: &PerfValidationPolicy, hostname: &str, attempt: u64) -> String {
    let short = |text: &str| {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        };
        let text: String = text.chars().take(PART).map(plain).collect();
        text.trim_matches('-').to_owned()
    };
    let digest = fnv(format!("{}/{hostname}", policy.uid().unwrap_or_default()).as_bytes());
    let (policy, node) = (short(&policy.name_any()), short(hostname));
    format!("{policy}-{node}-{digest:08x}-{attempt}")
}

fn attempt(name: &str) -> u64 {
    let number = name.rsplit('-').next().and_then(|number| number.parse().ok());
    number.unwrap_or_default()
}

/// FNV-1a, folded to 32 bits: stable over all versions, which the standard hasher is not.
fn fnv(bytes: &[u8]) -> u32 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or_default()
}
