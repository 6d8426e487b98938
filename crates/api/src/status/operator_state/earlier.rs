use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::environment::Environment;
use crate::{Phase, Verdict};

/// An earlier run.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRun {
    /// Number of the run.
    pub run: i64,
    /// Verdict; absent if the run was interrupted.
    pub verdict: Option<Verdict>,
    /// Reason of the verdict or the interruption.
    pub reason: String,
    /// Node under test.
    pub node: Option<String>,
    /// Output tokens per second, mean of the trials that measured, without a soak.
    pub throughput: Option<String>,
    /// Time to first token, 99th percentile (ms), mean of the same trials.
    pub ttft_p99_ms: Option<String>,
    /// Standard deviation of the output tokens per second between these trials (percent); absent after one trial, if the run
    /// found a cause, or if it only judged the trials of another run again.
    pub throughput_spread: Option<String>,
    /// Number of these trials.
    pub trials: Option<i64>,
    /// Digest of the run's environment. Runs with equal digests can be compared.
    pub environment: Option<String>,
    /// Causes that the run found. A run with causes is no reference for other runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// Decode speeds of the run's workers; empty if the run found a cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<DecodeSpeed>,
    /// UUIDs of the GPUs whose workers decoded slower than their peers, or than in earlier runs.
    #[serde(default, rename = "slowGPUs", skip_serializing_if = "Vec::is_empty")]
    pub slow_gpus: Vec<String>,
    /// Durations of the run's phases (s), in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseSeconds>,
    /// Time at which the run ended.
    pub completed_at: DateTime<Utc>,
}

/// Decode speed of one worker of a run. It is stored as a list to keep ten runs of eight workers small.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(into = "(String, String, Option<String>)")]
pub struct DecodeSpeed {
    /// Time from one token of a request to the next, by its engine (ms).
    pub token_ms: String,
    /// Requests that its engine decoded together, on average.
    pub batch: String,
    /// UUID of the worker's GPU, if the driver publishes one.
    pub gpu: Option<String>,
}

impl From<DecodeSpeed> for (String, String, Option<String>) {
    fn from(speed: DecodeSpeed) -> Self {
        (speed.token_ms, speed.batch, speed.gpu)
    }
}

/// Time that a run spent in a phase. It is stored as a list, as the decode speeds are.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(into = "(Phase, i64)")]
pub struct PhaseSeconds {
    /// Phase.
    pub phase: Phase,
    /// Seconds in the phase, summed over all its visits.
    pub seconds: i64,
}

impl From<PhaseSeconds> for (Phase, i64) {
    fn from(PhaseSeconds { phase, seconds }: PhaseSeconds) -> Self {
        (phase, seconds)
    }
}

/// Last run that passed without a cause.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PassedRun {
    /// Number of the run.
    pub run: i64,
    /// Output tokens per second, mean of the trials that measured, without a soak.
    pub throughput: Option<String>,
    /// Time to first token, 99th percentile (ms), mean of the same trials.
    pub ttft_p99_ms: Option<String>,
    /// Number of these trials.
    pub trials: Option<i64>,
    /// Environment of the run.
    pub environment: Environment,
}

/// Comparison of the run with an earlier passed run: the changes, or the differences that prevent a comparison.
#[skip_serializing_none]
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Number of the earlier run. This is the last run that passed without a cause in the same environment. If there is
    /// none, it is the last run that passed without a cause.
    pub run: i64,
    /// Change of the mean output tokens per second (percent, such as `-4.2`).
    pub throughput_percent: Option<String>,
    /// Half of the interval in which two equal runs differ in 95 of 100 cases (percentage points).
    pub throughput_within: Option<String>,
    /// Change of the time to first token, 99th percentile (percent).
    pub ttft_p99_percent: Option<String>,
    /// Half of the same interval for this time (percentage points).
    pub ttft_p99_within: Option<String>,
    /// Fields of the environment that differ or are unknown, so that the two runs cannot be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}
