//! Texts in the logs of Dynamo and its engines that name an obstacle.

use crate::diagnosis::obstacle::Obstacle;

/// Texts of a worker or frontend that ends, the cause before its consequences (Dynamo 1.2–1.6, vLLM 0.20–0.31).
pub const CRASHES: [(&str, Obstacle); 5] = [
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
