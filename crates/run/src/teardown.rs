//! Removing everything a run created, and being sure that it is gone.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::core::{ObjectMeta, ResourceExt};
use perfval_api::meta::RUN_LABEL;
use perfval_api::{Leftovers, PerfValidation, PerfValidationStatus, Phase, Reason, Why, condition};
use perfval_sizing::Seen;
use serde_json::json;

use crate::decision::Effect;
use crate::names;
use crate::observed::{Child, ChildKind, Need, Observed};
use crate::pass::{Pass, Step};
use crate::run::Run;
use crate::status;

/// Shortest and longest pause between two looks at objects that should have gone.
const SOON: Duration = Duration::from_secs(30);
const SELDOM: Duration = Duration::from_mins(5);

/// Reads that [`remove`] needs first.
pub(crate) const NEEDS: [Need; 1] = [Need::Children];
/// Reads that it needs once the objects that make pods are gone.
const REST: [Need; 2] = [Need::Workload, Need::Claims];
/// One text for the whole removal: a list of the rest would be a status write for every pod that goes.
const WAIT: &str = "waiting until the deployment, its pods and their claims are gone";

/// A deleted object reduced to its metadata: its runs' children are found by label and uid, independent of its spec
/// and status. Its phase is `CleaningUp`, and no code may write its status.
pub fn leaving(metadata: &ObjectMeta) -> serde_json::Result<PerfValidation> {
    let nothing = json!({"model": {"name": ""}, "workload": {"dynamo": {"image": ""}}});
    Ok(PerfValidation {
        metadata: metadata.clone(),
        spec: serde_json::from_value(nothing)?,
        status: Some(PerfValidationStatus {
            phase: Some(Phase::CleaningUp),
            ..PerfValidationStatus::default()
        }),
    })
}

/// Progress of the removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Objects, pods and claims are confirmed gone.
    Gone,
    /// Something is left; a message.
    Removing(String),
    /// A read failed; a message.
    Unknown(String),
}

/// Deletes the children, and returns those that are left. Pods are never deleted by the operator: their owners do
/// that, and a pod with a claim must end in its own time, or its GPU is handed out while it still computes
/// (kubernetes#141471).
pub(crate) fn remove(pass: &mut Pass<'_>) -> Removal {
    let seen = pass.seen;
    let unread = |why: &str| Removal::Unknown(format!("cannot read the remaining objects: {why}"));
    if is_unread(&seen.children) {
        if is_unread(&seen.pods) && has_looked(pass) {
            pass.read([Need::Workload]);
        } else if !pods_end(pass.run, seen) {
            pass.read(NEEDS);
        }
        return Removal::Removing(WAIT.into());
    }
    let mut ours: Vec<&Child> = children_left(seen).collect();
    ours.sort_by_key(|child| (child.id.kind, child.id.name.clone()));
    for child in ours.iter().filter(|child| !child.deleting) {
        pass.act(Effect::Delete(child.id.clone()));
    }
    // The others are deleted even if one kind cannot be listed.
    if let Some(why) = seen.children.unknown() {
        return unread(why);
    }
    let run = pass.run;
    if ours.is_empty() {
        if lacks_rest(seen) {
            pass.read(REST);
        } else if let Some(why) = seen.pods.unknown().or(seen.claims.unknown()) {
            return unread(why);
        } else if pods_left(run, seen).next().is_none() && claims_left(run, seen).next().is_none() {
            return Removal::Gone;
        }
    }
    Removal::Removing(WAIT.into())
}

fn is_unread<T>(part: &Seen<T>) -> bool {
    matches!(part, Seen::NotAsked)
}

/// Returns true if this process has looked since the phase began: that look requested the deletion of all children that it found.
fn has_looked(pass: &Pass<'_>) -> bool {
    let began = status::phase_started_at(&pass.status);
    began
        .zip(pass.seen.looked_before)
        .is_some_and(|(began, looked)| looked > began)
}

/// Returns true if pods are left and all of them end: their owners are deleted, and no look at these is needed.
fn pods_end(run: &Run<'_>, seen: &Observed) -> bool {
    let mut pods = pods_left(run, seen).peekable();
    pods.peek().is_some() && pods.all(|pod| pod.metadata.deletion_timestamp.is_some())
}

/// Returns true if it is not known which pods and claims are left. Pods that were read before the children prove nothing.
fn lacks_rest(seen: &Observed) -> bool {
    is_unread(&seen.pods) || is_unread(&seen.claims)
}

/// Requests the children; `None` if they were read.
pub(crate) fn read_children(pass: &mut Pass<'_>) -> Option<Step> {
    is_unread(&pass.seen.children).then(|| pass.read(NEEDS))
}

/// Requests everything for a report on the rest, in the order that proves it gone; `None` if it was read.
pub(crate) fn read_rest(pass: &mut Pass<'_>) -> Option<Step> {
    read_children(pass).or_else(|| lacks_rest(pass.seen).then(|| pass.read(REST)))
}

/// Known objects of any run of the object.
fn children_left(seen: &Observed) -> impl Iterator<Item = &Child> {
    let all = seen.children.present().into_iter().flatten();
    all.chain(&seen.listed_children).filter(|child| child.ours)
}

/// Pods of any run of the object.
fn pods_left<'a>(run: &'a Run<'_>, seen: &'a Observed) -> impl Iterator<Item = &'a Pod> {
    let pods = seen.pods.present().into_iter().flatten();
    pods.filter(|pod| is_of_a_run(run, *pod))
}

/// Claims of those pods.
fn claims_left<'a>(run: &'a Run<'_>, seen: &'a Observed) -> impl Iterator<Item = &'a ResourceClaim> {
    let claims = seen.claims.present().into_iter().flatten();
    claims.filter(|claim| is_of_a_run(run, *claim))
}

/// Returns true if an object carries the id of a run of this object: its name alone may be on any pod, and a removal
/// that waits for that would hold the node for ever. Without a status the number of runs is not known, and any id
/// counts.
fn is_of_a_run(run: &Run<'_>, object: &impl ResourceExt) -> bool {
    let Some(id) = object.labels().get(RUN_LABEL) else {
        return false;
    };
    let last = run.status().run.as_ref().map(|run| run.number);
    last.is_none_or(|last| (1..=last).rev().any(|number| names::run_id(run.uid(), number) == *id))
}

/// Returns true if there is a deployment to keep for a post-mortem. Without one no GPU is held, so no node is either;
/// an unread part may be there.
pub(crate) fn can_be_kept(seen: &Observed) -> bool {
    let stays = |child: &Child| child.ours && !child.deleting && child.id.kind == ChildKind::Deployment;
    match seen.children.present() {
        Some(children) => children.iter().any(stays),
        None => true,
    }
}

/// Lists the rest, a few of many.
pub(crate) fn left(run: &Run<'_>, seen: &Observed) -> String {
    const NAMED: usize = 5;
    let names: Vec<String> = children_left(seen)
        .map(|child| format!("{:?} {}", child.id.kind, child.id.name))
        .chain(pods_left(run, seen).map(|pod| format!("Pod {}", pod.name_any())))
        .chain(claims_left(run, seen).map(|claim| format!("ResourceClaim {}", claim.name_any())))
        .collect();
    match names.len() {
        0 => "unknown".into(),
        few if few <= NAMED => names.join(", "),
        many => format!("{} and {} more", names[..NAMED].join(", "), many - NAMED),
    }
}

/// Time of the next look at objects that have not gone for this long: a finalizer that hangs for days is no reason to
/// list pods twice a minute, and watches see objects that go on their own.
pub(crate) fn look_again(overdue: Duration) -> Duration {
    (overdue / 4).clamp(SOON, SELDOM)
}

/// Records that the run leaves something behind, and why.
pub(crate) fn leave(pass: &mut Pass<'_>, leftovers: Leftovers, why: &Why) {
    pass.condition(condition::CLEANED_UP, false, why);
    record(pass, Some(leftovers));
}

/// Records that nothing is left.
pub(crate) fn confirm_gone(pass: &mut Pass<'_>) {
    forget_placement(pass);
    let gone = Why::new(Reason::RunOver, "objects, pods and claims are confirmed gone");
    pass.condition(condition::CLEANED_UP, true, &gone);
    record(pass, None);
}

/// A run that ended before it had GPUs shows no node: it may have kept that of the run before until now.
fn forget_placement(pass: &mut Pass<'_>) {
    let status = &mut pass.status;
    let mut entries = status.state.timeline.iter();
    let had_gpus = !status.workers.is_empty() || entries.any(|entry| entry.phase == Phase::Deploying);
    if status.state.judged_run.is_none() && !had_gpus {
        status::unplace(status);
    }
}

fn record(pass: &mut Pass<'_>, leftovers: Option<Leftovers>) {
    if pass.status.run.is_some() {
        pass.status.state.leftovers = leftovers;
    }
}
