//! A line of AIPerf's `profile_export.jsonl`: one request. Fields that are not read here may be missing or new.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A request. `M` is `IgnoredAny` where its numbers must not matter.
#[derive(Deserialize)]
pub struct RequestRecord<'a, M = RequestMetrics> {
    pub metadata: RequestMetadata,
    pub metrics: Option<M>,
    /// Details of its failure.
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// Times of day of a request (ns since 1970).
#[derive(Deserialize)]
pub struct RequestMetadata {
    benchmark_phase: String,
    pub request_start_ns: Option<i64>,
    pub request_end_ns: Option<i64>,
}

/// Numbers of a request; times in milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct RequestMetrics {
    pub output_sequence_length: Option<Number>,
    pub time_to_first_token: Option<Number>,
    pub inter_token_latency: Option<Number>,
    pub request_latency: Option<Number>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Number {
    pub value: f64,
}

impl<M> RequestRecord<'_, M> {
    /// Returns false for a request of the warm-up.
    pub fn is_measured(&self) -> bool {
        self.metadata.benchmark_phase == "profiling"
    }
}
