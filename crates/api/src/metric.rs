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

/// A quantity of AIPerf's export that a gate can judge. Units are those AIPerf reports.
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
}

impl Metric {
    /// Every metric, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::OutputTokenThroughput,
        Self::OutputTokenThroughputPerUser,
        Self::RequestThroughput,
        Self::TimeToFirstToken,
        Self::TimeToSecondToken,
        Self::InterTokenLatency,
        Self::RequestLatency,
        Self::OutputSequenceLength,
        Self::Goodput,
    ];

    /// The name of this metric in AIPerf's export and in its `--goodput` flag.
    pub fn aiperf_tag(self) -> &'static str {
        match self {
            Self::OutputTokenThroughput => "output_token_throughput",
            Self::OutputTokenThroughputPerUser => "output_token_throughput_per_user",
            Self::RequestThroughput => "request_throughput",
            Self::TimeToFirstToken => "time_to_first_token",
            Self::TimeToSecondToken => "time_to_second_token",
            Self::InterTokenLatency => "inter_token_latency",
            Self::RequestLatency => "request_latency",
            Self::OutputSequenceLength => "output_sequence_length",
            Self::Goodput => "goodput",
        }
    }

    /// The unit, as messages print it.
    pub fn unit(self) -> &'static str {
        match self {
            Self::OutputTokenThroughput | Self::OutputTokenThroughputPerUser => "tok/s",
            Self::RequestThroughput | Self::Goodput => "req/s",
            Self::TimeToFirstToken | Self::TimeToSecondToken | Self::InterTokenLatency | Self::RequestLatency => "ms",
            Self::OutputSequenceLength => "tokens",
        }
    }

    /// Which side of a threshold is good; `None`: either.
    pub fn good_side(self) -> Option<GateOperator> {
        match self {
            Self::OutputTokenThroughput
            | Self::OutputTokenThroughputPerUser
            | Self::RequestThroughput
            | Self::Goodput => Some(GateOperator::AtLeast),
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
        }
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
