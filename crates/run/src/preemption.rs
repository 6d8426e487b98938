//! Preemption: a run gives its GPUs back as soon as the scheduler takes one of them for a pod of higher priority.

use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt;
use perfval_api::meta::RUN_LABEL;
use perfval_api::{Phase, Reason};

use crate::names;
use crate::pass::{Pass, Step};
use crate::run::Run;

/// Reason of the scheduler's Event on a pod that it removes for another one.
pub const PREEMPTED: &str = "Preempted";
/// Reason of the condition `DisruptionTarget` of such a pod.
const BY_SCHEDULER: &str = "PreemptionByScheduler";

/// Stops a run when the scheduler removes a pod of it. Its other pods measure nothing any more, and others want the node.
/// The next run waits in the queue, so no verdict is lost.
pub(crate) fn give_way(pass: &mut Pass<'_>, current: Phase) -> Option<Step> {
    if !matches!(current, Phase::Deploying | Phase::WaitingForReady | Phase::Benchmarking) {
        return None;
    }
    let id = pass.run.id();
    let mut pods = pass.seen.pods.present()?.iter();
    let visible = pods.find(|pod| pod.labels().get(RUN_LABEL) == Some(&id) && is_preempted(pod));
    let mut events = pass.seen.endings.present().into_iter().flatten();
    // A pod that ends at once is gone before the next look.
    let pod = visible.map(ResourceExt::name_any).or_else(|| {
        let event = events.find(|event| event.reason == PREEMPTED)?;
        Some(event.pod.clone())
    })?;
    let message = format!(
        "pod {pod} was removed for a pod of higher priority: this run stops and gives its GPUs back; a new one follows when GPUs are free"
    );
    pass.status.state.gives_way = true;
    Some(Step::go(Phase::CleaningUp, Reason::Interrupted, message))
}

/// Returns true if a worker of the run is gone, or one of the `late` pods has no node: one may have been preempted.
pub fn lacks_pods(run: &Run<'_>, pods: &[Pod], late: &[&Pod]) -> bool {
    let mut known = run.status().state.worker_pods.iter();
    let is_gone = |uid: &str| pods.iter().all(|pod| pod.metadata.uid.as_deref() != Some(uid));
    let waits = |pod: &&Pod| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none());
    known.any(|worker| is_gone(&worker.uid)) || late.iter().any(waits)
}

/// Returns true if an object belongs to the run by its name: the deployment's and the Jobs' begin alike.
pub fn is_of_run(run: &Run<'_>, name: &str) -> bool {
    name.starts_with(&format!("{}-", names::deployment(&run.id())))
}

fn is_preempted(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        condition.type_ == "DisruptionTarget"
            && condition.status == "True"
            && condition.reason.as_deref() == Some(BY_SCHEDULER)
    })
}
