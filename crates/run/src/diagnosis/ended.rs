//! End of a Job's pod from outside.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

/// Reason, in the words of its status, why a pod was ended before its time: an eviction, a drain, a pod of higher
/// priority.
pub fn removed(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let disrupted = status.conditions.iter().flatten();
    let disrupted = disrupted.filter(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True");
    let by_condition = disrupted.map(|condition| (condition.reason.as_deref(), condition.message.as_deref()));
    // The kubelet's own evictions have always had a reason of the pod.
    let by_kubelet = Some((status.reason.as_deref(), status.message.as_deref()));
    let by_kubelet = by_kubelet.filter(|(reason, _)| *reason == Some("Evicted"));
    let (reason, message) = by_condition.chain(by_kubelet).next()?;
    let words = [reason, message].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(format!("pod {} was removed ({words})", pod.name_any()))
}

/// A container that the kernel ended for its memory use.
pub fn out_of_memory(pod: &Pod) -> Option<String> {
    let containers = pod.status.as_ref()?.container_statuses.iter().flatten();
    let mut ends = containers.filter_map(|container| {
        let end = container.state.as_ref()?.terminated.as_ref()?;
        Some((&container.name, end.reason.as_deref()?))
    });
    let (container, _) = ends.find(|(_, reason)| *reason == "OOMKilled")?;
    Some(format!(
        "container {container} of pod {} was killed for its memory use (OOMKilled)",
        pod.name_any()
    ))
}
