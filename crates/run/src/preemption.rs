//! Preemption: a run gives its GPUs back as soon as the scheduler takes one of them for a pod of higher priority.

use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt as _;
use perfval_api::meta::RUN_LABEL;
use perfval_api::{Phase, Reason};

use crate::pass::{Pass, Step};

/// Reason of the condition `DisruptionTarget` of a pod that the scheduler removes for another one.
const BY_SCHEDULER: &str = "PreemptionByScheduler";

/// Stops a run when the scheduler removes a pod of it. Its other pods measure nothing any more, and others want the node.
/// The next run waits in the queue, so no verdict is lost.
pub(crate) fn give_way(pass: &mut Pass<'_>, current: Phase) -> Option<Step> {
    if !matches!(current, Phase::Deploying | Phase::WaitingForReady | Phase::Benchmarking) {
        return None;
    }
    let id = pass.run.id();
    let pods = pass.seen.pods.present()?.iter();
    let pod = pods
        .filter(|pod| pod.labels().get(RUN_LABEL) == Some(&id))
        .find(|pod| is_preempted(pod))?;
    let message = format!(
        "pod {} was removed for a pod of higher priority: this run stops and gives its GPUs back; a new one follows when GPUs are free",
        pod.name_any()
    );
    pass.status.state.gives_way = true;
    Some(Step::go(Phase::CleaningUp, Reason::Interrupted, message))
}

fn is_preempted(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        condition.type_ == "DisruptionTarget"
            && condition.status == "True"
            && condition.reason.as_deref() == Some(BY_SCHEDULER)
    })
}
