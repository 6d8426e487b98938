//! Validations that a policy deletes.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::Verdict;
use perfval_api::fleet::PerfValidationPolicySpec;

use super::budget::midnight;
use super::child::NodeHistory;
use super::facts::{RunState, SelectedNode, ValidationFacts};

/// Time for which a validation may wait for GPUs.
const PATIENCE: TimeDelta = TimeDelta::minutes(10);

/// Time for which a finished validation outlives its node in the selection: a label may be missing for a moment, and the pause
/// after errors follows from it. A new leader starts this time again.
const GRACE: TimeDelta = TimeDelta::hours(1);

/// Validation to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Version on which the decision was made: the validation may have begun since.
    pub resource_version: Option<String>,
    /// Node that goes to the back, because the validation got no GPUs of it.
    pub set_back: Option<String>,
}

impl Deletion {
    fn new(validation: &ValidationFacts, set_back: Option<&SelectedNode>) -> Self {
        Self {
            namespace: validation.namespace.clone(),
            name: validation.name.clone(),
            uid: validation.uid.clone(),
            resource_version: validation.resource_version.clone(),
            set_back: set_back.map(|node| node.name.clone()),
        }
    }
}

/// Returns the times at which nodes of validations were first missed in the selection, by hostname. `known` are those of the look
/// before.
pub(super) fn list_missed(
    nodes: &HashMap<&str, &SelectedNode>,
    children: &[&ValidationFacts],
    known: &BTreeMap<String, DateTime<Utc>>,
    now: DateTime<Utc>,
) -> BTreeMap<String, DateTime<Utc>> {
    let hostnames = children.iter().filter_map(|child| child.hostname());
    let missed = hostnames.filter(|hostname| !nodes.contains_key(*hostname));
    missed
        .map(|hostname| (hostname.to_owned(), known.get(hostname).copied().unwrap_or(now)))
        .collect()
}

/// Returns the validations without GPUs whose node left, that got no GPUs in time, or that are more than the history keeps. `nodes` are the
/// policy's nodes by hostname, and `missed_since` has the time at which each other one was first missed.
pub(super) fn list_deletions(
    spec: &PerfValidationPolicySpec,
    nodes: &HashMap<&str, &SelectedNode>,
    histories: &HashMap<&str, NodeHistory<'_>>,
    children: &[&ValidationFacts],
    (missed_since, now): (&BTreeMap<String, DateTime<Utc>>, DateTime<Utc>),
) -> Vec<Deletion> {
    let counts_minutes = spec.budgets.iter().any(|budget| budget.gpu_minutes_per_day.is_some());
    let is_counted = |at: DateTime<Utc>| counts_minutes && at >= midnight(now);
    // Its GPU minutes would go with it.
    let has_counted = |child: &ValidationFacts| {
        let earlier = child.outline.earlier.map(|earlier| earlier.until);
        earlier.into_iter().chain(child.outline.gpus_until).any(is_counted)
    };
    let surplus = surplus(spec, histories, is_counted);
    let staying = children.iter().filter(|child| !child.is_deleting);
    let deletions = staying.filter_map(|child| {
        let Some(node) = child.hostname().and_then(|hostname| nodes.get(hostname)) else {
            let missed = child.hostname().and_then(|hostname| missed_since.get(hostname));
            let leaves = match child.outline.state {
                // Its own time-outs end it, and it then shows why.
                RunState::Active => false,
                // Its removal is overdue.
                RunState::Suspended if child.outline.node.is_some() => false,
                RunState::Ended { at, .. } => {
                    // The run may have gone on without its node.
                    let alone_since = missed.map_or(at, |missed| at.max(*missed));
                    now - alone_since > GRACE && !is_counted(at)
                }
                RunState::Waiting | RunState::Suspended => !has_counted(child),
            };
            return leaves.then(|| Deletion::new(child, None));
        };
        // A person's rerun ends by its own time-out, and the reports of its earlier runs stay.
        let is_kept = child.outline.is_of_a_user || has_counted(child);
        let gave_up = child.outline.state == RunState::Waiting && now - child.waits_since() > PATIENCE && !is_kept;
        let is_surplus = surplus.contains(child.uid.as_str());
        (gave_up || is_surplus).then(|| Deletion::new(child, Some(*node).filter(|_| gave_up)))
    });
    let mut deletions: Vec<Deletion> = deletions.collect();
    deletions.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    deletions
}

/// Returns the uids of finished validations beyond the history. The newest of a node always stays: the pause and the number
/// of the next attempt follow from it. `is_counted` is true for those whose GPU minutes a budget counts.
fn surplus<'a>(
    spec: &PerfValidationPolicySpec,
    histories: &HashMap<&str, NodeHistory<'a>>,
    is_counted: impl Fn(DateTime<Utc>) -> bool,
) -> HashSet<&'a str> {
    let limit = |count: i32| usize::try_from(count).unwrap_or_default();
    let (most_failed, most_passed) = (
        limit(spec.validation_history.failed),
        limit(spec.validation_history.passed),
    );
    let mut surplus = HashSet::new();
    for history in histories.values() {
        let (mut failed, mut passed) = (0, 0);
        for (place, child) in history.ended().into_iter().enumerate() {
            let Some((at, verdict)) = child.ended() else { continue };
            let (kept, most) = match verdict {
                Some(Verdict::Passed) => (&mut passed, most_passed),
                _ => (&mut failed, most_failed),
            };
            *kept += 1;
            if *kept > most && place > 0 && !is_counted(at) {
                surplus.insert(child.uid.as_str());
            }
        }
    }
    surplus
}
