//! Containers of a pod that do not start, or start again and again.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};
use kube::core::ResourceExt as _;

use super::log;
use super::sign::{Proof, Sign};
use crate::names::{AIPERF_CONTAINER, FILL_CONTAINER};
use crate::observed::PodLog;
use crate::obstacle::Obstacle;
use crate::readiness::statuses;

/// Crashes after which a crash is believed if its log or the kernel gives the reason.
const EXPLAINED_CRASHES: i32 = 2;
/// Crashes after which any is believed: the kubelet restarts at once after the first, 10 s after the second.
const CRASHES: i32 = 3;
/// Words of a registry for which trying again is no use; anything else may be the network.
const FINAL_PULL_ERRORS: [&str; 7] = [
    "not found",
    "manifest unknown",
    "unauthorized",
    "denied",
    "forbidden",
    "invalid reference",
    "no basic auth credentials",
];

/// Words for an image without the node's architecture: of containerd, CRI-O and Docker, and of a kernel that cannot start
/// its program. No retry helps.
const OTHER_ARCHITECTURE: [&str; 5] = [
    "no match for platform in manifest",
    "no image found in image index for architecture",
    "no image found in manifest list for architecture",
    "no matching manifest for",
    "exec format error",
];

/// The words of the kubelet for an image that is not for its node's architecture.
pub(super) fn other_architecture(container: &ContainerStatus) -> Option<&str> {
    let states = [container.state.as_ref(), container.last_state.as_ref()];
    let messages = states.into_iter().flatten().flat_map(|state| {
        let waiting = state.waiting.as_ref().and_then(|waiting| waiting.message.as_deref());
        let ended = state.terminated.as_ref().and_then(|ended| ended.message.as_deref());
        [waiting, ended]
    });
    messages.flatten().find(|message| {
        // crun begins with a capital letter.
        let said = message.to_ascii_lowercase();
        OTHER_ARCHITECTURE.iter().any(|words| said.contains(words))
    })
}

/// Obstacle of a container that does not run, in a pod that is not ready.
pub(super) fn sign(pod: &Pod, container: &ContainerStatus, logs: &[PodLog]) -> Option<Sign> {
    let evidence = |text: String| format!("pod {}, container {}: {text}", pod.name_any(), container.name);
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
    let text = waiting.and_then(|waiting| waiting.message.clone()).unwrap_or_default();
    let image = |text: &str| evidence(format!("image {}: {}", container.image, pull_error(text)));
    let sign = |obstacle, evidence, proof| Some(Sign::new(obstacle, pod.name_any(), evidence, proof));
    if let Some(words) = other_architecture(container).filter(|_| !is_running(container)) {
        return sign(Obstacle::OtherArchitecture, image(words), Proof::Seen);
    }
    match waiting.and_then(|waiting| waiting.reason.as_deref()) {
        Some("InvalidImageName" | "ErrImageNeverPull") => sign(Obstacle::ImagePull, image(&text), Proof::Seen),
        Some("ErrImagePull" | "ImagePullBackOff") => {
            // Registries write `403 Forbidden`, containerd `pull access denied`.
            let said = text.to_ascii_lowercase();
            let is_final = FINAL_PULL_ERRORS.iter().any(|word| said.contains(word));
            let proof = if is_final { Proof::Lasts } else { Proof::Missing };
            sign(Obstacle::ImagePull, image(&text), proof)
        }
        Some("CreateContainerConfigError" | "CreateContainerError" | "RunContainerError") => {
            sign(Obstacle::ContainerConfigError, evidence(text), Proof::Lasts)
        }
        _ => crash(pod, container, logs, &evidence),
    }
}

/// Sign of a Job's pod whose own container ended while a sidecar goes on, and with it the Job. A native sidecar is an init container.
pub(super) fn outlived(pod: &Pod) -> Option<Sign> {
    let is_over =
        |container: &ContainerStatus| container.state.as_ref().is_some_and(|state| state.terminated.is_some());
    let is_own = |container: &&ContainerStatus| [AIPERF_CONTAINER, FILL_CONTAINER].contains(&container.name.as_str());
    let own = statuses(pod).find(|container| is_own(container) && is_over(container))?;
    let other = statuses(pod).find(|container| is_running(container))?;
    let name = pod.name_any();
    let evidence = format!(
        "pod {name}: container {} ended, container {} still runs",
        own.name, other.name
    );
    Some(Sign::new(Obstacle::SidecarRuns, name, evidence, Proof::Lasts))
}

fn is_running(container: &ContainerStatus) -> bool {
    let state = container.state.as_ref();
    state.is_some_and(|state| state.running.is_some())
}

/// Removes the kubelet's back-off prefix, because the rest of the text is the same with and without it: one text is
/// one write of the status.
fn pull_error(text: &str) -> &str {
    text.split_once("ErrImagePull: ").map_or(text, |(_, error)| error)
}

fn crash(pod: &Pod, container: &ContainerStatus, logs: &[PodLog], evidence: &dyn Fn(String) -> String) -> Option<Sign> {
    // A pod of a Job is never started again; how it ended is read with the Job.
    if pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) == Some("Never") {
        return None;
    }
    let state = container.state.as_ref();
    let ended = |state: Option<&ContainerState>| state.and_then(|state| state.terminated.clone());
    let end: Option<ContainerStateTerminated> = ended(state).or_else(|| ended(container.last_state.as_ref()));
    let code = end.as_ref().map(|end| end.exit_code);
    // An init container that succeeded in the end, and a container that was never started.
    let is_done = ended(state).is_some_and(|end| end.exit_code == 0);
    if is_done || (container.restart_count == 0 && code.is_none_or(|code| code == 0)) {
        return None;
    }
    let is_running = is_running(container);
    let crashes = container.restart_count + i32::from(!is_running);
    let sign = |obstacle, evidence, is_sure| {
        let proof = if is_sure { Proof::Seen } else { Proof::Missing };
        Some(Sign::new(obstacle, pod.name_any(), evidence, proof))
    };
    if end.is_some_and(|end| end.reason.as_deref() == Some("OOMKilled")) {
        let text = evidence("killed for its memory use".to_owned());
        return sign(Obstacle::OOMKilled, text, crashes >= EXPLAINED_CRASHES);
    }
    let (obstacle, line) = match log::failure(logs, &pod.name_any(), &container.name) {
        Some((obstacle, line)) => (obstacle, format!(": {line}")),
        None => (None, String::new()),
    };
    // A worker cannot write to the cache: another disk is full.
    let obstacle = obstacle
        .filter(|obstacle| *obstacle != Obstacle::CacheFull)
        .unwrap_or(Obstacle::CrashLoop);
    let needed = if obstacle == Obstacle::CrashLoop {
        CRASHES
    } else {
        EXPLAINED_CRASHES
    };
    let exit = code.map_or(String::new(), |code| format!(" (exit code {code})"));
    let text = evidence(format!("crashes{exit}{line}"));
    // A container that runs again may hold; its next end decides.
    sign(obstacle, text, crashes >= needed && !is_running)
}
