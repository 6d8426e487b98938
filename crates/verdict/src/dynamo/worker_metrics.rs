//! What a worker's own metrics say.

use rust_decimal::prelude::ToPrimitive as _;

use crate::workers::Reading;

const IN_FLIGHT: &str = "dynamo_component_inflight_requests";
const STARTED: &str = "dynamo_component_requests_total";
const FINISHED: &str = "dynamo_component_request_duration_seconds_count";
const BUSY_SECONDS: &str = "dynamo_component_request_duration_seconds_sum";
const BYTES: &str = "dynamo_component_response_bytes_total";

/// vLLM's counter of generated tokens, and the one that Dynamo's mocker has in its place (one count per token).
const TOKENS: [&str; 2] = ["vllm:generation_tokens_total", "vllm:inter_token_latency_seconds_count"];
/// Where a request can wait before the engine runs it: Dynamo's work queue, its request queue (1.6) and vLLM's.
const WAITING: [&str; 3] = [
    "dynamo_work_handler_queue_depth",
    "dynamo_request_queue",
    "vllm:num_requests_waiting",
];
/// The share of the KV cache in use (0 to 1), by its present name and the one before vLLM 0.10.
const KV_USE: [&str; 2] = ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"];

/// More than a process can have served; keeps sums of counters far from overflow.
const ABSURD: f64 = 1e15;

/// Why a worker's answer holds no counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpositionError {
    /// Not a worker's metrics, or its endpoint is not registered yet.
    #[error("the worker's metrics have no `{0}` of dynamo_endpoint=\"generate\"")]
    Missing(&'static str),
    /// A counter that no counter can be.
    #[error("`{series}` of the worker is {value:?}, expected a finite number ≥ 0")]
    Number {
        /// Name of the series.
        series: String,
        /// The beginning of what is there.
        value: String,
    },
}

/// What a worker's `/metrics` says of its `generate` endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scraped {
    /// The `worker_id` label.
    pub worker_id: Option<String>,
    /// The counters, summed over the series of the endpoint.
    pub reading: Reading,
}

/// Reads a worker's `/metrics` (Prometheus text format), only the few series that are judged. The three that every
/// version has must be there; of the others, what is absent or no number is left out.
pub fn read(text: &str) -> Result<Scraped, ExpositionError> {
    let mut worker_id = None;
    let (mut in_flight, mut started, mut finished) = (None, None, None);
    let (mut bytes, mut busy_ms) = (None, None);
    let (mut tokens, mut waiting, mut kv_percent) = ([None; 2], [None; 3], [None; 2]);

    for (name, labels, value) in text.lines().filter_map(split) {
        let found = |names: &[&str]| names.iter().position(|known| *known == name);
        if let Some(index) = found(&TOKENS) {
            add(&mut tokens[index], number(value, 1.0));
        } else if let Some(index) = found(&WAITING) {
            add(&mut waiting[index], number(value, 1.0));
        } else if let Some(index) = found(&KV_USE) {
            kv_percent[index] = kv_percent[index].max(number(value, 100.0));
        }
        // Other endpoints of the same process answer the router's own questions.
        if label(labels, "dynamo_endpoint") != Some("generate") {
            continue;
        }
        match name {
            IN_FLIGHT => require(&mut in_flight, name, value)?,
            STARTED => require(&mut started, name, value)?,
            FINISHED => require(&mut finished, name, value)?,
            BYTES => add(&mut bytes, number(value, 1.0)),
            BUSY_SECONDS => add(&mut busy_ms, number(value, 1000.0)),
            _ => continue,
        }
        worker_id = label(labels, "worker_id").map(|id| crate::aiperf::bounded(id, 40));
    }
    let reading = Reading {
        in_flight: in_flight.ok_or(ExpositionError::Missing(IN_FLIGHT))?,
        started: started.ok_or(ExpositionError::Missing(STARTED))?,
        finished: finished.ok_or(ExpositionError::Missing(FINISHED))?,
        tokens: tokens[0].or(tokens[1]),
        bytes,
        busy_ms,
        waiting: waiting.into_iter().flatten().reduce(|a, b| a + b),
        kv_percent: kv_percent[0].or(kv_percent[1]),
    };
    Ok(Scraped { worker_id, reading })
}

/// Name, labels and value of a sample line; `None` for comments and anything else.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (series, labels, rest) = match line.split_once('{') {
        // No series of ours has a `}` inside a label value.
        Some((name, rest)) => rest.split_once('}').map(|(labels, rest)| (name, labels, rest))?,
        None => line.split_once(' ').map(|(name, rest)| (name, "", rest))?,
    };
    // A time stamp may follow the value.
    Some((series.trim(), labels, rest.split_whitespace().next()?))
}

/// The value of a label; a quoted text that merely looks like one does not count, because names start after a comma.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.split("\",").find_map(|pair| {
        let (key, value) = pair.split_once("=\"")?;
        (key.trim() == name).then(|| value.strip_suffix('"').unwrap_or(value))
    })
}

/// A whole number of `1/scale`; `None` for what no counter can be.
fn number(value: &str, scale: f64) -> Option<i64> {
    let number = value.parse::<f64>().ok().filter(|n| (0.0..=ABSURD).contains(n))? * scale;
    number.round().to_i64()
}

fn require(sum: &mut Option<i64>, series: &str, value: &str) -> Result<(), ExpositionError> {
    match number(value, 1.0) {
        Some(number) => {
            add(sum, Some(number));
            Ok(())
        }
        None => Err(ExpositionError::Number {
            series: series.to_owned(),
            value: crate::aiperf::bounded(value, 40),
        }),
    }
}

fn add(sum: &mut Option<i64>, number: Option<i64>) {
    if let Some(number) = number {
        *sum = Some(sum.unwrap_or(0).saturating_add(number));
    }
}
