//! Next `NodePerformance` of a node, from a measurement and the earlier ones.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};
use kube::core::ResourceExt as _;
use perfval_api::Verdict;
use perfval_api::condition::PERF_VALIDATED;
use perfval_api::fleet::{
    GpuPerformance, NodeIdentity, NodePerformance, NodePerformanceSpec, NodePerformanceStatus, ValidationReference,
};

use crate::condition::condition;
use crate::measurement::{MOST_GPUS, Measurement, mean_time, speed, whole};
use crate::running::{Deviations, Running, add_run, confirm_run, learn_run, residuals};
use crate::shared::{SharedPast, common_residual};

/// Shortest time for which the measurement of a policy stays, although somebody else has measured the node since: every user sets
/// gates and load of their own, and a policy compares nodes.
const PRECEDENCE: TimeDelta = TimeDelta::days(14);
/// Ages of a stale verdict for which it stays at least: until the policy's next run, and once more for a busy node.
const AGES: i32 = 2;

/// Change of the stored objects.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeChange {
    /// The object shows this measurement, or a newer one.
    Nothing,
    /// The object is to be written with this status.
    Write(Box<NodePerformance>),
    /// The object belongs to an earlier node of the same name: it is to be deleted, and this one written instead.
    Replace(Box<NodePerformance>),
}

/// Returns true if an object does not show a measurement yet. `max_age` returns the age at which the verdicts of a policy are stale;
/// `None` without such a policy.
pub fn is_news(
    current: Option<&NodePerformanceStatus>,
    measured: &Measurement,
    max_age: impl Fn(&str) -> Option<TimeDelta>,
) -> bool {
    let Some(current) = current else { return true };
    if current.validation == measured.validation {
        return false;
    }
    if measured.judged_run.is_some() {
        return is_judged_again(current, measured);
    }
    let shown = (&current.validation, current.measured_at);
    measured.ended_at > current.measured_at && !has_precedence(shown, measured, max_age)
}

/// Returns true if one of two measurements of a node is to be written rather than the other. `max_age` as for [`is_news`].
pub fn is_preferred(candidate: &Measurement, known: &Measurement, max_age: impl Fn(&str) -> Option<TimeDelta>) -> bool {
    let stays = |earlier: &Measurement, later| has_precedence((&earlier.validation, earlier.ended_at), later, &max_age);
    match candidate.ended_at.cmp(&known.ended_at) {
        Ordering::Greater => !stays(known, candidate),
        Ordering::Less => stays(candidate, known),
        Ordering::Equal => false,
    }
}

/// Returns true if an earlier run, with the time of its measurement, stays although a later one has measured the node.
fn has_precedence(
    (earlier, measured_at): (&ValidationReference, DateTime<Utc>),
    later: &Measurement,
    max_age: impl Fn(&str) -> Option<TimeDelta>,
) -> bool {
    let Some(policy) = &earlier.policy else { return false };
    let age = later.ended_at - measured_at;
    let stays = || age < PRECEDENCE || max_age(policy).is_some_and(|stale| age / AGES < stale);
    later.validation.policy.is_none() && stays()
}

/// Decides what becomes of a node's object. A GPU that is new on this node is looked for in the objects of all nodes, and in
/// `former` ones, which were deleted with their nodes. `max_age` as for [`is_news`].
pub fn decide<'a>(
    measured: &Measurement,
    node: &NodeIdentity,
    all: impl Iterator<Item = &'a NodePerformance> + Clone,
    former: impl Iterator<Item = &'a NodePerformance>,
    max_age: impl Fn(&str) -> Option<TimeDelta>,
) -> NodeChange {
    let own = all.clone().find(|object| object.name_any() == measured.node);
    let is_owned = |object: &NodePerformance| object.owner_references().iter().any(|owner| owner.uid == node.uid);
    let current = own.filter(|object| is_owned(object));
    let shown = current.and_then(|object| object.status.as_ref());
    // A machine may be replaced under the same name.
    if measured.began_at < node.created_at || !is_news(shown, measured, max_age) {
        return NodeChange::Nothing;
    }
    let status = match (measured.judged_run, shown) {
        (Some(_), Some(shown)) => judge_again(measured, shown),
        // The trials are older than this node, or another run has measured since.
        (Some(_), None) => return NodeChange::Nothing,
        (None, shown) => measure(measured, node, shown, (all, former)),
    };
    let metadata = current.map_or_else(|| owned(&measured.node, &node.uid), |object| object.metadata.clone());
    let object = Box::new(NodePerformance {
        metadata,
        spec: NodePerformanceSpec {},
        status: Some(status),
    });
    if own.is_some() && current.is_none() {
        NodeChange::Replace(object)
    } else {
        NodeChange::Write(object)
    }
}

fn is_judged_again(current: &NodePerformanceStatus, measured: &Measurement) -> bool {
    let (shown, judged) = (&current.validation, &measured.validation);
    shown.uid == judged.uid && measured.judged_run.is_some_and(|run| run <= shown.run) && judged.run > shown.run
}

/// The trials are the same, so their time and the statistics stay.
fn judge_again(measured: &Measurement, shown: &NodePerformanceStatus) -> NodePerformanceStatus {
    NodePerformanceStatus {
        verdict: measured.verdict,
        reason: measured.reason.clone(),
        validation: measured.validation.clone(),
        percent_of_gate: measured.percent_of_gate,
        conditions: vec![perf_validated(measured, Some(shown))],
        ..shown.clone()
    }
}

fn measure<'a>(
    measured: &Measurement,
    node: &NodeIdentity,
    shown: Option<&NodePerformanceStatus>,
    (all, former): (
        impl Iterator<Item = &'a NodePerformance> + Clone,
        impl Iterator<Item = &'a NodePerformance>,
    ),
) -> NodePerformanceStatus {
    let environment = measured.environment.as_deref();
    let mut pasts: BTreeMap<&str, Running> = BTreeMap::new();
    let statuses = all.filter_map(|object| object.status.as_ref());
    let own: HashSet<&str> = measured.gpus.iter().map(|(uuid, _)| uuid.as_str()).collect();
    let former = former.filter_map(|object| object.status.as_ref());
    let gpus = statuses.clone().chain(former).flat_map(|status| &status.gpus);
    for gpu in gpus.filter(|gpu| own.contains(gpu.uuid.as_str())) {
        let stored = gpu.operator_state.as_ref();
        let Some(past) = stored.and_then(|stored| Running::read(stored, environment)) else {
            continue;
        };
        let known = pasts.get(gpu.uuid.as_str());
        if known.is_none_or(|known| is_newer(&past, known)) {
            pasts.insert(&gpu.uuid, past);
        }
    }
    let mut known = |(uuid, times): &(String, Vec<i64>)| {
        let past = pasts.remove(uuid.as_str());
        let trials: Vec<f64> = times.iter().map(|time| speed(*time).ln()).collect();
        (past.unwrap_or_else(|| Running::new(environment)), trials)
    };
    let known: Vec<(Running, Vec<f64>)> = measured.gpus.iter().map(&mut known).collect();
    let stored = shown.and_then(|shown| shown.operator_state.as_ref());
    let mut shared = SharedPast::read(stored, environment);
    let states = statuses
        .clone()
        .filter_map(|status| Some((status.measured_at, status.operator_state.as_ref()?)));
    let common = || common_residual(states, environment, shown?.measured_at);
    let next = add(
        measured,
        is_cold(measured, node, shown),
        shown,
        known,
        (&mut shared, common),
    );
    let mut gpus: Vec<GpuPerformance> = measured
        .gpus
        .iter()
        .zip(next)
        .map(|((uuid, times), (statistics, trials))| GpuPerformance {
            uuid: uuid.clone(),
            token_microseconds: mean_time(times),
            percent_of_own_past: statistics.compare(&trials).and_then(whole),
            operator_state: statistics.to_text(),
        })
        .collect();
    // A run without speeds neither shows nor refutes a loss. The rows before it stay whole, with the facts that belong to them.
    let kept = shown.filter(|shown| measured.gpus.is_empty() && !shown.gpus.is_empty());
    // GPUs that this run did not use keep their past, unless it went on elsewhere: a person may delete it there.
    let absent = shown.into_iter().flat_map(|shown| &shown.gpus);
    let absent = absent.filter(|gpu| measured.gpus.iter().all(|(uuid, _)| *uuid != gpu.uuid));
    let absent = absent.filter(|gpu| !has_moved(gpu, statuses.clone()));
    gpus.extend(absent.map(|gpu| match kept {
        Some(_) => gpu.clone(),
        None => GpuPerformance {
            uuid: gpu.uuid.clone(),
            operator_state: gpu.operator_state.clone(),
            ..GpuPerformance::default()
        },
    }));
    gpus.truncate(MOST_GPUS);
    NodePerformanceStatus {
        verdict: measured.verdict,
        reason: measured.reason.clone(),
        measured_at: measured.ended_at,
        validation: measured.validation.clone(),
        environment: kept
            .and_then(|kept| kept.environment.clone())
            .or_else(|| measured.environment.clone())
            .or_else(|| shown?.environment.clone()),
        // The next run with speeds may be the first one since the boot.
        boot_id: kept
            .and_then(|kept| kept.boot_id.clone())
            .or_else(|| node.boot_id.clone())
            .or_else(|| shown?.boot_id.clone()),
        product: kept
            .and_then(|kept| kept.product.clone())
            .or_else(|| measured.product.clone()),
        gpu_count: Some(measured.gpu_count),
        output_tokens_per_second: measured.output_tokens_per_second,
        percent_of_gate: measured.percent_of_gate,
        percent_of_own_past: gpus.iter().filter_map(|gpu| gpu.percent_of_own_past).min(),
        percent_of_peers: measured.percent_of_peers,
        gpus,
        // A run that measured no GPU adds nothing.
        operator_state: if measured.gpus.is_empty() {
            stored.cloned()
        } else {
            shared.to_text()
        },
        conditions: vec![perf_validated(measured, shown)],
    }
}

/// Compares the pasts of a GPU that moved, which is in two objects. The newer one has more runs.
fn is_newer(past: &Running, other: &Running) -> bool {
    let order = |past: &Running| (past.count_runs(), past.confirmations());
    order(past) > order(other)
}

/// Returns true if some node has a newer past of a GPU than this row, in the same environment.
fn has_moved<'a>(row: &GpuPerformance, mut statuses: impl Iterator<Item = &'a NodePerformanceStatus>) -> bool {
    statuses.any(|status| {
        let environment = status.environment.as_deref();
        let read = |row: &GpuPerformance| Running::read(row.operator_state.as_ref()?, environment);
        let other = status.gpus.iter().find(|other| other.uuid == row.uuid);
        let pasts = other.and_then(read).zip(read(row));
        pasts.is_some_and(|(other, own)| is_newer(&other, &own))
    })
}

/// Returns true if no earlier run with speeds is known since the machine's boot or in its environment. Two boots differ only if both
/// are known.
fn is_cold(measured: &Measurement, node: &NodeIdentity, shown: Option<&NodePerformanceStatus>) -> bool {
    let Some(shown) = shown.filter(|shown| !shown.gpus.is_empty()) else {
        return true;
    };
    let boots = shown.boot_id.as_ref().zip(node.boot_id.as_ref());
    boots.is_some_and(|(shown, now)| shown != now) || measured.environment != shown.environment
}

/// Adds a run to the statistics of the node and its GPUs: as the confirmation of the newest run, or as a run of its own. `common`
/// computes the difference from their pasts that all nodes share.
fn add(
    measured: &Measurement,
    is_cold: bool,
    shown: Option<&NodePerformanceStatus>,
    gpus: Vec<(Running, Vec<f64>)>,
    (node, common): (&mut SharedPast, impl FnOnce() -> Option<f64>),
) -> Vec<(Running, Vec<f64>)> {
    let newest = shown.and_then(|shown| shown.validation.policy.as_ref());
    let confirms = measured.is_confirmation && newest.is_some() && newest == measured.validation.policy.as_ref();
    // On other GPUs it is a run of its own.
    let rows = shown.into_iter().flat_map(|shown| &shown.gpus);
    let screened = rows.filter(|row| row.token_microseconds.is_some());
    let screened: BTreeSet<&str> = screened.map(|row| row.uuid.as_str()).collect();
    let is_same = screened == measured.gpus.iter().map(|(uuid, _)| uuid.as_str()).collect();
    if let Some(confirmed) = (confirms && is_same).then(|| confirm_run(&gpus, is_cold)).flatten() {
        node.confirm(&residuals(&gpus));
        node.set_times(measured.began_at, measured.ended_at);
        return confirmed;
    }
    let deviations = Deviations::new(measured.product.as_deref().unwrap_or_default(), gpus.len());
    if !is_same {
        // Some of these GPUs ran beside other ones.
        node.skip();
    }
    if !is_same || gpus.iter().any(|(gpu, _)| gpu.is_cold()) {
        node.forget_begin();
    }
    let mut next = learn_run(gpus, node, common(), deviations);
    if is_cold {
        node.skip();
    } else {
        node.add(&residuals(&next));
    }
    node.set_times(measured.began_at, measured.ended_at);
    add_run(&mut next, is_cold);
    next
}

fn perf_validated(measured: &Measurement, shown: Option<&NodePerformanceStatus>) -> Condition {
    let (status, meaning) = match measured.verdict {
        // A run may fail without a missed gate, and pass with a missed one of mode Warn.
        Verdict::Passed => ("True", "passed"),
        Verdict::Failed => ("False", "failed"),
        _ => ("Unknown", "gave no reliable result"),
    };
    let reason = measured.reason.as_deref().unwrap_or(measured.verdict.as_str());
    let run = &measured.validation;
    let message = format!(
        "Run {} of PerfValidation {}/{} {meaning}.",
        run.run, run.namespace, run.name
    );
    // Only the operator writes the object, and its spec is empty.
    let metadata = ObjectMeta {
        generation: Some(1),
        ..ObjectMeta::default()
    };
    let earlier = shown.map_or(&[][..], |shown| &shown.conditions);
    condition(
        (&metadata, earlier),
        PERF_VALIDATED,
        (status, reason),
        message,
        measured.ended_at,
    )
}

fn owned(node: &str, uid: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(node.to_owned()),
        owner_references: Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: node.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        }]),
        ..ObjectMeta::default()
    }
}
