//! What a trial is judged by.

use perfval_api::{DeviceStatus, WorkerPod};

use crate::frame::TrialRecord;
use crate::gate::Share;

/// What is known at the end of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What the runner handed over.
    pub record: &'a TrialRecord,
    /// The workers when the trial began.
    pub before: &'a [WorkerPod],
    /// The workers now.
    pub after: &'a [WorkerPod],
    /// The part of the node in use.
    pub share: Share,
    /// The GPUs of the run with their UUIDs; empty where they are not known.
    pub devices: &'a [DeviceStatus],
    /// Product name of the GPUs, where it is known.
    pub product: Option<&'a str>,
}
