//! Preparations of the kubelet before it starts a container: claims, volumes and the sandbox.

use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt as _;

use super::sign::{Proof, Sign};
use crate::observed::PodEvent;
use crate::obstacle::Obstacle;
use crate::readiness::{container_statuses, pod_condition};

/// Reasons of a container that waits until claims and volumes of its pod are prepared.
const BEFORE_CLAIMS: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Sign in the newest warning of the kubelet about a pod that has neither claims nor volumes yet.
pub(super) fn sign(pod: &Pod, events: &[PodEvent]) -> Option<Sign> {
    let uid = pod.uid().unwrap_or_default();
    if prepared(pod) {
        return None;
    }
    let known = events.iter().filter(|event| event.pod_uid == uid);
    let known = known.filter_map(|event| Some((event, classify(event)?)));
    let (event, obstacle) = known.max_by_key(|(event, _)| event.last_seen)?;
    let name = pod.name_any();
    let evidence = format!("pod {name}: {}", event.message.trim());
    let proof = match obstacle {
        // A container runtime that restarts lacks its handlers for a while.
        Obstacle::ContainerConfigError => Proof::Repeats(event.last_seen),
        _ => Proof::Lasts,
    };
    Some(Sign::new(obstacle, name, evidence, proof))
}

/// Returns true if claims and volumes of a pod are prepared, even if earlier attempts failed: its sandbox exists, or
/// a container began to pull its image or to run. The kubelet's warnings explain no such pod.
pub fn prepared(pod: &Pod) -> bool {
    let sandbox = pod_condition(pod, "PodReadyToStartContainers");
    sandbox.is_some_and(|condition| condition.status == "True")
        || container_statuses(pod)
            .filter_map(|container| container.state.as_ref())
            .any(|state| {
                let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
                state.running.is_some() || waiting.is_some_and(|reason| !BEFORE_CLAIMS.contains(&reason))
            })
}

/// The kubelet's words (those for claims were measured with NVIDIA's plugin 0.4.1). A claim that failed once, because the
/// plugin or the API server restarted, is tried again after up to 80 s.
fn classify(event: &PodEvent) -> Option<Obstacle> {
    let says = |words| event.message.contains(words);
    match event.reason.as_str() {
        "FailedMount" | "FailedAttachVolume" => Some(Obstacle::VolumeUnavailable),
        // Of containerd and CRI-O: the node has no handler of the RuntimeClass.
        "FailedCreatePodSandBox" if says("no runtime for") || says("failed to find runtime handler") => {
            Some(Obstacle::ContainerConfigError)
        }
        "FailedPrepareDynamicResources" => Some(if says("empty device edits") {
            Obstacle::StaleDRAPlugin
        } else if says("is not registered") {
            Obstacle::DRAPluginMissing
        } else if says("already allocated to different claim") {
            Obstacle::DoubleAllocated
        } else if says("allocatable not found for device") {
            Obstacle::LostRace
        } else {
            Obstacle::ClaimPrepareFailed
        }),
        _ => None,
    }
}
