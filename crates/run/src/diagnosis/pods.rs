//! Signs of the reason why pods do not start: in their status, their events and their logs.

use k8s_openapi::api::core::v1::Pod;

pub use super::claims::prepared as is_prepared;
pub use super::sign::{Judged, Proof, Sign, Trouble, most_telling};
use super::{claims, containers, rejection, scheduling};
use crate::observed::{PodEvent, PodLog};
use crate::readiness::container_statuses;

/// Returns true if an image of a pod is not for its node's architecture.
pub fn is_of_other_architecture(pod: &Pod) -> bool {
    container_statuses(pod).any(|container| containers::other_architecture(container).is_some())
}

/// The signs of trouble in some pods: of each pod those of the first thing that it lacks, as a kubelet prepares it. `gpus`: resource of
/// the device plugin.
pub fn signs<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    gpus: &str,
    events: &[PodEvent],
    logs: &[PodLog],
) -> Vec<Sign> {
    let signs = |pod| pod_signs(pod, gpus, events, logs);
    pods.into_iter().flat_map(signs).collect()
}

fn pod_signs(pod: &Pod, gpus: &str, events: &[PodEvent], logs: &[PodLog]) -> Vec<Sign> {
    if let Some(sign) = rejection::sign(pod, gpus).or_else(|| claims::sign(pod, events)) {
        return vec![sign];
    }
    let of_containers: Vec<Sign> = container_statuses(pod)
        .filter_map(|container| containers::sign(pod, container, logs))
        .chain(containers::outlived(pod))
        .collect();
    if of_containers.is_empty() {
        return scheduling::sign(pod, gpus).into_iter().collect();
    }
    of_containers
}
