//! The policies: one task of the leader creates and deletes their validations and reports the state of their nodes.
//!
//! Policies, measurements and validations come from the watches of this process. It counts the free GPUs
//! of the cluster when a validation could start, and once a minute.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use kube::core::error_boundary::InvalidObject;
use kube::{Resource as _, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::fleet::{
    NodePerformance, NodePerformanceStatus, PerfBaseline, PerfValidationPolicy, PerfValidationPolicyStatus,
};
use perfval_cluster::{CallFailure, Class, Creation};
use perfval_fleet::policy::{
    HOSTNAME, Outline, PolicyDecision, PolicyFacts, Snapshot, ValidationFacts, decide, unreadable,
};
use perfval_run::not_allowed;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, error, info, warn};

use super::fingerprint::fingerprint;
use super::memory::Memory;
use super::stored_objects::{self, FleetStore};
use super::survey::survey;
use crate::blocked;
use crate::boundary::{Panicked, catch};
use crate::context::Context;
use crate::stored;

/// Least time between two looks, and the further time until the next one without a change.
const REST: Duration = Duration::from_secs(5);
/// Age at which the nodes are read again.
const SURVEY: Duration = Duration::from_mins(1);
/// Age at which the nodes are read again before a validation is created.
const CURRENT: Duration = Duration::from_secs(2);
/// Least time between two writes of a status.
const WRITE: Duration = Duration::from_secs(10);
/// Time in which the watch shows an own write. A status that differs later was changed by somebody else.
const SEEN: Duration = Duration::from_mins(1);
/// Longest wait for the baselines: a comparison of few nodes needs them. The cluster may not serve the kind.
const BASELINES: Duration = Duration::from_mins(1);
/// Most validations of a policy that one look creates or deletes.
const AT_ONCE: usize = 50;
/// Reason in the metrics.
const FAILED: &str = "FollowPolicy";

/// Follows the policies until it is dropped.
pub(super) async fn follow(
    context: &Context,
    policies: &FleetStore<PerfValidationPolicy>,
    measured: &FleetStore<NodePerformance>,
    baselines: &FleetStore<PerfBaseline>,
    bell: &Notify,
) {
    if policies.wait_until_ready().await.is_err() || measured.wait_until_ready().await.is_err() {
        return;
    }
    if !context.objects.wait_until_listed().await {
        return;
    }
    let _ = timeout(BASELINES, baselines.wait_until_ready()).await;
    let mut memory = Memory::default();
    loop {
        let looked = Box::pin(look(context, (policies, measured, baselines), &mut memory));
        if let Err(Panicked(said)) = catch(looked).await {
            error!(said, "a look at the policies panicked; trying again");
            context.metrics.failed(FAILED);
        }
        context.metrics.calls(context.cluster.counts());
        sleep(REST).await;
        // The time-out is the usual case.
        let _ = timeout(REST, bell.notified()).await;
    }
}

/// Looks at the policies, and then at the baselines.
async fn look(
    context: &Context,
    (policies, measured, baselines): (
        &FleetStore<PerfValidationPolicy>,
        &FleetStore<NodePerformance>,
        &FleetStore<PerfBaseline>,
    ),
    memory: &mut Memory,
) {
    memory.baselines.read(baselines);
    let (mut policies, mut unreadable) = stored_objects::read(policies);
    unreadable.retain(|invalid| invalid.metadata.deletion_timestamp.is_none());
    policies.retain(|policy| policy.metadata.deletion_timestamp.is_none());
    policies.sort_by_key(|policy| policy.name_any());
    look_at_policies(context, (&policies, &unreadable), measured, memory).await;
    let marking = memory.marked.mark(&unreadable, &context.cluster, &context.metrics);
    Box::pin(marking).await;
    if baselines.wait_until_ready().now_or_never().is_none() {
        return;
    }
    let nodes = memory.surveyed.as_ref().map(|surveyed| surveyed.nodes.clone());
    let selected = nodes.iter().flat_map(|nodes| nodes.iter().flatten());
    let selected: HashSet<&str> = selected.map(|node| node.name.as_str()).collect();
    let (measured, _) = stored_objects::read(measured);
    memory.baselines.follow(context, &measured, &selected).await;
}

async fn look_at_policies(
    context: &Context,
    (policies, unreadable): (&[Arc<PerfValidationPolicy>], &[Arc<InvalidObject>]),
    measured: &FleetStore<NodePerformance>,
    memory: &mut Memory,
) {
    memory.retain(policies, context.cluster.now());
    let (measured, _) = stored_objects::read(measured);
    export(context, (policies, unreadable), &measured);
    if policies.is_empty() {
        memory.surveyed = None;
        return;
    }
    if !is_current(memory, policies, SURVEY) && !read_nodes(context, memory, policies).await {
        return;
    }
    let mut decisions = decide_all(context, memory, policies, &measured);
    let creates = decisions.iter().any(|decision| !decision.create.is_empty());
    if creates && !is_current(memory, policies, CURRENT) {
        if !read_nodes(context, memory, policies).await {
            return;
        }
        decisions = decide_all(context, memory, policies, &measured);
    }
    for (policy, decision) in policies.iter().zip(decisions) {
        act(context, memory, policy, decision).await;
    }
}

/// Exports what the objects show. Their statuses are at most one look old.
fn export(
    context: &Context,
    (policies, unreadable): (&[Arc<PerfValidationPolicy>], &[Arc<InvalidObject>]),
    measured: &[Arc<NodePerformance>],
) {
    let nodes = measured.iter();
    let nodes = nodes.filter_map(|object| Some((object.name_any(), object.status.as_ref()?)));
    context.metrics.nodes(nodes);
    let policies = policies.iter();
    let policies = policies.filter_map(|policy| Some((policy.name_any(), Some(policy.status.as_ref()?))));
    let unreadable = unreadable.iter();
    let unreadable = unreadable.filter_map(|invalid| Some((invalid.metadata.name.clone()?, None)));
    context.metrics.policies(policies.chain(unreadable));
}

fn is_current(memory: &Memory, policies: &[Arc<PerfValidationPolicy>], age: Duration) -> bool {
    let surveyed = memory.surveyed.as_ref();
    surveyed.is_some_and(|surveyed| surveyed.is_current(policies, age))
}

/// Reads the nodes of all policies. Returns false, and reports it, if a part of the cluster is unknown.
async fn read_nodes(context: &Context, memory: &mut Memory, policies: &[Arc<PerfValidationPolicy>]) -> bool {
    match survey(context, policies).await {
        Ok(surveyed) => {
            memory.surveyed = Some(surveyed);
            true
        }
        Err(why) => {
            debug!(why, "the nodes of the policies are unknown");
            memory.surveyed = None;
            for policy in policies {
                let status = unreadable(policy, &why, context.cluster.now());
                write(context, memory, policy, status).await;
            }
            false
        }
    }
}

fn decide_all(
    context: &Context,
    memory: &mut Memory,
    policies: &[Arc<PerfValidationPolicy>],
    measured: &[Arc<NodePerformance>],
) -> Vec<PolicyDecision> {
    let Some(nodes) = memory.surveyed.as_ref().map(|surveyed| surveyed.nodes.clone()) else {
        return Vec::new();
    };
    let statuses: BTreeMap<String, &NodePerformanceStatus> = measured
        .iter()
        .filter_map(|object| Some((object.name_any(), object.status.as_ref()?)))
        .collect();
    let objects = fingerprint(measured.iter().map(|object| (object.uid(), object.resource_version())));
    memory.compare_with_new_norms();
    let approved = memory.baselines.approved();
    for (policy, nodes) in policies.iter().zip(nodes.iter()) {
        let known = memory.policy(policy);
        known.compare(&policy.spec.comparison, nodes, (&statuses, &approved), objects);
    }
    let validations = list_validations(context, memory);
    let known = &*memory;
    let baselines = known.baselines.in_use();
    let facts = policies.iter().zip(nodes.iter()).filter_map(|(policy, nodes)| {
        let known = known.known(policy)?;
        Some(PolicyFacts {
            policy,
            nodes,
            comparison: &known.comparison,
            refusal: known.refusal.as_ref(),
            set_back: &known.set_back,
            missed_since: &known.missed_since,
        })
    });
    let facts: Vec<PolicyFacts<'_>> = facts.collect();
    let decisions = decide(&Snapshot {
        policies: &facts,
        measured: &statuses,
        baselines: &baselines,
        validations: &validations,
        now: context.cluster.now(),
    });
    for (policy, decision) in policies.iter().zip(&decisions) {
        let known = memory.policy(policy);
        known.missed_since.clone_from(&decision.missed_since);
    }
    decisions
}

/// Validations of policies, and all active ones. Validations that the watch does not show yet count too.
fn list_validations(context: &Context, memory: &mut Memory) -> Vec<ValidationFacts> {
    let mut uids = HashSet::new();
    let mut validations = Vec::new();
    for stored in context.objects.outlined() {
        let facts = ValidationFacts::new(stored.meta(), stored.outline().clone());
        uids.insert(facts.uid.clone());
        if facts.policy.is_some() || facts.is_active() || facts.outline.node.is_some() {
            validations.push(facts);
        }
    }
    validations.extend(memory.unseen(&uids));
    validations
}

async fn act(context: &Context, memory: &mut Memory, policy: &PerfValidationPolicy, decision: PolicyDecision) {
    let (cluster, now) = (&context.cluster, context.cluster.now());
    for deletion in decision.delete.into_iter().take(AT_ONCE) {
        let (namespace, name) = (&deletion.namespace, &deletion.name);
        let version = deletion.resource_version.clone();
        match cluster
            .delete_validation((namespace, name), &deletion.uid, version)
            .await
        {
            // The next look decides again.
            Ok(false) => {}
            Ok(true) => {
                info!(namespace, name, "validation of a policy deleted");
                if let Some(node) = deletion.set_back {
                    memory.policy(policy).set_back.insert(node, now);
                }
            }
            Err(failure) => {
                warn!(
                    namespace,
                    name,
                    failure = redacted(policy, &failure),
                    "a validation could not be deleted; trying again"
                );
                context.metrics.failed(FAILED);
            }
        }
    }
    for validation in decision.create.iter().take(AT_ONCE) {
        // The operator would create an object that it cannot read.
        if let Some(why) = stored::too_large(validation) {
            let message = format!("spec.validationTemplate is too large: {why}");
            memory.policy(policy).refuse(message, false, now);
            break;
        }
        match cluster.create_validation(validation).await {
            Ok(Creation::Done(created)) => {
                memory.policy(policy).allow();
                info!(
                    policy = policy.name_any(),
                    name = created.name_any(),
                    "validation created"
                );
                memory.add(ValidationFacts::new(&created.metadata, Outline::new(&created)));
            }
            Ok(outcome @ (Creation::Taken | Creation::Unreadable)) => {
                let (namespace, name) = (validation.namespace().unwrap_or_default(), validation.name_any());
                let why = if outcome == Creation::Taken {
                    "belongs to somebody else"
                } else {
                    "cannot be parsed by this operator version"
                };
                let message = format!("PerfValidation {namespace}/{name} exists and {why}");
                warn!(policy = policy.name_any(), message);
                set_back(memory, policy, validation, now);
                memory.policy(policy).refuse(message, false, now);
            }
            Ok(Creation::NotAllowed) => {
                let message = not_allowed(&validation.namespace().unwrap_or_default());
                warn!(policy = policy.name_any(), message);
                memory.policy(policy).refuse(message, false, now);
                break;
            }
            Err(failure) => {
                let message = redacted(policy, &failure);
                warn!(
                    policy = policy.name_any(),
                    failure = message,
                    "a validation could not be created; trying again later"
                );
                context.metrics.failed(FAILED);
                if failure.class() == Class::Permanent {
                    if !failure.refuses_all() {
                        // An admission policy may refuse this node alone.
                        set_back(memory, policy, validation, now);
                    }
                    let known = memory.policy(policy);
                    known.refuse(message, failure.is_namespace_missing(), now);
                } else {
                    memory.policy(policy).fail(message, now);
                }
                // The others may be refused too.
                break;
            }
        }
    }
    write(context, memory, policy, decision.status).await;
}

/// Answer of the API server without values of the template, which it may quote.
fn redacted(policy: &PerfValidationPolicy, failure: &CallFailure) -> String {
    blocked::redacted(&failure.to_string(), Some(&policy.spec.validation_template.spec))
}

/// Puts the node of a validation last, so that the others get their turn.
fn set_back(memory: &mut Memory, policy: &PerfValidationPolicy, validation: &PerfValidation, now: DateTime<Utc>) {
    let hostname = validation.spec.placement.node_selector.get(HOSTNAME);
    let surveyed = memory.surveyed.as_ref().map(|surveyed| surveyed.nodes.clone());
    let mut nodes = surveyed.iter().flat_map(|nodes| nodes.iter().flatten());
    let node = nodes.find(|node| node.hostname.is_some() && node.hostname.as_ref() == hostname);
    if let Some(node) = node {
        memory.policy(policy).set_back.insert(node.name.clone(), now);
    }
}

/// Writes a status that differs, at most once in a while.
async fn write(
    context: &Context,
    memory: &mut Memory,
    policy: &PerfValidationPolicy,
    status: PerfValidationPolicyStatus,
) {
    let known = memory.policy(policy);
    let is_shown = policy.status.as_ref() == Some(&status);
    let is_written = |(at, written): &(Instant, PerfValidationPolicyStatus)| {
        at.elapsed() < WRITE || (*written == status && at.elapsed() < SEEN)
    };
    if is_shown || known.written.as_ref().is_some_and(is_written) {
        return;
    }
    match context.cluster.write_policy_status(policy, &status).await {
        Ok(()) => known.written = Some((Instant::now(), status)),
        Err(failure) => {
            warn!(
                policy = policy.name_any(),
                failure = redacted(policy, &failure),
                "the status of a policy could not be written; trying again"
            );
            context.metrics.failed(FAILED);
        }
    }
}
