//! Why a pod does not start, read from its status and its events.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::core::ResourceExt as _;
use perfval_api::Reason;

use crate::observed::PodEvent;
use crate::time;

/// What to do about a pod that does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Time does not heal it: end the run.
    GiveUp,
    /// The GPUs that sizing saw are gone: size again.
    SizeAgain,
}

/// A pod that does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Stable word.
    pub reason: Reason,
    /// Which pod, what was seen.
    pub message: String,
    /// What follows.
    pub response: Response,
}

/// A reason may pass by itself for this long: a registry hiccup, a Secret that comes a second later.
const HICCUP: Duration = Duration::from_mins(1);
/// A claim that failed once, because the plugin or the API server restarted, is tried again after up to 80 s.
const PREPARING: Duration = Duration::from_mins(3);
/// A claim is created and allocated within seconds; a pod unschedulable for longer has lost its GPU to somebody.
const UNSCHEDULABLE: Duration = Duration::from_secs(30);
/// Restarts after which a crash is a loop: the kubelet has backed off twice by then.
const CRASHES: i32 = 3;
/// What a container waits for before the claims of its pod are prepared.
const BEFORE_CLAIMS: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// Words of a registry for which trying again is no use; anything else may be the network.
const FINAL_PULL_ERRORS: [&str; 6] = [
    "not found",
    "manifest unknown",
    "unauthorized",
    "denied",
    "forbidden",
    "invalid reference",
];

/// The first trouble that will not pass by itself, the most telling first.
pub fn trouble<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    events: &[PodEvent],
    now: DateTime<Utc>,
) -> Option<Trouble> {
    let mut found: Vec<Trouble> = pods.into_iter().filter_map(|pod| of_pod(pod, events, now)).collect();
    found.sort_by_key(|trouble| trouble.response == Response::SizeAgain);
    found.into_iter().next()
}

fn of_pod(pod: &Pod, events: &[PodEvent], now: DateTime<Utc>) -> Option<Trouble> {
    let age = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(Duration::ZERO, |created| {
            time::until(now, time::from_kubernetes(created))
        });
    claim_trouble(pod, events, age)
        .or_else(|| containers(pod).find_map(|container| container_trouble(pod, container, age)))
        .or_else(|| unschedulable(pod, now))
}

fn claim_trouble(pod: &Pod, events: &[PodEvent], age: Duration) -> Option<Trouble> {
    let uid = pod.uid().unwrap_or_default();
    if prepared(pod) {
        return None;
    }
    let event = events
        .iter()
        .filter(|event| event.pod_uid == uid && event.reason == "FailedPrepareDynamicResources")
        .max_by_key(|event| event.last_seen)?;
    let (reason, response, patience, remedy) = classify_prepare(&event.message);
    (age >= patience).then(|| Trouble {
        reason,
        message: format!("pod {}: {}; {remedy}", pod.name_any(), event.message.trim()),
        response,
    })
}

/// Whether the claims of a pod are prepared, whatever failed before: its sandbox exists, or a container went on to pull
/// its image or to run.
fn prepared(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let sandbox = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "PodReadyToStartContainers" && condition.status == "True");
    sandbox
        || containers(pod)
            .filter_map(|container| container.state.as_ref())
            .any(|state| {
                let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
                state.running.is_some() || waiting.is_some_and(|reason| !BEFORE_CLAIMS.contains(&reason))
            })
}

/// The kubelet's words for a claim that could not be prepared (texts measured with NVIDIA's plugin 0.4.1).
fn classify_prepare(message: &str) -> (Reason, Response, Duration, &'static str) {
    if message.contains("empty device edits") {
        // The plugin cached the device nodes before the driver came up: only restarting it heals (aicr, 2026-06-04).
        let remedy = "restart the GPU driver pod of the node, then its DRA kubelet plugin pod, in this order";
        (Reason::StaleDRAPlugin, Response::GiveUp, Duration::ZERO, remedy)
    } else if message.contains("is not registered") {
        let remedy = "start the DRA kubelet plugin of the node, or restart its kubelet";
        (Reason::DRAPluginMissing, Response::GiveUp, PREPARING, remedy)
    } else if message.contains("already allocated to different claim") {
        let remedy = "two claims were given one GPU (a force-deleted pod, or a second scheduler)";
        (Reason::DoubleAllocated, Response::SizeAgain, UNSCHEDULABLE, remedy)
    } else if message.contains("allocatable not found for device") {
        (
            Reason::LostRace,
            Response::SizeAgain,
            UNSCHEDULABLE,
            "the GPU vanished after it was allocated",
        )
    } else {
        (
            Reason::ClaimPrepareFailed,
            Response::GiveUp,
            PREPARING,
            "see the DRA kubelet plugin's log on the node",
        )
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_ref());
    let main = status.and_then(|status| status.container_statuses.as_ref());
    init.into_iter().flatten().chain(main.into_iter().flatten())
}

fn container_trouble(pod: &Pod, container: &ContainerStatus, age: Duration) -> Option<Trouble> {
    let give_up = |reason, text: String| {
        let message = format!("pod {}, container {}: {text}", pod.name_any(), container.name);
        Some(Trouble {
            reason,
            message,
            response: Response::GiveUp,
        })
    };
    let ended = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    if container.restart_count >= 2 && ended.is_some_and(|ended| ended.reason.as_deref() == Some("OOMKilled")) {
        return give_up(
            Reason::OOMKilled,
            "killed for its memory use: raise its memory limit".into(),
        );
    }
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref())?;
    let text = waiting.message.clone().unwrap_or_default();
    match waiting.reason.as_deref()? {
        "InvalidImageName" | "ErrImageNeverPull" => {
            give_up(Reason::ImagePullBackOff, format!("image {}: {text}", container.image))
        }
        "ImagePullBackOff" if age >= HICCUP && FINAL_PULL_ERRORS.iter().any(|word| text.contains(word)) => {
            give_up(Reason::ImagePullBackOff, format!("image {}: {text}", container.image))
        }
        "CrashLoopBackOff" if container.restart_count >= CRASHES => {
            let exit = ended.map_or_else(String::new, |ended| format!(" (last exit code {})", ended.exit_code));
            give_up(
                Reason::CrashLoopBackOff,
                format!("keeps crashing{exit}: see its log (kubectl logs --previous)"),
            )
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" if age >= HICCUP => {
            give_up(Reason::ContainerConfigError, text)
        }
        _ => None,
    }
}

fn unschedulable(pod: &Pod, now: DateTime<Utc>) -> Option<Trouble> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions
        .iter()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
    let since = scheduled.last_transition_time.as_ref().map(time::from_kubernetes)?;
    (time::until(now, since) >= UNSCHEDULABLE).then(|| Trouble {
        reason: Reason::Unschedulable,
        message: format!(
            "pod {}: {}",
            pod.name_any(),
            scheduled.message.as_deref().unwrap_or("cannot be scheduled")
        ),
        response: Response::SizeAgain,
    })
}
