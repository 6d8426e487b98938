use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Good side of the threshold, including the threshold.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum GateOperator {
    /// Observed ≥ effective threshold.
    #[serde(rename = ">=")]
    #[strum(serialize = ">=")]
    AtLeast,
    /// Observed ≤ effective threshold.
    #[serde(rename = "<=")]
    #[strum(serialize = "<=")]
    AtMost,
}

impl GateOperator {
    /// Sign that messages print.
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => "≥",
            Self::AtMost => "≤",
        }
    }
}

/// Metric that a gate can judge: from AIPerf's export, in AIPerf's units, or from the workers' own metrics.
#[derive(
    Serialize,
    Deserialize,
    JsonSchema,
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash
)]
#[derive(IntoStaticStr, VariantArray)]
pub enum Metric {
    /// Output tokens per second of the whole deployment (tokens/s).
    OutputTokenThroughput,
    /// Output tokens per second that one request sees (tokens/s).
    OutputTokenThroughputPerUser,
    /// Completed requests per second (requests/s).
    RequestThroughput,
    /// Time from sending a request to its first token (ms).
    TimeToFirstToken,
    /// Time from the first token to the second (ms).
    TimeToSecondToken,
    /// Mean time between two tokens of a request (ms).
    InterTokenLatency,
    /// Time from sending a request to its last token (ms).
    RequestLatency,
    /// Tokens that came back per request (tokens).
    OutputSequenceLength,
    /// Requests per second that met every objective of `benchmark.goodput` (requests/s).
    Goodput,
    /// Decode speed of the slowest worker, by its engine's time from token to token at the same batch (percent of its
    /// peers' median, or of the fastest worker's if most are slow). Needs two workers and an engine that reports this
    /// time, such as vLLM.
    SlowestWorkerPercent,
    /// Decode speed of the worker that lost most against earlier runs, at the upper end of its 95 % interval (percent).
    /// The reference is at least three earlier runs of the object on the same GPU that passed without a cause in the
    /// same environment. With fewer earlier runs the gate is `Unmeasured`, and the trial counts without it.
    OwnPastPercent,
    /// Decode speed of the slowest worker (percent of the approved `PerfBaseline` of the run's environment). Without one the
    /// gate is `Unmeasured`, and the trial counts without it.
    BaselinePercent,
    /// Memory traffic of the median worker, as estimated by its engine (percent of the GPU's published bandwidth).
    /// Needs `--enable-mfu-metrics` of vLLM and a GPU that docs/verdict.md lists.
    MemoryBandwidthPercent,
}

/// Latency that an objective of `benchmark.goodput` limits.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Time from sending a request to its first token (ms).
    TimeToFirstToken,
    /// Time from the first token to the second (ms).
    TimeToSecondToken,
    /// Mean time between two tokens of a request (ms).
    InterTokenLatency,
    /// Time from sending a request to its last token (ms).
    RequestLatency,
}

impl From<Latency> for Metric {
    fn from(latency: Latency) -> Self {
        match latency {
            Latency::TimeToFirstToken => Self::TimeToFirstToken,
            Latency::TimeToSecondToken => Self::TimeToSecondToken,
            Latency::InterTokenLatency => Self::InterTokenLatency,
            Latency::RequestLatency => Self::RequestLatency,
        }
    }
}

impl Metric {
    /// Metrics, in the order of the documentation.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Name of this metric in AIPerf's export and in its `--goodput` flag; `None` if AIPerf does not measure it.
    pub fn aiperf_tag(self) -> Option<&'static str> {
        Some(match self {
            Self::OutputTokenThroughput => "output_token_throughput",
            Self::OutputTokenThroughputPerUser => "output_token_throughput_per_user",
            Self::RequestThroughput => "request_throughput",
            Self::TimeToFirstToken => "time_to_first_token",
            Self::TimeToSecondToken => "time_to_second_token",
            Self::InterTokenLatency => "inter_token_latency",
            Self::RequestLatency => "request_latency",
            Self::OutputSequenceLength => "output_sequence_length",
            Self::Goodput => "goodput",
            Self::SlowestWorkerPercent
            | Self::OwnPastPercent
            | Self::BaselinePercent
            | Self::MemoryBandwidthPercent => return None,
        })
    }

    /// Unit that messages print.
    pub fn unit(self) -> &'static str {
        match self {
            Self::OutputTokenThroughput | Self::OutputTokenThroughputPerUser => "tok/s",
            Self::RequestThroughput | Self::Goodput => "req/s",
            Self::TimeToFirstToken | Self::TimeToSecondToken | Self::InterTokenLatency | Self::RequestLatency => "ms",
            Self::OutputSequenceLength => "tokens",
            Self::SlowestWorkerPercent => "% of its peers",
            Self::OwnPastPercent => "% of its own past",
            Self::BaselinePercent => "% of the baseline",
            Self::MemoryBandwidthPercent => "% of the GPU's peak",
        }
    }

    /// Good side of a threshold; `None` if either side can be good.
    pub fn good_side(self) -> Option<GateOperator> {
        match self {
            Self::OutputTokenThroughput
            | Self::OutputTokenThroughputPerUser
            | Self::RequestThroughput
            | Self::Goodput
            | Self::SlowestWorkerPercent
            | Self::OwnPastPercent
            | Self::BaselinePercent
            | Self::MemoryBandwidthPercent => Some(GateOperator::AtLeast),
            Self::TimeToFirstToken | Self::TimeToSecondToken | Self::InterTokenLatency | Self::RequestLatency => {
                Some(GateOperator::AtMost)
            }
            Self::OutputSequenceLength => None,
        }
    }

    /// Returns true if one number describes a whole trial, so that there is no distribution.
    pub fn has_an_average_only(self) -> bool {
        self.is_rate() || self.aiperf_tag().is_none()
    }

    /// Returns true if a trial is compared with earlier runs or a baseline. Both may be missing.
    pub fn needs_a_reference(self) -> bool {
        matches!(self, Self::OwnPastPercent | Self::BaselinePercent)
    }

    /// Returns true if AIPerf reports only an average, because a rate of the whole trial has no distribution.
    pub fn is_rate(self) -> bool {
        matches!(
            self,
            Self::OutputTokenThroughput | Self::RequestThroughput | Self::Goodput
        )
    }
}

/// Statistic of a metric over the requests of one trial.
#[derive(
    Serialize,
    Deserialize,
    JsonSchema,
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash
)]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs)] // the names are the statistics
pub enum Statistic {
    #[default]
    Avg,
    Min,
    Max,
    P1,
    P5,
    P10,
    P25,
    P50,
    P75,
    P90,
    P95,
    P99,
    Std,
}

impl Statistic {
    /// Statistics.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Key of this statistic in AIPerf's export.
    pub fn aiperf_key(self) -> &'static str {
        self.into()
    }
}
