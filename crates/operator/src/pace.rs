//! Pace of the passes over one object while its run waits: changes of its pods wake it at once, but not without end.
//!
//! A pod that starts changes about six times, and a run has ten of them. A pass reads at least the changed kinds. The end of
//! a trial comes after a quiet time and has its pass at once. With eight passes at once and then one every 8 s, pods that start
//! took all of them, and a run of the lab was 12 s longer.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use perfval_api::Phase;
use perfval_run::Run;
use tokio::time::Instant;

use crate::stored::Stored;

/// Shortest time between two passes. Each pass doubles the time until the next one.
const SHORTEST: Duration = Duration::from_millis(250);
/// The same while a run removes its objects: a pass makes six lists, and pods need seconds to end.
const SHORTEST_OF_REMOVAL: Duration = Duration::from_secs(2);
/// Longest time between two passes. In as long without a pass the time between them halves, so that no rhythm of changes has
/// more than one pass in 4 s in the long run. Not counted: changes of the object itself and of Jobs, and a completion of the endpoint.
const LONGEST: Duration = Duration::from_secs(4);

/// A change of a Job has its pass at once, but only [`JOB_PASSES`] times within this time. The pod of a trial ends before its Job, and
/// the pass for the pod would hold up the result: 10 % of the results came after 270 ms (`just bench-crowd`).
const JOB_WINDOW: Duration = Duration::from_secs(2);
/// The Job controller writes the end of a Job in two or three steps, and the last one shows the result. With one pass it came after
/// 0.25 to 0.7 s on the lab.
const JOB_PASSES: u32 = 3;

/// Last pass over each object, by namespace and name.
#[derive(Default)]
pub struct PassPace(Mutex<HashMap<(String, String), Last>>);

struct Last {
    uid: String,
    phase: Option<Phase>,
    /// Version of the object.
    version: Option<String>,
    at: Instant,
    /// Time from it to the next.
    pause: Duration,
    /// Shortest time between two.
    shortest: Duration,
    /// True if a Job has changed since the last pass.
    job_changed: bool,
    /// First pass for a change of a Job in the present window, and passes in it.
    for_jobs: Option<(Instant, u32)>,
}

impl Last {
    fn new(run: &Run<'_>) -> Self {
        let shortest = match run.phase() {
            Some(Phase::CleaningUp) => SHORTEST_OF_REMOVAL,
            _ => SHORTEST,
        };
        Self {
            uid: run.uid().to_owned(),
            phase: run.phase(),
            version: run.object.resource_version(),
            at: Instant::now(),
            pause: shortest,
            shortest,
            job_changed: false,
            for_jobs: None,
        }
    }

    /// Counts a pass for a change of a Job; false if the window has no more.
    fn counts_job(&mut self) -> bool {
        let window = self.for_jobs.filter(|(since, _)| since.elapsed() < JOB_WINDOW);
        let (since, passes) = window.unwrap_or_else(|| (Instant::now(), 0));
        self.for_jobs = Some((since, (passes + 1).min(JOB_PASSES)));
        passes < JOB_PASSES
    }

    fn take(&mut self) -> Option<Duration> {
        let is_benchmarking = self.phase == Some(Phase::Benchmarking);
        if std::mem::take(&mut self.job_changed) && is_benchmarking && self.counts_job() {
            return None;
        }
        let passed = self.at.elapsed();
        if passed < self.pause {
            return Some(self.pause.saturating_sub(passed));
        }
        let halvings = passed.as_secs_f64() / LONGEST.as_secs_f64();
        self.pause = (self.pause * 2)
            .mul_f64((-halvings).exp2())
            .clamp(self.shortest, LONGEST);
        self.at = Instant::now();
        None
    }
}

impl PassPace {
    /// Takes a pass; `Some`: the time until there is one.
    pub fn take(&self, run: &Run<'_>) -> Option<Duration> {
        let is_waiting = matches!(
            run.phase(),
            Some(Phase::WaitingForReady | Phase::Benchmarking | Phase::CleaningUp)
        );
        let key = (run.namespace().to_owned(), run.name().to_owned());
        let mut all = self.0.lock();
        if !is_waiting {
            all.remove(&key);
            return None;
        }
        let version = run.object.resource_version();
        match all.get_mut(&key) {
            Some(last) if last.phase == run.phase() => {
                // A change of the object itself has its pass at once.
                if last.version != version {
                    last.version = version;
                    last.job_changed = false;
                    return None;
                }
                last.take()
            }
            _ => {
                all.insert(key, Last::new(run));
                None
            }
        }
    }

    /// The next pass over an object is for a change of a Job.
    pub fn expect_job(&self, object: &ObjectRef<Stored>) {
        let key = (object.namespace.clone().unwrap_or_default(), object.name.clone());
        if let Some(last) = self.0.lock().get_mut(&key) {
            last.job_changed = true;
        }
    }

    /// The object is gone.
    pub fn forget(&self, object: &impl ResourceExt) {
        let key = (object.namespace().unwrap_or_default(), object.name_any());
        self.0.lock().remove(&key);
    }

    /// Forgets objects that are not among these, after a new list.
    pub fn retain(&self, uids: &HashSet<String>) {
        self.0.lock().retain(|_, last| uids.contains(&last.uid));
    }
}

#[cfg(test)]
mod tests {
    use perfval_api::PerfValidation;
    use perfval_run::Settings;
    use serde_json::json;

    use super::*;
    use crate::test_object;

    fn object(phase: &str, version: &str) -> PerfValidation {
        let metadata = json!({"uid": "a", "resourceVersion": version});
        test_object::object(&metadata, &json!({"phase": phase}))
    }

    /// Passes within a time over an object that changes after each of these pauses (ms), again and again.
    async fn passes(changes: &[u64], lasts: Duration) -> u32 {
        let (pace, settings) = (PassPace::default(), Settings::default());
        let object = object("WaitingForReady", "1");
        let run = Run::new(&object, &settings);
        let (began, mut count, mut due) = (Instant::now(), 0, None);
        for pause in changes.iter().cycle() {
            let next = Instant::now() + Duration::from_millis(*pause);
            // A change that has to wait has its pass later, as the controller wakes the object again.
            while let Some(at) = due.filter(|at| *at <= next) {
                tokio::time::advance(at - Instant::now()).await;
                due = pace.take(&run).map(|wait| Instant::now() + wait);
                count += u32::from(due.is_none());
            }
            tokio::time::advance(next - Instant::now()).await;
            if began.elapsed() > lasts {
                break;
            }
            let wait = pace.take(&run);
            count += u32::from(wait.is_none());
            due = wait.map(|wait| Instant::now() + wait);
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn no_rhythm_of_changes_gets_more_than_a_pass_in_four_seconds() {
        for changes in [
            &[50][..],
            &[1900],
            &[2000],
            &[3900],
            &[100, 100, 2600],
            &[100, 2200],
            &[100, 100, 100, 100, 100, 4500],
        ] {
            let count = passes(changes, Duration::from_mins(10)).await;
            assert!((100..=155).contains(&count), "{changes:?}: {count}");
        }
        assert_eq!(passes(&[50], Duration::from_secs(8)).await, 6);
        assert_eq!(passes(&[5000], Duration::from_secs(61)).await, 12, "each has its pass");
    }

    #[test]
    fn a_new_list_drops_objects_that_it_lacks() {
        let (pace, settings) = (PassPace::default(), Settings::default());
        pace.take(&Run::new(&object("Benchmarking", "1"), &settings));
        pace.retain(&["a".to_owned()].into());
        assert_eq!(pace.0.lock().len(), 1);
        pace.retain(&HashSet::new());
        assert!(pace.0.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_trial_is_seen_at_once_after_a_burst() {
        let (pace, settings) = (PassPace::default(), Settings::default());
        let object = object("Benchmarking", "1");
        let run = Run::new(&object, &settings);
        for _ in 0..100 {
            pace.take(&run);
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        tokio::time::advance(Duration::from_secs(12)).await;
        assert_eq!(pace.take(&run), None, "the load generator ends");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(pace.take(&run), None, "its Job is over");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_job_does_not_wait_for_the_end_of_its_pod() {
        let (pace, settings) = (PassPace::default(), Settings::default());
        let object = object("Benchmarking", "1");
        let run = Run::new(&object, &settings);
        let of = ObjectRef::<Stored>::new("run").within("perf");
        pace.expect_job(&of);
        assert_eq!(pace.take(&run), None, "a new phase");
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(pace.take(&run), None, "the pod ends");
        tokio::time::advance(Duration::from_millis(50)).await;
        for step in ["a criterion is met", "the pod is counted", "its Job is over"] {
            pace.expect_job(&of);
            assert_eq!(pace.take(&run), None, "{step}");
            assert!(pace.take(&run).is_some());
        }
        pace.expect_job(&of);
        assert!(pace.take(&run).is_some(), "a Job that changes all the time");
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!(pace.take(&run), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_object_and_a_phase_that_creates_objects_do_not_wait() {
        let (pace, settings) = (PassPace::default(), Settings::default());
        let take = |phase: &str, version: &str| pace.take(&Run::new(&object(phase, version), &settings));
        assert_eq!(take("WaitingForReady", "1"), None);
        assert_eq!(take("WaitingForReady", "1"), Some(SHORTEST));
        assert_eq!(take("WaitingForReady", "2"), None, "the object itself changed");
        assert_eq!(
            take("WaitingForReady", "2"),
            Some(SHORTEST),
            "no other change may pass with it"
        );
        assert_eq!(take("Benchmarking", "2"), None, "a new phase");
        assert_eq!((take("Deploying", "2"), take("Deploying", "2")), (None, None));
        let removal = (take("CleaningUp", "3"), take("CleaningUp", "3"));
        assert_eq!(removal, (None, Some(SHORTEST_OF_REMOVAL)));
    }
}
