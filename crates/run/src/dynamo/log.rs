//! Texts in the logs of Dynamo and its engines that name an obstacle.

use crate::obstacle::Obstacle;

/// Texts of a worker, a frontend or a download that ends, the cause before its consequences (Dynamo 1.2–1.6, vLLM
/// 0.20–0.31, `huggingface_hub` 1.x, measured on the lab where it reaches no hub: the text of a gated model comes
/// before the advice that both texts share).
pub const CRASHES: [(&str, Obstacle); 19] = [
    // runc's last words in the container's own log.
    ("exec format error", Obstacle::OtherArchitecture),
    ("Cannot access gated repo", Obstacle::ModelGated),
    ("GatedRepoError", Obstacle::ModelGated),
    ("Repository Not Found", Obstacle::ModelNotFound),
    ("RepositoryNotFoundError", Obstacle::ModelNotFound),
    ("is not a valid model identifier", Obstacle::ModelNotFound),
    ("Repo id must", Obstacle::ModelNotFound),
    ("Model snapshots for", Obstacle::ModelNotFound),
    // Only of a pod that runs offline: its cache lacks a file.
    ("outgoing traffic has been disabled", Obstacle::ModelNotFound),
    ("No space left on device", Obstacle::CacheFull),
    ("Got: ConnectError", Obstacle::ModelUnreachable),
    ("couldn't connect to", Obstacle::ModelUnreachable),
    ("Max retries exceeded with url", Obstacle::ModelUnreachable),
    ("Name or service not known", Obstacle::ModelUnreachable),
    ("Failed to infer device type", Obstacle::NoGPUInContainer),
    ("Free memory on device", Obstacle::GPUMemoryTaken),
    (
        "argument --router-mode: invalid choice",
        Obstacle::RouterModeUnsupported,
    ),
    ("EngineDeadError", Obstacle::EngineDead),
    ("AsyncLLM health check failed", Obstacle::EngineDead),
];
/// Texts of a frontend that is ready and does not answer, the most specific first.
pub const SILENCE: [(&str, Obstacle); 3] = [
    ("Unfold must not be polled after it returned", Obstacle::DiscoveryPanic),
    ("Error adding model from discovery", Obstacle::ModelAddFailed),
    ("KubeDiscoveryClient::list returning 0 instances", Obstacle::NoInstances),
];
/// A frontend of Dynamo 1.2–1.6 lists its workers at every probe, every 2 s on the lab: the last line with this text holds.
pub const LISTED: &str = "KubeDiscoveryClient::list returning";
