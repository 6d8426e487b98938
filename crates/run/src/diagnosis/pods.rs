//! Why a pod does not start, read from its status, its events and its log.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::core::ResourceExt as _;
use perfval_api::Why;

use super::containers::{EXPLAINED_CRASHES, containers};
use super::log;
use super::obstacle::{Obstacle, Response};
use crate::observed::{PodEvent, PodLog};
use crate::time;

/// A pod that does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What keeps it.
    pub obstacle: Obstacle,
    /// Which pod, what was seen.
    pub evidence: String,
}

impl Trouble {
    /// The reason, and what was seen with what to do.
    pub fn why(&self) -> Why {
        let (obstacle, evidence) = (self.obstacle, self.evidence.trim_end_matches('.'));
        Why::new(obstacle.reason(), format!("{evidence}; {}", obstacle.remedy()))
    }
}

/// A reason may pass by itself for this long: a registry hiccup, a Secret that comes a second later.
const HICCUP: Duration = Duration::from_mins(1);
/// A claim that failed once, because the plugin or the API server restarted, is tried again after up to 80 s.
const PREPARING: Duration = Duration::from_mins(3);
/// A claim is created and allocated within seconds; a pod unschedulable for longer has lost its GPU to another.
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

/// The first trouble that will not pass by itself, the most specific first.
pub fn trouble<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    events: &[PodEvent],
    logs: &[PodLog],
    now: DateTime<Utc>,
) -> Option<Trouble> {
    let found = pods.into_iter().filter_map(|pod| of_pod(pod, events, logs, now));
    // A crash that its log explains goes before one without an explanation.
    found.min_by_key(|trouble| {
        let sized_again = trouble.obstacle.response() == Response::SizeAgain;
        (sized_again, trouble.obstacle == Obstacle::CrashLoop)
    })
}

fn of_pod(pod: &Pod, events: &[PodEvent], logs: &[PodLog], now: DateTime<Utc>) -> Option<Trouble> {
    let age = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(Duration::ZERO, |created| {
            time::until(now, time::from_kubernetes(created))
        });
    claim_trouble(pod, events, age)
        .or_else(|| containers(pod).find_map(|container| container_trouble(pod, container, logs, age)))
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
    let (obstacle, patience) = classify_prepare(&event.message);
    (age >= patience).then(|| Trouble {
        obstacle,
        evidence: format!("pod {}: {}", pod.name_any(), event.message.trim()),
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

/// The kubelet's words for a claim that could not be prepared (texts measured with NVIDIA's plugin 0.4.1), and how long
/// it may yet succeed.
fn classify_prepare(message: &str) -> (Obstacle, Duration) {
    if message.contains("empty device edits") {
        (Obstacle::StaleDRAPlugin, Duration::ZERO)
    } else if message.contains("is not registered") {
        (Obstacle::DRAPluginMissing, PREPARING)
    } else if message.contains("already allocated to different claim") {
        (Obstacle::DoubleAllocated, UNSCHEDULABLE)
    } else if message.contains("allocatable not found for device") {
        (Obstacle::LostRace, UNSCHEDULABLE)
    } else {
        (Obstacle::ClaimPrepareFailed, PREPARING)
    }
}

fn container_trouble(pod: &Pod, container: &ContainerStatus, logs: &[PodLog], age: Duration) -> Option<Trouble> {
    let found = |obstacle, text: String| {
        let evidence = format!("pod {}, container {}: {text}", pod.name_any(), container.name);
        Some(Trouble { obstacle, evidence })
    };
    let ended = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    if container.restart_count >= EXPLAINED_CRASHES
        && ended.is_some_and(|end| end.reason.as_deref() == Some("OOMKilled"))
    {
        let times = container.restart_count;
        return found(Obstacle::OOMKilled, format!("killed {times} times for its memory use"));
    }
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref())?;
    let text = waiting.message.clone().unwrap_or_default();
    match waiting.reason.as_deref()? {
        "InvalidImageName" | "ErrImageNeverPull" => {
            found(Obstacle::ImagePull, format!("image {}: {text}", container.image))
        }
        "ImagePullBackOff" if age >= HICCUP && FINAL_PULL_ERRORS.iter().any(|word| text.contains(word)) => {
            found(Obstacle::ImagePull, format!("image {}: {text}", container.image))
        }
        "CrashLoopBackOff" => {
            let exit = ended.map_or_else(String::new, |end| format!(" (exit code {})", end.exit_code));
            match log::crash(logs, &pod.name_any(), &container.name) {
                Some((obstacle, line)) if obstacle != Obstacle::CrashLoop => {
                    found(obstacle, format!("crashes{exit}: {line}"))
                }
                _ if container.restart_count < CRASHES => None,
                Some((obstacle, line)) => found(obstacle, format!("keeps crashing{exit}: {line}")),
                None => found(Obstacle::CrashLoop, format!("keeps crashing{exit}")),
            }
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" if age >= HICCUP => {
            found(Obstacle::ContainerConfigError, text)
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
    let words = scheduled.message.as_deref().unwrap_or("cannot be scheduled");
    (time::until(now, since) >= UNSCHEDULABLE).then(|| Trouble {
        obstacle: classify_unschedulable(words),
        evidence: format!("pod {}: {words}", pod.name_any()),
    })
}

/// The scheduler's words for a pod without a GPU, by claim or by device plugin.
fn classify_unschedulable(words: &str) -> Obstacle {
    // Of all resources a worker asks for, only the device plugin's has a domain in its name.
    let missing = words.split("Insufficient ").skip(1);
    let mut missing = missing.filter_map(|rest| rest.split([',', ' ', ';']).next());
    let no_gpu = words.contains("cannot allocate all claims") || missing.any(|resource| resource.contains('/'));
    if no_gpu {
        Obstacle::InsufficientGPUs
    } else {
        Obstacle::Unschedulable
    }
}
