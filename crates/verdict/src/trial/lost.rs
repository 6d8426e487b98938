//! Losses of workers in a trial, and the CPU that their node had for them.

use super::evidence::Evidence;
use crate::diagnosis::cause::{Cause, Explained};
use crate::diagnosis::peers::{self, Worker};
use crate::diagnosis::trial::changed;
use crate::frame::TrialRecord;
use crate::node_cpu::NodeCpu;

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
