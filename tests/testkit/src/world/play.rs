//! Worlds in which nodes differ: durations and results of single pods.

use std::sync::Arc;

use perfval_verdict::frame::Outcome;
use perfval_verdict::workers::WorkerSummary;
use serde_json::Value;

use crate::trial;

/// A pod ends within (s).
pub(super) const ENDS: i64 = 2;

/// Course of single pods. The same pod gets the same answers each time.
pub trait Play: Send {
    /// Time from the binding of a pod until its server is ready, or its program starts (s).
    fn starts_after(&self, pod: &Value) -> i64;
    /// Time from the deletion of a pod until it is gone (s).
    fn ends_after(&self, _: &Value) -> i64 {
        ENDS
    }
    /// Length of the trial of a load generator (s).
    fn trial_lasts(&self, pod: &Value) -> i64;
    /// Result of the trial of a load generator, with the pods of its workers.
    fn measure(&self, _: &Value, workers: &[Arc<Value>]) -> Measured {
        Measured::usual(workers)
    }
    /// Whether the container of a worker ends again and again.
    fn crashes(&self, _: &Value) -> bool {
        false
    }
}

/// Result of a played trial.
pub struct Measured {
    /// Outcome of the load generator.
    pub outcome: Outcome,
    /// Work of each worker.
    pub workers: Vec<WorkerSummary>,
}

impl Measured {
    /// Result of a usual trial.
    pub fn usual(workers: &[Arc<Value>]) -> Self {
        let outcome = || Outcome::Report(Box::new(trial::report(|recorded| recorded, false)));
        let address = |pod: &Arc<Value>| pod["status"]["podIP"].as_str().map(str::to_owned);
        let record = trial::record(String::new(), outcome(), workers.iter().filter_map(address));
        Self {
            outcome: record.outcome,
            workers: record.workers,
        }
    }
}
