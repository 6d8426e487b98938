use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Side of the threshold that is good; inclusive.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOperator {
    /// Observed ≥ effective threshold.
    #[serde(rename = ">=")]
    AtLeast,
    /// Observed ≤ effective threshold.
    #[serde(rename = "<=")]
    AtMost,
}

impl GateOperator {
    /// The word in a gate.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        }
    }

    /// The sign, as messages print it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => "≥",
            Self::AtMost => "≤",
        }
    }
}

/// A quantity that a gate can judge: of AIPerf's export, in AIPerf's units, or of the workers' own metrics.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Decode speed of the slowest worker, by its engine's time from token to token at the same batch (percent of its peers'
    /// median, or of the fastest worker's where most are slow). Needs two workers and an engine that reports it, such as vLLM.
    SlowestWorkerPercent,
    /// Decode speed of the worker that lost most against its own past, at the upper end of its 95 % interval (percent of that of
    /// at least three earlier runs of the object on the same GPU, which passed without a cause in the same environment). With
    /// fewer earlier runs the gate is `Unmeasured`, and the trial counts without it.
    OwnPastPercent,
    /// Memory traffic of the median worker, by its engine's own estimate (percent of the GPU's published bandwidth). Needs
    /// `--enable-mfu-metrics` of vLLM and a GPU that docs/verdict.md lists.
    MemoryBandwidthPercent,
}

impl Metric {
    /// Every metric, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::OutputTokenThroughput,
        Self::OutputTokenThroughputPerUser,
        Self::RequestThroughput,
        Self::TimeToFirstToken,
        Self::TimeToSecondToken,
        Self::InterTokenLatency,
        Self::RequestLatency,
        Self::OutputSequenceLength,
        Self::Goodput,
        Self::SlowestWorkerPercent,
        Self::OwnPastPercent,
        Self::MemoryBandwidthPercent,
    ];

    /// The name of this metric in AIPerf's export and in its `--goodput` flag; `None` for what AIPerf does not measure.
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
            Self::SlowestWorkerPercent | Self::OwnPastPercent | Self::MemoryBandwidthPercent => return None,
        })
    }

    /// The unit, as messages print it.
    pub fn unit(self) -> &'static str {
        match self {
            Self::OutputTokenThroughput | Self::OutputTokenThroughputPerUser => "tok/s",
            Self::RequestThroughput | Self::Goodput => "req/s",
            Self::TimeToFirstToken | Self::TimeToSecondToken | Self::InterTokenLatency | Self::RequestLatency => "ms",
            Self::OutputSequenceLength => "tokens",
            Self::SlowestWorkerPercent => "% of its peers",
            Self::OwnPastPercent => "% of its own past",
            Self::MemoryBandwidthPercent => "% of the GPU's peak",
        }
    }

    /// Which side of a threshold is good; `None`: either.
    pub fn good_side(self) -> Option<GateOperator> {
        match self {
            Self::OutputTokenThroughput
            | Self::OutputTokenThroughputPerUser
            | Self::RequestThroughput
            | Self::Goodput
            | Self::SlowestWorkerPercent
            | Self::OwnPastPercent
            | Self::MemoryBandwidthPercent => Some(GateOperator::AtLeast),
            Self::TimeToFirstToken | Self::TimeToSecondToken | Self::InterTokenLatency | Self::RequestLatency => {
                Some(GateOperator::AtMost)
            }
            Self::OutputSequenceLength => None,
        }
    }

    /// The word in a gate.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutputTokenThroughput => "OutputTokenThroughput",
            Self::OutputTokenThroughputPerUser => "OutputTokenThroughputPerUser",
            Self::RequestThroughput => "RequestThroughput",
            Self::TimeToFirstToken => "TimeToFirstToken",
            Self::TimeToSecondToken => "TimeToSecondToken",
            Self::InterTokenLatency => "InterTokenLatency",
            Self::RequestLatency => "RequestLatency",
            Self::OutputSequenceLength => "OutputSequenceLength",
            Self::Goodput => "Goodput",
            Self::SlowestWorkerPercent => "SlowestWorkerPercent",
            Self::OwnPastPercent => "OwnPastPercent",
            Self::MemoryBandwidthPercent => "MemoryBandwidthPercent",
        }
    }

    /// Whether one number describes a whole trial, so that there is no distribution.
    pub fn has_an_average_only(self) -> bool {
        self.is_rate() || self.aiperf_tag().is_none()
    }

    /// Whether AIPerf reports only an average: a rate of the whole run has no distribution.
    pub fn is_rate(self) -> bool {
        matches!(
            self,
            Self::OutputTokenThroughput | Self::RequestThroughput | Self::Goodput
        )
    }
}

/// A statistic of a metric over the requests of one trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Every statistic.
    pub const ALL: [Self; 13] = [
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::P1,
        Self::P5,
        Self::P10,
        Self::P25,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::Std,
    ];

    /// The key of this statistic in AIPerf's export.
    pub fn aiperf_key(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::P1 => "p1",
            Self::P5 => "p5",
            Self::P10 => "p10",
            Self::P25 => "p25",
            Self::P50 => "p50",
            Self::P75 => "p75",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Std => "std",
        }
    }
}
