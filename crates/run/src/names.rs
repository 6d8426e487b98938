//! Names of everything a run creates, so that a restarted operator finds its own objects again, and fixed names that others
//! give or expect.

pub mod dynamo;

use sha2::{Digest, Sha256};

/// Pods that send a trial's requests.
pub const LOAD_GENERATOR: &str = "benchmark";

/// Pods that fill the model cache.
pub const MODEL_CACHE: &str = "model-cache";

/// Label: which part of a run an object or pod is.
pub const COMPONENT_LABEL: &str = "perfvalidation.dev/component";
/// Label with the name of a queue of Kueue.
pub(crate) const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Name of the container that runs AIPerf; its termination message and log hold the result.
pub const AIPERF_CONTAINER: &str = "aiperf";
/// The container that fetches the model.
pub const FILL_CONTAINER: &str = "fill";

/// Id of a run: 8 hex digits from the object's uid and the run's number.
pub fn run_id(uid: &str, number: i64) -> String {
    hex8(&[uid, &number.to_string()])
}

/// Begin of the names of all children.
pub const PREFIX: &str = "pv-";

/// Name of the deployment, its claim template and the prefix of all other children.
pub fn deployment(run_id: &str) -> String {
    format!("{PREFIX}{run_id}")
}

/// Headless Service over the workers' metrics port.
pub fn workers_service(run_id: &str) -> String {
    format!("{}-workers", deployment(run_id))
}

/// AIPerf Job of a trial.
pub fn trial_job(run_id: &str, trial: i64) -> String {
    format!("{}-t{trial}", deployment(run_id))
}

/// Job that fills the model cache.
pub fn cache_job(run_id: &str) -> String {
    format!("{}-cache", deployment(run_id))
}

/// Volume claim of the model cache; outlives runs.
pub fn cache_claim(object: &str) -> String {
    format!("{object}-weights")
}

/// Results ConfigMap; outlives the cleanup.
pub fn results(object: &str, run_id: &str) -> String {
    format!("{object}-{run_id}")
}

/// Nonce that frames the result of a trial: not to be guessed by a model's output, and the same after a restart.
pub fn nonce(uid: &str, run_id: &str, trial: i64) -> String {
    hex8(&[uid, run_id, "nonce", &trial.to_string()])
}

fn hex8(parts: &[&str]) -> String {
    format!("{:.8x}", Sha256::digest(parts.join("/")))
}
