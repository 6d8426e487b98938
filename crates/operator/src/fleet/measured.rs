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

/// Measurements that are not written yet, by node.
#[derive(Default)]
pub(crate) struct Measured {
    waiting: Mutex<BTreeMap<String, Measurement>>,
    /// True if the end of a run may have been written without an answer, or a measurement had no room.
    is_doubtful: AtomicBool,
    bell: Notify,
}

impl Measured {
    /// Adds the measurement of a finished run. Of two measurements of one node it keeps the preferred one: a policy's run stays for
    /// 14 days.
    pub(crate) fn add(&self, object: &PerfValidation, status: &PerfValidationStatus) {
        if let Some(measured) = Measurement::read(object, status) {
            self.insert(measured);
        }
    }

    fn insert(&self, measured: Measurement) {
        let mut waiting = self.waiting.lock();
        let earlier = waiting.get(&measured.node);
        if earlier.is_some_and(|earlier| !is_preferred(&measured, earlier)) {
            return;
        }
        waiting.insert(measured.node.clone(), measured);
        if waiting.len() > MOST_WAITING {
            let oldest = waiting.values().min_by_key(|measured| measured.ended_at);
            if let Some(oldest) = oldest.map(|measured| measured.node.clone()) {
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

    /// Returns the waiting measurements, one per node.
    pub(crate) fn list(&self) -> Vec<Measurement> {
        let waiting = self.waiting.lock();
        waiting.values().cloned().collect()
    }

    /// Removes a measurement, unless another one has replaced it.
    pub(crate) fn remove(&self, measured: &Measurement) {
        let mut waiting = self.waiting.lock();
        if waiting.get(&measured.node) == Some(measured) {
            waiting.remove(&measured.node);
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
