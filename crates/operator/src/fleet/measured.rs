//! Measurements of finished runs, on their way into `NodePerformance`s.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use perfval_api::{PerfValidation, PerfValidationStatus};
use perfval_fleet::measurement::Measurement;
use perfval_fleet::node::is_preferred;
use tokio::sync::Notify;

/// Measurements that are not written yet, by node.
#[derive(Default)]
pub(crate) struct Measured {
    waiting: Mutex<BTreeMap<String, Measurement>>,
    /// True if the end of a run may have been written without an answer.
    is_doubtful: AtomicBool,
    bell: Notify,
}

impl Measured {
    /// Takes the measurement of a run that is over. Of two of one node the later one counts.
    pub(crate) fn add(&self, object: &PerfValidation, status: &PerfValidationStatus) {
        let Some(measured) = Measurement::read(object, status) else {
            return;
        };
        let mut waiting = self.waiting.lock();
        let earlier = waiting.get(&measured.node);
        if earlier.is_none_or(|earlier| is_preferred(&measured, earlier)) {
            waiting.insert(measured.node.clone(), measured);
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
    pub(crate) async fn added(&self) {
        self.bell.notified().await;
    }

    /// All of them.
    pub(crate) fn list(&self) -> Vec<Measurement> {
        let waiting = self.waiting.lock();
        waiting.values().cloned().collect()
    }

    /// Drops a measurement, unless a later one has replaced it.
    pub(crate) fn drop(&self, measured: &Measurement) {
        let mut waiting = self.waiting.lock();
        if waiting.get(&measured.node) == Some(measured) {
            waiting.remove(&measured.node);
        }
    }
}
