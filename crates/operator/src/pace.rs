//! Pace of the passes over one object while its run waits: changes of its pods wake it at once, but not without end.
//!
//! A pod that starts changes about six times, and a run has ten of them. Each pass reads the deployment and the pods.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use perfval_api::Phase;
use perfval_run::Run;
use tokio::time::Instant;

/// Passes without a pause.
const AT_ONCE: u32 = 8;
/// Time after which there is one more.
const REFILL: Duration = Duration::from_secs(8);

/// Passes that each object may still have, by its uid.
#[derive(Default)]
pub struct Pace(Mutex<HashMap<String, Left>>);

struct Left {
    /// Version of the object at the last pass: a change of the object itself has its pass at once.
    version: Option<String>,
    passes: u32,
    since: Instant,
}

impl Pace {
    /// Takes a pass; `Some`: the time until there is one.
    pub fn take(&self, run: &Run<'_>) -> Option<Duration> {
        let is_waiting = matches!(
            run.phase(),
            Some(Phase::WaitingForReady | Phase::Benchmarking | Phase::CleaningUp)
        );
        let mut all = self.lock();
        if !is_waiting {
            all.remove(run.uid());
            return None;
        }
        let (now, version) = (Instant::now(), run.object.resource_version());
        let left = all.entry(run.uid().to_owned()).or_insert_with(|| Left {
            version: version.clone(),
            passes: AT_ONCE,
            since: now,
        });
        while left.passes < AT_ONCE && now.duration_since(left.since) >= REFILL {
            left.passes += 1;
            left.since += REFILL;
        }
        if left.passes == AT_ONCE {
            left.since = now;
        }
        if left.version != version {
            left.version = version;
            return None;
        }
        if left.passes == 0 {
            return Some(REFILL.saturating_sub(now.duration_since(left.since)));
        }
        left.passes -= 1;
        None
    }

    /// The object is gone.
    pub fn forget(&self, object: &impl ResourceExt) {
        if let Some(uid) = object.uid() {
            self.lock().remove(&uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Left>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use perfval_api::PerfValidation;
    use perfval_run::Settings;
    use serde_json::json;

    use super::*;

    fn object(phase: &str, version: &str) -> PerfValidation {
        serde_json::from_value(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {"name": "run", "namespace": "perf", "uid": "a", "resourceVersion": version},
            "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}},
            "status": {"phase": phase},
        }))
        .expect("well-formed")
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_changes_gets_a_few_passes_and_then_one_every_eight_seconds() {
        let (pace, settings) = (Pace::default(), Settings::default());
        let take = |phase: &str, version: &str| pace.take(&Run::new(&object(phase, version), &settings));
        let burst = (0..100).filter(|_| take("WaitingForReady", "1").is_none()).count();
        assert_eq!(burst, 8);
        assert_eq!(take("WaitingForReady", "1"), Some(REFILL));
        assert_eq!(take("WaitingForReady", "2"), None, "the object itself changed");
        assert_eq!(take("Deploying", "2"), None, "it creates objects");
        for _ in 0..8 {
            take("Benchmarking", "3");
        }
        tokio::time::advance(REFILL).await;
        assert_eq!(take("Benchmarking", "3"), None);
        assert_eq!(take("Benchmarking", "3"), Some(REFILL));
    }
}
