//! Pace of the passes over one object while its run waits: changes of its pods wake it at once, but not without end.
//!
//! A pod that starts changes about six times, and a run has ten of them. Each pass reads the deployment and the pods. What
//! decides comes after a quiet time: a pod that is ready, a Job that is over. Eight passes at once and then one every 8 s
//! made a run of the lab 12 s longer, because pods that start had taken all of them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use perfval_api::Phase;
use perfval_run::Run;
use tokio::time::Instant;

/// Shortest time between two passes. It doubles with each pass, while changes come.
const SHORTEST: Duration = Duration::from_millis(250);
/// Longest time between two passes.
const LONGEST: Duration = Duration::from_secs(4);
/// After as long without a change the next one has its pass at once.
const QUIET: Duration = Duration::from_secs(2);

/// Last pass over each object, by its uid.
#[derive(Default)]
pub struct Pace(Mutex<HashMap<String, Last>>);

struct Last {
    /// Version of the object at the last pass: a change of the object itself has its pass at once.
    version: Option<String>,
    at: Instant,
    /// Time from it to the next.
    pause: Duration,
    /// Time of the last change, which may have had no pass yet.
    changed: Instant,
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
        let Some(last) = all.get_mut(run.uid()) else {
            all.insert(
                run.uid().to_owned(),
                Last {
                    version,
                    at: now,
                    pause: SHORTEST,
                    changed: now,
                },
            );
            return None;
        };
        let is_quiet = now.duration_since(std::mem::replace(&mut last.changed, now)) >= QUIET;
        if last.version != version {
            last.version = version;
            return None;
        }
        let passed = now.duration_since(last.at);
        if !is_quiet && passed < last.pause {
            return Some(last.pause.saturating_sub(passed));
        }
        last.pause = if is_quiet {
            SHORTEST
        } else {
            LONGEST.min(last.pause * 2)
        };
        last.at = now;
        None
    }

    /// The object is gone.
    pub fn forget(&self, object: &impl ResourceExt) {
        if let Some(uid) = object.uid() {
            self.lock().remove(&uid);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Last>> {
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

    /// Passes over an object that a change wakes every 50 ms, and the longest time from one to the next.
    async fn passes(pace: &Pace, run: &Run<'_>, lasts: Duration) -> (u32, Duration) {
        let (began, mut last) = (Instant::now(), Instant::now());
        let (mut count, mut longest) = (0, Duration::ZERO);
        while began.elapsed() < lasts {
            if pace.take(run).is_none() {
                (count, longest) = (count + 1, longest.max(last.elapsed()));
                last = Instant::now();
            }
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        (count, longest)
    }

    #[tokio::test(start_paused = true)]
    async fn changes_without_end_get_ever_fewer_passes() {
        let (pace, settings) = (Pace::default(), Settings::default());
        let object = object("WaitingForReady", "1");
        let run = Run::new(&object, &settings);
        let (count, _) = passes(&pace, &run, Duration::from_secs(8)).await;
        assert_eq!(count, 6);
        let (count, longest) = passes(&pace, &run, Duration::from_mins(4)).await;
        assert_eq!((count, longest), (60, LONGEST));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_a_quiet_time_is_seen_at_once() {
        let (pace, settings) = (Pace::default(), Settings::default());
        let object = object("Benchmarking", "1");
        let run = Run::new(&object, &settings);
        passes(&pace, &run, Duration::from_secs(20)).await;
        tokio::time::advance(QUIET).await;
        // The load generator ends, and its Job one second later.
        assert_eq!(pace.take(&run), None);
        assert_eq!(pace.take(&run), Some(SHORTEST));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(pace.take(&run), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_object_and_a_phase_that_creates_objects_do_not_wait() {
        let (pace, settings) = (Pace::default(), Settings::default());
        let take = |phase: &str, version: &str| pace.take(&Run::new(&object(phase, version), &settings));
        assert_eq!(take("WaitingForReady", "1"), None);
        assert_eq!(take("WaitingForReady", "1"), Some(SHORTEST));
        assert_eq!(take("WaitingForReady", "2"), None, "the object itself changed");
        assert_eq!((take("Deploying", "2"), take("Deploying", "2")), (None, None));
    }
}
