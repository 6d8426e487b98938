//! The scheduler's message about a pod for which it finds no place.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt as _;

use super::sign::{Proof, Sign};
use crate::obstacle::Obstacle;
use crate::readiness::pod_condition;

/// A claim is made and allocated within seconds; until then the scheduler refuses its pod.
const ALLOCATING: Duration = Duration::from_secs(5);
/// The scheduler's words for a volume that keeps a pod from every node.
const VOLUME: [&str; 4] = [
    "unbound immediate PersistentVolumeClaims",
    "available persistent volumes to bind",
    "volume node affinity conflict",
    "persistentvolumeclaim \"",
];

/// Scheduling gates that still hold a pod: those of a queue such as Kueue's.
pub(super) fn gates(pod: &Pod) -> Vec<&str> {
    let gates = pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten());
    gates.map(|gate| gate.name.as_str()).collect()
}

/// `gpus`: resource of the device plugin.
pub(super) fn sign(pod: &Pod, gpus: &str) -> Option<Sign> {
    let (name, gates) = (pod.name_any(), gates(pod));
    if !gates.is_empty() {
        let evidence = format!("pod {name}: queued behind its scheduling gate {}", gates.join(", "));
        // No time makes it sure: the run waits for the queue.
        return Some(Sign::new(Obstacle::Queued, name, evidence, Proof::Missing));
    }
    let scheduled = pod_condition(pod, "PodScheduled").filter(|condition| condition.status == "False")?;
    let words = scheduled.message.as_deref().unwrap_or("cannot be scheduled");
    // The rest only explains why no other pod can be removed for this one.
    let words = words.split(" preemption:").next().unwrap_or(words);
    let evidence = format!("pod {name}: {words}");
    Some(Sign {
        normal_for: ALLOCATING,
        ..Sign::new(classify(words, gpus), name, evidence, Proof::Lasts)
    })
}

fn classify(words: &str, gpus: &str) -> Obstacle {
    let missing = words.split("Insufficient ").skip(1);
    let mut missing = missing.filter_map(|rest| rest.split([',', ' ', ';']).next());
    let lacks_gpus = missing.any(|resource| resource.trim_end_matches('.') == gpus);
    if lacks_gpus || words.contains("cannot allocate all claims") {
        Obstacle::InsufficientGPUs
    } else if VOLUME.iter().any(|volume| words.contains(volume)) {
        Obstacle::VolumeUnavailable
    } else {
        Obstacle::Unschedulable
    }
}
