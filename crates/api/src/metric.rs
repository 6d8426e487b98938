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
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[derive(PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
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

    /// The table of metrics.
    fn facts(self) -> MetricFacts {
        use GateOperator::{AtLeast, AtMost};
        use MetricNoise::{AsThroughput, Bounded, OnAverage, Unknown};
        use MetricSource::{AIPerf, Baseline, EngineEstimate, OwnPast, Peers};
        let more_is_better = |source, unit, noise| MetricFacts {
            source,
            unit,
            good_side: Some(AtLeast),
            noise,
        };
        let aiperf = |tag, exported, unit, noise| more_is_better(AIPerf(tag, exported), unit, noise);
        let latency = |tag, noise| MetricFacts {
            good_side: Some(AtMost),
            ..aiperf(tag, "ms", "ms", noise)
        };
        let percent = |source, unit| more_is_better(source, unit, Unknown);
        match self {
            Self::OutputTokenThroughput => aiperf("output_token_throughput", "tokens/sec", "tok/s", AsThroughput),
            Self::OutputTokenThroughputPerUser => {
                aiperf("output_token_throughput_per_user", "tokens/sec/user", "tok/s", Bounded)
            }
            Self::RequestThroughput => aiperf("request_throughput", "requests/sec", "req/s", AsThroughput),
            Self::TimeToFirstToken => latency("time_to_first_token", OnAverage),
            Self::TimeToSecondToken => latency("time_to_second_token", OnAverage),
            Self::InterTokenLatency => latency("inter_token_latency", Bounded),
            Self::RequestLatency => latency("request_latency", AsThroughput),
            Self::OutputSequenceLength => MetricFacts {
                good_side: None,
                ..aiperf("output_sequence_length", "tokens", "tokens", Unknown)
            },
            Self::Goodput => aiperf("goodput", "requests/sec", "req/s", Unknown),
            Self::SlowestWorkerPercent => percent(Peers, "% of its peers"),
            Self::OwnPastPercent => percent(OwnPast, "% of its own past"),
            Self::BaselinePercent => percent(Baseline, "% of the baseline"),
            Self::MemoryBandwidthPercent => percent(EngineEstimate, "% of the GPU's peak"),
        }
    }

    /// Source of its numbers.
    pub fn source(self) -> MetricSource {
        self.facts().source
    }

    /// Name of this metric in AIPerf's export and in its `--goodput` flag; `None` if AIPerf does not measure it.
    pub fn aiperf_tag(self) -> Option<&'static str> {
        match self.source() {
            MetricSource::AIPerf(tag, _) => Some(tag),
            _ => None,
        }
    }

    /// Unit that messages print.
    pub fn unit(self) -> &'static str {
        self.facts().unit
    }

    /// Good side of a threshold; `None` if either side can be good.
    pub fn good_side(self) -> Option<GateOperator> {
        self.facts().good_side
    }

    /// Returns true if one number describes a whole trial, so that there is no distribution.
    pub fn has_an_average_only(self) -> bool {
        self.is_rate() || self.aiperf_tag().is_none()
    }

    /// Returns true if a trial is compared with earlier runs or a baseline. Both may be missing.
    pub fn needs_a_reference(self) -> bool {
        matches!(self.source(), MetricSource::OwnPast | MetricSource::Baseline)
    }

    /// Returns true if AIPerf reports only an average, because a rate (`tokens/sec`) of the whole trial has no distribution.
    pub fn is_rate(self) -> bool {
        matches!(self.source(), MetricSource::AIPerf(_, unit) if unit.ends_with("/sec"))
    }

    /// Noise of its average.
    pub fn noise(self) -> MetricNoise {
        self.facts().noise
    }
}

/// Facts about a metric.
struct MetricFacts {
    source: MetricSource,
    unit: &'static str,
    good_side: Option<GateOperator>,
    noise: MetricNoise,
}

/// Source of a metric's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricSource {
    /// AIPerf's export, with the name and the unit there (AIPerf 0.11 to 0.13).
    AIPerf(&'static str, &'static str),
    /// Workers compared with each other.
    Peers,
    /// Workers compared with earlier runs, which may be missing.
    OwnPast,
    /// Workers compared with an approved baseline, which may be missing.
    Baseline,
    /// Estimate of the workers' engines.
    EngineEstimate,
}

/// Noise of a metric's average between trials of one deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricNoise {
    /// Equal to the noise of the throughput, which earlier runs keep. In recorded trials of the lab the latency of whole
    /// requests varied as much (3.6 and 3.8 %).
    AsThroughput,
    /// Bounded by published measurements: under a fixed number of requests in flight, times between tokens vary as the
    /// throughput does, or a little more (4.9 % in the lab).
    Bounded,
    /// Small in each trial instead of large in a few, but no page bounds it: the mean time to the first token varies by
    /// 10 to 30 %.
    OnAverage,
    /// Unbounded: goodput halves where a latency moves a little.
    Unknown,
}

/// Statistic of a metric over the requests of one trial.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
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
