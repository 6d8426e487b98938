//! Evidence by which a trial is judged.

use perfval_api::{DeviceStatus, WorkerPod};

use crate::diagnosis::peers::Worker;
use crate::diagnosis::speed::gpu_in_words;
use crate::frame::TrialRecord;
use crate::gate::Share;
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

impl Evidence<'_> {
    /// Text behind a worker's name for its GPUs; empty if they are unknown.
    pub(super) fn gpu_of(&self, worker: &Worker<'_>) -> String {
        gpu_in_words(worker, self.after, self.devices)
    }
}
