//! Evidence by which a trial is judged.

use perfval_api::{DeviceStatus, WorkerPod};

use crate::diagnosis::cause::{Cause, Explained};
use crate::diagnosis::peers::{self, Worker};
use crate::diagnosis::speed::gpu_in_words;
use crate::diagnosis::trial::changed;
use crate::frame::TrialRecord;
use crate::gate::Share;
use crate::node_cpu::NodeCpu;
use crate::norms::Norm;

/// Everything known at the end of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Record that the runner handed over.
    pub record: &'a TrialRecord,
    /// The workers when the trial began.
    pub before: &'a [WorkerPod],
    /// The workers now.
    pub after: &'a [WorkerPod],
    /// The part of the node in use.
    pub share: Share,
    /// The GPUs of the run with their UUIDs; empty if unknown.
    pub devices: &'a [DeviceStatus],
    /// Product name of the GPUs, where it is known.
    pub product: Option<&'a str>,
    /// Approved normal speed of the run's environment, where there is one and it was read.
    pub norm: Option<&'a Norm>,
}

impl<'a> Evidence<'a> {
    /// A record alone: nothing is known of workers, GPUs and baselines.
    pub fn new(record: &'a TrialRecord, share: Share) -> Self {
        Self {
            record,
            before: &[],
            after: &[],
            share,
            devices: &[],
            product: None,
            norm: None,
        }
    }

    /// Text behind a worker's name for its GPUs; empty if they are unknown.
    pub(super) fn gpu_of(&self, worker: &Worker<'_>) -> String {
        gpu_in_words(worker, self.devices)
    }
}

/// Use of the node's CPUs in this trial, where they were full.
pub fn cpu_shortage(record: &TrialRecord) -> Option<String> {
    let cpu = record.node_cpu.as_ref().filter(|cpu| cpu.is_full());
    cpu.map(NodeCpu::in_words)
}

/// Loss of a worker, by its pod or else by its own metrics.
pub(super) fn lost(evidence: Evidence<'_>, workers: &[Worker<'_>]) -> Option<Explained> {
    let shortage = cpu_shortage(evidence.record);
    let changed = changed(evidence.before, evidence.after, shortage.as_deref());
    changed.or_else(|| match (peers::gone(workers)?, shortage) {
        // Its pod does not show yet how it ended; the next look at the pods will.
        ((Cause::WorkerCrashed, gone), Some(shortage)) => Some((Cause::NodeCPUPressure, format!("{gone}; {shortage}"))),
        (gone, _) => Some(gone),
    })
}
