//! Next steps of the policies: the validations to create and to delete, and the status of each policy.
//!
//! [`decide`] looks at all policies together, because two of them may select the same node. It has no memory: attempts and
//! pauses follow from the validations that exist, so a new leader continues where the last one stopped.

mod budget;
mod child;
mod comparison;
mod condition;
mod deletion;
mod environments;
mod facts;
mod plan;
mod schedule;
mod selection;
mod share;
mod snapshot;

use std::collections::{HashMap, HashSet};

use self::plan::Planner;
use self::share::share;

pub use self::comparison::{EnvironmentShift, NodeComparison, Suspicion, compare_nodes};
pub use self::condition::{PolicyReason, unreadable};
pub use self::deletion::Deletion;
pub use self::facts::{CreateRefusal, HOSTNAME, Outline, RunState, SelectedNode, ValidationFacts};
pub use self::plan::PolicyDecision;
pub use self::schedule::max_age;
pub use self::selection::Selection;
pub use self::snapshot::{PolicyFacts, Snapshot};

/// Decides the next steps of every policy, in the order of the policies.
pub fn decide(snapshot: &Snapshot<'_>) -> Vec<PolicyDecision> {
    let shares = share(snapshot.policies);
    let namespaces: HashMap<&str, &str> = snapshot
        .policies
        .iter()
        .filter_map(|facts| {
            let template = &facts.policy.spec.validation_template.metadata;
            Some((facts.policy.metadata.uid.as_deref()?, template.namespace.as_str()))
        })
        .collect();
    let active: HashSet<&str> = snapshot
        .validations
        .iter()
        .filter(|validation| {
            // A foreign validation has no GPUs while it waits, and the queue keeps the two apart.
            let is_foreign =
                policy_of(validation, &namespaces).is_none() && validation.outline.state == RunState::Waiting;
            validation.outline.node.is_some() || (validation.is_active() && !is_foreign)
        })
        .flat_map(|validation| [validation.hostname(), validation.outline.node.as_deref()])
        .flatten()
        .collect();
    let mut children: HashMap<&str, Vec<&ValidationFacts>> = HashMap::new();
    for validation in snapshot.validations {
        if let Some(policy) = policy_of(validation, &namespaces) {
            children.entry(policy).or_default().push(validation);
        }
    }
    let decided = snapshot.policies.iter().zip(shares).map(|(facts, share)| {
        let uid = facts.policy.metadata.uid.as_deref().unwrap_or_default();
        let own = children.get(uid).map_or(&[][..], Vec::as_slice);
        Planner::new(snapshot, facts, &share, own).decide(&active)
    });
    decided.collect()
}

/// Uid of the policy that created a validation. `namespaces` has the namespace of each policy's template by the policy's uid. A user of
/// another namespace may write the same owner there.
fn policy_of<'a>(validation: &'a ValidationFacts, namespaces: &HashMap<&str, &str>) -> Option<&'a str> {
    let policy = validation.policy.as_deref()?;
    let is_elsewhere = namespaces
        .get(policy)
        .is_some_and(|namespace| *namespace != validation.namespace);
    (!is_elsewhere).then_some(policy)
}
