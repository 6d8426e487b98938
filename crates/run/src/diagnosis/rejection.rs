//! Pods that a kubelet rejects before a container starts. Their controller replaces each at once.

use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt as _;

use super::sign::{Proof, Sign};
use crate::obstacle::Obstacle;
use crate::readiness::{Pods, container_statuses, is_failed};
use crate::time;

/// Beginning of the kubelet's message.
const PREFIX: &str = "Pod was rejected: ";
/// Beginning of the reason if a resource is missing; the resource follows.
const OUT_OF: &str = "OutOf";

/// Newest worker pod that a kubelet rejected. `None` once kubelets have admitted all `wanted` workers, because rejected
/// pods stay.
pub fn newest<'a>(pods: &Pods<'a>, wanted: i64) -> Option<&'a Pod> {
    let is_admitted = |pod: &&&Pod| container_statuses(pod).next().is_some();
    let admitted = pods.workers.iter().filter(is_admitted);
    if i64::try_from(admitted.count()).unwrap_or(i64::MAX) >= wanted {
        return None;
    }
    let rejected = pods.failed.iter().copied().filter(|pod| reason(pod).is_some());
    rejected.max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(time::from_kubernetes))
}

/// Sign of a rejected pod. It is believed if later pods of the same controller are rejected too. `gpus`: resource of the
/// device plugin.
pub(super) fn sign(pod: &Pod, gpus: &str) -> Option<Sign> {
    let reason = reason(pod)?;
    let words = pod.status.as_ref()?.message.as_deref().unwrap_or_default();
    let words = words.strip_prefix(PREFIX).unwrap_or(words).trim();
    let mut resources = words.split([' ', ',']).map(|word| word.trim_end_matches('.'));
    let lacks_gpus = reason.strip_prefix(OUT_OF) == Some(gpus) || resources.any(|resource| resource == gpus);
    let obstacle = if lacks_gpus {
        Obstacle::LostRace
    } else {
        Obstacle::Unschedulable
    };
    // Each pod has another name; one text is one write of the status.
    let owner = pod.owner_references().first();
    let controller = owner.map_or_else(|| pod.name_any(), |owner| format!("{} {}", owner.kind, owner.name));
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let node = node.unwrap_or("the node");
    let evidence = format!("the kubelet of {node} rejects pods of {controller} ({reason}): {words}");
    let created = pod.metadata.creation_timestamp.as_ref().map(time::from_kubernetes);
    Some(Sign::new(obstacle, controller, evidence, Proof::Repeats(created)))
}

/// Reason why a kubelet rejected a pod.
fn reason(pod: &Pod) -> Option<&str> {
    let status = pod.status.as_ref().filter(|_| is_failed(pod))?;
    let is_rejection = |reason: &&str| {
        matches!(*reason, "UnexpectedAdmissionError" | "TopologyAffinityError") || reason.starts_with(OUT_OF)
    };
    status.reason.as_deref().filter(is_rejection)
}
