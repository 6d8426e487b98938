use std::fmt;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::plan::DeviceStatus;
use crate::quantity;

/// One worker.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct WorkerPod {
    /// Pod name.
    pub pod: String,
    /// Pod uid.
    pub uid: String,
    /// Restarts of the pod's containers.
    pub restarts: i64,
    /// End of the container before its last restart, such as `exit code 137 (OOMKilled)`.
    pub last_exit: Option<String>,
    /// True if the end of the container was not observed, as after a reboot of the node. `lastExit` is then absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_unseen: bool,
    /// Origin of the container's end before its last restart, if it did not crash.
    pub ended_by: Option<EndedBy>,
    /// IP address at which the operator samples the worker's metrics.
    pub address: Option<String>,
    /// GPUs that the worker's claim holds, as `pool/device`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

impl WorkerPod {
    /// The devices of a plan that this worker holds.
    pub fn held<'a>(&self, devices: &'a [DeviceStatus]) -> impl Iterator<Item = &'a DeviceStatus> {
        let held = |device: &&DeviceStatus| {
            let mut names = self.devices.iter();
            names.any(|name| name.split_once('/') == Some((&device.pool, &device.name)))
        };
        devices.iter().filter(held)
    }

    /// Names of its devices without their pools, such as `gpu-0,gpu-1`.
    pub fn device_names(&self) -> Option<String> {
        let names: Vec<&str> = self
            .devices
            .iter()
            .filter_map(|device| device.rsplit('/').next())
            .collect();
        (!names.is_empty()).then(|| names.join(","))
    }
}

/// End of a container without a crash of its process.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndedBy {
    /// The kubelet ended the container because its liveness or startup probe failed.
    Probe,
    /// The container ended on request: exit code 0, or 143 after SIGTERM.
    Request,
    /// The container was killed (exit code 137, not for its memory use). The events that show the origin could not be
    /// read.
    Signal,
}

/// Way in which a run lost a worker, the less serious first.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerLoss {
    /// The worker's pod was removed or replaced.
    Removed,
    /// The worker ended while its node had no CPU left for it, and did not crash by itself.
    Starved,
    /// The worker's container ended by itself.
    Crashed,
}

/// Work of one worker in the measured phase of a trial.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerLoad {
    /// Pod of the worker, or its address if the pod is unknown.
    pub name: String,
    /// Requests that the worker finished. This field and the next two are absent if the worker could not be sampled.
    pub served: Option<i64>,
    /// Requests that the worker finished per second.
    pub requests_per_second: Option<String>,
    /// Requests in flight, on average.
    pub mean_in_flight: Option<String>,
    /// Time that a request spent in the worker, on average (s).
    pub seconds_per_request: Option<String>,
    /// Tokens that the worker generated per second, if its engine counts them.
    pub tokens_per_second: Option<String>,
    /// Time from one token of a request to the next, by its engine (ms).
    pub token_ms: Option<String>,
    /// `tokenMs` of each valid trial of the run so far, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_ms_of_trials: Vec<String>,
    /// Requests that its engine decoded together, on average.
    pub batch: Option<String>,
    /// Decode speed with its 95 % interval (percent of the peers' median, at the same batch).
    pub percent_of_peers: Option<RelativeSpeed>,
    /// Decode speed with its 95 % interval, averaged over the trials of the run so far.
    pub in_run: Option<RelativeSpeed>,
    /// Decode speed against that of earlier runs on the same GPU.
    pub percent_of_earlier_runs: Option<RelativeSpeed>,
    /// Longest span in which the worker had requests and made no progress (s).
    pub still_seconds: Option<i64>,
    /// Samples that the worker did not answer in time.
    pub timeouts: Option<i64>,
}

impl WorkerLoad {
    /// Time from one token of a request to the next in each valid trial of the run (µs, above 0), in order.
    pub fn token_microseconds(&self) -> Vec<i64> {
        let microseconds = |text: &String| {
            let milliseconds = quantity::parse(text)?;
            milliseconds.checked_mul(Decimal::ONE_THOUSAND)?.round().to_i64()
        };
        let times = self.token_ms_of_trials.iter().filter_map(microseconds);
        times.filter(|time| *time > 0).collect()
    }
}

/// Decode speed of a worker against other workers or its own earlier runs.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RelativeSpeed {
    /// Speed (percent of the reference).
    pub percent: String,
    /// Half of the 95 % interval (percentage points).
    pub within: String,
    /// Number of trials or runs in this mean.
    pub of: i64,
}

impl fmt::Display for RelativeSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ± {}", self.percent, self.within)
    }
}
