//! Preemption: a run gives its GPUs back as soon as the scheduler takes one of them for a pod of higher priority.

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt;
use perfval_api::{PerfValidationStatus, Phase, Reason};

use crate::names;
use crate::names::dynamo::WORKER;
use crate::observed::PodEvent;
use crate::pass::{Pass, Step};
use crate::readiness::{Pods, pod_condition};
use crate::run::Run;

/// Reason of the scheduler's Event on a pod that it removes for another one.
pub const PREEMPTED: &str = "Preempted";
/// Reason of the condition `DisruptionTarget` of such a pod.
const BY_SCHEDULER: &str = "PreemptionByScheduler";

/// Stops a run when the scheduler removes a worker of it. Its other workers measure nothing any more, and others want the node.
/// The next run waits for GPUs.
pub(crate) fn give_way(pass: &mut Pass<'_>, current: Phase) -> Option<Step> {
    if !current.serves() {
        return None;
    }
    let pods = pass.seen.pods.present()?;
    let pods = Pods::new(pods, &pass.run.id());
    // The scheduler deletes a pod together with its condition.
    let mut workers = pods.leaving.into_iter().chain(pods.workers);
    let visible = workers.find(|pod| is_preempted(pod)).map(ResourceExt::name_any);
    // A pod that ends at once is gone before the next look.
    let since = redeployed_at(&pass.status);
    let is_new = |event: &&PodEvent| event.last_seen >= since || event.last_seen.is_none();
    let mut events = pass.seen.preemptions.present().into_iter().flatten().filter(is_new);
    let pod = visible.or_else(|| events.next().map(|event| event.pod.clone()))?;
    let message = format!(
        "pod {pod} was removed for a pod of higher priority: this run stops and gives its GPUs back; a new one waits for GPUs, for timeouts.sizing at most"
    );
    pass.status.state.gives_way = true;
    Some(Step::go(Phase::CleaningUp, Reason::Interrupted, message))
}

/// Begin of the deployment, if the run gave up an earlier one: Events outlive its pods, and the names are the same.
fn redeployed_at(status: &PerfValidationStatus) -> Option<DateTime<Utc>> {
    let mut entries = status.state.timeline.iter();
    let last = entries.rfind(|entry| entry.phase == Phase::Deploying);
    last.filter(|_| status.state.resizes > 0).map(|entry| entry.started_at)
}

/// Returns true if a worker of the run is gone, or one of the `late` pods has no node: one may have been preempted.
pub fn lacks_pods(run: &Run<'_>, pods: &[Pod], late: &[&Pod]) -> bool {
    let mut known = run.status().state.worker_pods.iter();
    let is_gone = |uid: &str| pods.iter().all(|pod| pod.metadata.uid.as_deref() != Some(uid));
    let waits = |pod: &&Pod| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none());
    known.any(|worker| is_gone(&worker.uid)) || late.iter().any(waits)
}

/// Returns true if an Event is on a worker of the run that is gone. A load generator holds no GPU.
pub fn is_of_missing_worker(run: &Run<'_>, pods: &[Pod], name: &str, uid: &str) -> bool {
    let is_gone = pods.iter().all(|pod| pod.metadata.uid.as_deref() != Some(uid));
    // Grove puts the number of a replica before the component.
    let rest = name.strip_prefix(&names::deployment(&run.id()));
    is_gone && rest.is_some_and(|rest| rest.contains(&format!("-{WORKER}-")))
}

fn is_preempted(pod: &Pod) -> bool {
    pod_condition(pod, "DisruptionTarget")
        .is_some_and(|condition| condition.status == "True" && condition.reason.as_deref() == Some(BY_SCHEDULER))
}
