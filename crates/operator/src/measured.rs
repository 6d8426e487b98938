//! Measurements of finished runs, on their way into `NodePerformance`s.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use perfval_api::{PerfValidation, PerfValidationStatus};
use perfval_fleet::measurement::Measurement;
use perfval_fleet::node::is_preferred;
use tokio::sync::Notify;

/// Most measurements that wait: without the kind none can be written.
const MOST_WAITING: usize = 10_000;

/// Key of a measurement: its node, and the uid of its validation if the run judged the trials of an earlier one again. Such a run
/// changes only the verdict, so it does not replace the measurement.
pub(super) type MeasurementKey = (String, Option<String>);

pub(super) fn measurement_key(measured: &Measurement) -> MeasurementKey {
    let judged = measured.judged_run.map(|_| measured.validation.uid.clone());
    (measured.node.clone(), judged)
}

/// Measurements that are not written yet.
#[derive(Default)]
pub(crate) struct Measured {
    waiting: Mutex<BTreeMap<MeasurementKey, Measurement>>,
    /// True if the end of a run may have been written without an answer, or a measurement had no room.
    is_doubtful: AtomicBool,
    bell: Notify,
}

impl Measured {
    /// Adds the measurement of a finished run. Of two measurements of one node it keeps the preferred one. Two that wait are hardly
    /// 14 days apart, so the `maxAge` of a policy does not matter.
    pub(crate) fn add(&self, object: &PerfValidation, status: &PerfValidationStatus) {
        if let Some(measured) = Measurement::read(object, status) {
            self.insert(measured);
        }
    }

    /// Adds a measurement, as [`add`](Self::add) does.
    pub(super) fn insert(&self, measured: Measurement) {
        let mut waiting = self.waiting.lock();
        let key = measurement_key(&measured);
        let earlier = waiting.get(&key);
        if earlier.is_some_and(|earlier| !is_preferred(&measured, earlier, |_| None)) {
            return;
        }
        waiting.insert(key, measured);
        if waiting.len() > MOST_WAITING {
            let oldest = waiting.iter().min_by_key(|(_, measured)| measured.ended_at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                waiting.remove(&oldest);
                self.is_doubtful.store(true, Ordering::Relaxed);
            }
        }
        self.bell.notify_one();
    }

    /// Asks for a look at all finished validations, because the end of a run may have been written without an answer.
    pub(crate) fn doubt(&self) {
        self.is_doubtful.store(true, Ordering::Relaxed);
        self.bell.notify_one();
    }

    /// Returns true once after a doubt.
    pub(crate) fn take_doubt(&self) -> bool {
        self.is_doubtful.swap(false, Ordering::Relaxed)
    }

    /// Resolves once a measurement was added, or there is a doubt.
    pub(crate) async fn wait_for_news(&self) {
        self.bell.notified().await;
    }

    /// Returns the waiting measurements. A run that judged trials again waits for the measurement of its node.
    pub(crate) fn list(&self) -> Vec<Measurement> {
        let waiting = self.waiting.lock();
        let is_next = |(node, judged): &MeasurementKey| {
            let of_node: MeasurementKey = (node.clone(), None);
            judged.is_none() || !waiting.contains_key(&of_node)
        };
        let next = waiting.iter().filter(|(key, _)| is_next(key));
        next.map(|(_, measured)| measured.clone()).collect()
    }

    /// Removes a measurement, unless another one has replaced it.
    pub(crate) fn remove(&self, measured: &Measurement) {
        let mut waiting = self.waiting.lock();
        let key = measurement_key(measured);
        if waiting.get(&key) == Some(measured) {
            waiting.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use perfval_api::Verdict;
    use perfval_api::fleet::ValidationReference;

    use super::*;

    fn measurement(second: i64) -> Measurement {
        Measurement {
            node: format!("n{second}"),
            validation: ValidationReference::default(),
            judged_run: None,
            is_confirmation: false,
            verdict: Verdict::Passed,
            reason: None,
            began_at: DateTime::UNIX_EPOCH,
            ended_at: DateTime::from_timestamp(second, 0).expect("a time"),
            environment: None,
            product: None,
            gpu_count: 1,
            output_tokens_per_second: None,
            percent_of_gate: None,
            percent_of_peers: None,
            gpus: Vec::new(),
        }
    }

    #[test]
    fn trials_that_are_judged_again_do_not_replace_their_measurement() {
        let judged_at = |second: i64| Measurement {
            judged_run: Some(1),
            ended_at: DateTime::from_timestamp(second, 0).expect("a time"),
            ..measurement(1)
        };
        let (measured, run) = (Measured::default(), measurement(1));
        measured.insert(run.clone());
        measured.insert(judged_at(2));
        measured.insert(judged_at(3));
        assert_eq!(
            measured.list(),
            std::slice::from_ref(&run),
            "the measurement comes first"
        );
        measured.remove(&run);
        assert_eq!(measured.list(), [judged_at(3)], "the newest verdict follows");
        measured.remove(&judged_at(2));
        assert_eq!(measured.list().len(), 1, "it was replaced meanwhile");
        measured.remove(&judged_at(3));
        assert!(measured.list().is_empty());
    }

    #[test]
    fn the_oldest_measurement_is_dropped_if_too_many_wait() {
        let measured = Measured::default();
        for second in (0..).take(MOST_WAITING) {
            measured.insert(measurement(second));
        }
        assert!(!measured.take_doubt(), "all have room");
        measured.insert(measurement(1_000_000));
        let waiting = measured.list();
        assert_eq!(waiting.len(), MOST_WAITING);
        assert!(waiting.iter().all(|waiting| waiting.node != "n0"), "it is the oldest");
        assert!(measured.take_doubt());
    }
}
