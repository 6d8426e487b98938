//! AIPerf's `profile_export_aiperf.json` (0.11 to 0.13, whose schema is 1.3 or 1.4), reduced to the parts that are judged.
//!
//! Missing parts stay absent. A wrong part is an error that contains its path. No number is ever made up.

pub(crate) mod both_ends;
mod export;
mod failures;
mod object;
pub(crate) mod record;
mod server_metrics;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use perfval_api::text::cut;
use perfval_api::{GateOperator, Metric, Statistic};
use rust_decimal::Decimal;
use serde::de::IntoDeserializer;
use serde::de::value::Error as NameError;
use serde::{Deserialize, Deserializer, Serialize};

use crate::generator::GeneratorCpu;
use crate::number::{bounded, short};

pub use export::parse;
pub use failures::FailedRequests;
pub use server_metrics::frontend_times;

/// Largest export that is read (bytes): a hundred times a real one.
pub const EXPORT_BYTES: u64 = 4 << 20;

/// Error kinds that a report keeps, the most frequent first.
pub const ERROR_KINDS: usize = 5;

/// Longest version that is kept (bytes).
const VERSION_BYTES: usize = 40;

/// Achieved over requested concurrency below which the load generator may have been too weak.
const FULL_CONCURRENCY: Decimal = Decimal::from_parts(90, 0, 0, false, 2);

/// Wait in the generator / latency (p50) above which it was too weak: healthy runs show 0.005 to 0.06, a starved one
/// 3.33.
const HEALTHY_WAIT: Decimal = Decimal::from_parts(10, 0, 0, false, 2);

/// Reason why an export cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // each text shows what the fields are
pub enum ReportError {
    /// Not JSON, cut off, or a key twice.
    #[error("AIPerf's export is not valid JSON: {0}")]
    Json(String),
    /// A field that every version writes is not there.
    #[error("AIPerf's export has no `{path}`")]
    Missing { path: String },
    /// A field has another type, or a value that cannot be.
    #[error("`{path}` in AIPerf's export is {found}, expected {wanted}")]
    Wrong {
        path: String,
        wanted: &'static str,
        found: String,
    },
    /// Written by an unknown version.
    #[error(
        "AIPerf {0:?} is not known here: judge exports of 0.11, 0.12 or 0.13, or name an image with one of them in benchmark.image"
    )]
    Version(String),
    /// Two fields exclude each other.
    #[error("AIPerf's export contradicts itself: {0}")]
    Contradiction(String),
}

/// Results of one run of AIPerf. Latencies are of successful requests only.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Version of AIPerf that wrote the export.
    #[serde(default, deserialize_with = "version", skip_serializing_if = "Option::is_none")]
    pub aiperf_version: Option<String>,
    /// Number of requests in the options, without the warm-up; absent in a trial of a fixed time.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub requested: Option<i64>,
    /// Requests in flight in the options.
    #[serde(deserialize_with = "bounded")]
    pub concurrency: i64,
    /// Requests that AIPerf counts as successful, truncated ones included.
    #[serde(deserialize_with = "bounded")]
    pub succeeded: i64,
    /// Requests that failed.
    #[serde(deserialize_with = "bounded")]
    pub failed: i64,
    /// Successes whose stream ended before the server's token count came. Only `--use-server-token-count` shows them;
    /// 0 without it.
    #[serde(deserialize_with = "bounded")]
    pub truncated: i64,
    /// AIPerf was interrupted or gave up.
    pub cancelled: bool,
    /// AIPerf's words for why it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_reason: Option<String>,
    /// True if it ran to its end, and every requested request has an outcome.
    pub complete: bool,
    /// Length of the measured phase (s).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<Decimal>,
    /// Performance of the load generator itself.
    #[serde(default)]
    pub generator: Generator,
    /// The frontend's own metrics. They are not in the export, see [`frontend_times`].
    #[serde(flatten)]
    pub frontend: FrontendTimes,
    /// Every statistic of every [`Metric`] that was reported, in AIPerf's units. Gates read it with [`Report::value`].
    #[serde(default, deserialize_with = "bounded")]
    pub metrics: BTreeMap<Metric, BTreeMap<Statistic, Decimal>>,
    /// The most frequent errors, at most [`ERROR_KINDS`].
    #[serde(default, deserialize_with = "short", skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorKind>,
}

/// The frontend's own histograms of its requests, measured phase only. Times that Dynamo or AIPerf does not report
/// are absent.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct FrontendTimes {
    /// Mean time from a request's entry to its dispatch to a worker (ms).
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub dispatch_wait_ms: Option<Decimal>,
    /// Mean time from a request's entry to the end of its answer (ms).
    #[serde(rename = "frontendRequestMs")]
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub request_ms: Option<Decimal>,
    /// Mean delay with which its event loop wakes from a sleep (ms): 1.1 on healthy machines, lab and H200.
    #[serde(rename = "frontendLoopDelayMs")]
    #[serde(deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub loop_delay_ms: Option<Decimal>,
}

/// Performance of the load generator itself; absent before AIPerf 0.12.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Generator {
    /// Requests in flight, median over time.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub effective_concurrency_p50: Option<Decimal>,
    /// Wait from being due to being sent, median (ms).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub credit_to_start_p50_ms: Option<Decimal>,
    /// Latency of a request, median (ms).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub request_latency_p50_ms: Option<Decimal>,
    /// CPU of the load generator's own cgroup. It is not in the export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<GeneratorCpu>,
}

/// One kind of error and how often it came.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorKind {
    /// HTTP status; absent if no answer came.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// AIPerf's name for it, for example `ClientConnectorError`.
    pub kind: String,
    /// Body or client error, cut to 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Requests that ended so.
    #[serde(deserialize_with = "bounded")]
    pub count: i64,
}

impl Report {
    /// Requests that failed or came back short, of all (percent).
    pub fn error_percent(&self) -> Decimal {
        let bad = Decimal::from(self.failed) + Decimal::from(self.truncated);
        let all = Decimal::from(self.failed) + Decimal::from(self.succeeded);
        // Without a single request nothing worked.
        (bad * Decimal::ONE_HUNDRED)
            .checked_div(all)
            .unwrap_or(Decimal::ONE_HUNDRED)
    }

    /// A value that can be judged: reported and > 0. If requests succeeded, a zero counts where more is better (no answer had a
    /// token, or none met its objectives), and between two tokens of one chunk. No other time is zero.
    pub fn value(&self, metric: Metric, statistic: Statistic) -> Option<Decimal> {
        let value = self.metrics.get(&metric)?.get(&statistic)?;
        let may_be_zero = self.succeeded > 0
            && (metric.good_side() == Some(GateOperator::AtLeast) || metric == Metric::TimeToSecondToken);
        Some(*value).filter(|value| *value > Decimal::ZERO || (may_be_zero && value.is_zero()))
    }

    /// Returns true if the load generator, not the server, was too slow: requests waited in it, and either it held
    /// fewer than requested, or the kernel reports a lack of CPU. Low concurrency alone proves nothing: a dead worker
    /// lowered it to 75 % while the generator was idle. False if AIPerf did not report it.
    pub fn starved(&self) -> bool {
        let generator = &self.generator;
        let (Some(achieved), Some(wait), Some(latency)) = (
            generator.effective_concurrency_p50,
            generator.credit_to_start_p50_ms,
            generator.request_latency_p50_ms,
        ) else {
            return false;
        };
        let too_few = achieved < FULL_CONCURRENCY * Decimal::from(self.concurrency);
        let short_of_cpu = generator.cpu.as_ref().is_some_and(GeneratorCpu::is_short);
        wait > HEALTHY_WAIT * latency && (too_few || short_of_cpu)
    }
}

/// A version from a record, cut because every user with pods of their own can forge a record.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let version = Option::<String>::deserialize(deserializer)?;
    Ok(version.map(|version| cut(&version, VERSION_BYTES)))
}

/// A statistic of a metric, written `TimeToFirstToken/P99`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measure {
    /// Of what.
    pub metric: Metric,
    /// Statistic of the metric.
    pub statistic: Statistic,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // The variants are not renamed, so Debug prints what a manifest holds.
        write!(f, "{:?}/{:?}", self.metric, self.statistic)
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |e: NameError| format!("`{text}` is not Metric/Statistic, for example TimeToFirstToken/P99: {e}");
        let (metric, statistic) = text.split_once('/').unwrap_or((text, ""));
        Ok(Self {
            metric: Metric::deserialize(metric.into_deserializer()).map_err(wrong)?,
            statistic: Statistic::deserialize(statistic.into_deserializer()).map_err(wrong)?,
        })
    }
}

/// The most frequent kinds; equal counts in order of their text, so that equal input gives equal output.
fn most_frequent(mut kinds: Vec<ErrorKind>) -> Vec<ErrorKind> {
    kinds.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cmp(b)));
    kinds.truncate(ERROR_KINDS);
    kinds
}
